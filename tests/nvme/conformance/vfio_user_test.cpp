// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// The conformance cases against the model as another process's driver sees it: through the server and the
// client of vfio-user, with doorbells and memory shared and by messages. And faults, each found and named.

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <filesystem>
#include <iterator>
#include <map>

#include "conformance.hpp"
#include "errors.hpp"
#include "eventually.hpp"
#include "model/faults.hpp"
#include "nvme/bench.hpp"
#include "nvme/vfio_user.hpp"
#include "sanitized.hpp"
#include "served.hpp"

namespace doorbell::nvme::conformance {
namespace {

using test::eventually;

struct Configuration {
  std::string name;
  std::string model;  // what follows "model:"
  std::string keys;   // what follows the path
  bool share_doorbells = true;
  unsigned lacks = nothing;
};
/// A served model takes interrupts, and the client does not see its counts.
constexpr unsigned kNever = no_interrupts | counts;

/// The device, and the server that it is behind.
class Behind final : public ControllerInterface {
 public:
  Behind(const Configuration& c, bool slow)
      : served_("model:" + c.model + (slow ? ",latency=20ms" : ""), c.share_doorbells),
        inner_(parse_vfio_user_spec("vfio-user:" + served_.path + c.keys), "served") {}
  std::string kind() const override { return inner_.kind(); }
  std::string name() const override { return inner_.name(); }
  u32 read32(u32 offset) override { return inner_.read32(offset); }
  u64 read64(u32 offset) override { return inner_.read64(offset); }
  void write32(u32 offset, u32 value) override { inner_.write32(offset, value); }
  void write64(u32 offset, u64 value) override { inner_.write64(offset, value); }
  AddressSpace& address_space() override { return inner_.address_space(); }
  u32* cpu_register(u64 offset) override { return inner_.cpu_register(offset); }
  u32* gpu_register(u64 offset) override { return inner_.gpu_register(offset); }
  DoorbellForwarder* forwarder() override { return inner_.forwarder(); }
  /// Of both sides, for a case that fails.
  nlohmann::ordered_json counters() override {
    return {{"client", inner_.counters()}, {"server", served_.server->status()}};
  }

 private:
  Served served_;
  VfioUserController inner_;
};

class VfioUser : public testing::TestWithParam<std::tuple<Configuration, Case>> {};

TEST_P(VfioUser, Holds) {
  const auto& [c, one] = GetParam();
  if ((one.needs & (c.lacks | kNever)) != 0) GTEST_SKIP() << "this configuration cannot";
  Target t;
  t.has = ~0u & ~(c.lacks | kNever);
  t.open = [&c = c](bool slow) { return std::make_unique<Behind>(c, slow); };
  try {
    one.run(t);
  } catch (const std::exception& e) {
    FAIL() << e.what();
  }
}

const Configuration kConfigurations[] = {
    {"Shared", "capacity=64Mi,threads=2", ""},
    {"Shared4096", "capacity=64Mi,lba=4096,stride=2,formats=40,entries=256", ""},
    // The longest queues are used where a doorbell or an entry is no message: on a busy machine one takes 20
    // ms.
    {"Doorbells", "capacity=64Mi,entries=128", "", false},
    // Shadow doorbells lie in memory that the device looks at all the time.
    {"Messages", "capacity=64Mi,entries=128,shadow=off", ",memory=message,doorbells=message", false, shadow},
};

/// Under a sanitizer the first alone: each takes minutes there, and the cases below use all ways of the
/// others.
std::vector<Configuration> configurations() {
  return {std::begin(kConfigurations),
          test::kSanitized ? std::begin(kConfigurations) + 1 : std::end(kConfigurations)};
}

INSTANTIATE_TEST_SUITE_P(Served, VfioUser,
                         testing::Combine(testing::ValuesIn(configurations()), testing::ValuesIn(cases())),
                         [](const auto& p) {
                           return std::get<0>(p.param).name + "_" + std::get<1>(p.param).name;
                         });

BenchOptions bench_of(const Served& s, u64 ios) {
  BenchOptions o;
  o.controller = "vfio-user:" + s.path;
  o.allow_write = true;
  o.default_counts = false;
  o.write_io = o.read_io = ios;
  o.num_queues = 2;
  o.queue_length = 64;
  o.in_flight = 8;
  o.repeats = 1;
  o.warmup_s = 0;
  return never_late(o);
}

BenchResult bench(const BenchOptions& o) {
  return run_bench(o, {});
}

class VfioUserFaults : public testing::TestWithParam<model::Fault> {};

TEST_P(VfioUserFaults, EachIsFoundAndNamed) {
  using model::Fault;
  const Fault f = GetParam();
  const std::string kind(name(f));
  Served s("model:capacity=64Mi");
  s.server->set_faults(only(f, 0.02));
  const BenchResult r = bench(bench_of(s, 3000));
  const u64 n = s.server->status()["model"]["injected"][kind].get<u64>();
  EXPECT_GT(n, 0u) << "the run proves nothing";
  const report::Verify& v = r.cell().verify;
  const auto found = [&](Fault which) { return f == which ? n : 0; };
  EXPECT_EQ(v.corrupt, found(Fault::corrupt));
  EXPECT_EQ(v.misplaced, found(Fault::misplace));
  EXPECT_EQ(v.stale, found(Fault::stale));
  EXPECT_EQ(v.duplicated, found(Fault::duplicate));
  EXPECT_EQ(errors(r, "completion"), found(Fault::error));
  EXPECT_EQ(r.failed, f != Fault::reorder);
  // The log names as many, of this kind alone.
  EXPECT_EQ(s.faults_in_log(), (std::map<std::string, u64>{{kind, n}}));
  EXPECT_EQ(s.server->status()["faults_not_logged"].get<u64>(), 0u);
}

INSTANTIATE_TEST_SUITE_P(Kinds, VfioUserFaults,
                         testing::Values(model::Fault::error, model::Fault::corrupt, model::Fault::misplace,
                                         model::Fault::stale, model::Fault::duplicate, model::Fault::reorder),
                         [](const auto& p) { return std::string(name(p.param)); });

TEST(VfioUserFaultsAlone, WithoutFaultsNothingIsFound) {
  Served s("model:capacity=64Mi");
  EXPECT_EQ(bench(bench_of(s, 2000)).exit_code(), 0);
  s.server->set_faults(only(model::Fault::corrupt, 0.02));
  EXPECT_EQ(bench(bench_of(s, 2000)).exit_code(), 2);
  s.server->set_faults({});
  EXPECT_EQ(bench(bench_of(s, 2000)).exit_code(), 0) << "they are switched off again";
}

TEST(VfioUserFaultsAlone, ARemovedControllerIsGone) {
  Served s("model:capacity=64Mi");
  s.server->set_faults(only(model::Fault::removal, 0.01));
  EXPECT_EQ(bench(bench_of(s, 4000)).exit_code(), 2);
  EXPECT_EQ(s.faults_in_log()["removal"], 1u);
  EXPECT_TRUE(s.server->status()["gone"].get<bool>());
}

TEST(VfioUserClient, AServerThatGoesIsADeviceThatIsGone) {
  auto s = std::make_unique<Served>("model:capacity=64Mi");
  VfioUserController c(parse_vfio_user_spec("vfio-user:" + s->path), "served");
  EXPECT_EQ(c.read32(reg::vs), 0x00010400u);
  s->server.reset();
  EXPECT_EQ(c.read32(reg::vs), ~0u);
  EXPECT_TRUE(eventually([&] { return load_acquire(c.cpu_register(reg::csts)) == ~0u; }));
}

TEST(VfioUserClient, WhereNothingListens) {
  const std::string said = test::error_of(
      [] { VfioUserController(parse_vfio_user_spec("vfio-user:/tmp/no-such-socket"), "served"); },
      ExitCode::absent);
  test::expect_says(said, "no server listens at /tmp/no-such-socket");
  test::expect_says(test::error_of([] { (void)parse_vfio_user_spec("vfio-user:"); }), "path is missing");
  test::expect_says(test::error_of([] { (void)parse_vfio_user_spec("vfio-user:/x,memory=other"); }),
                    "memory");
}

TEST(VfioUserClient, ADeviceReset) {
  Served s("model:capacity=64Mi");
  VfioUserController c(parse_vfio_user_spec("vfio-user:" + s.path), "served");
  c.write64(reg::asq, 0x12345000);
  c.write32(reg::aqa, 0x00070007);
  EXPECT_EQ(c.read64(reg::asq), 0x12345000u);
  c.reset_device();
  EXPECT_EQ(c.read64(reg::asq), 0u);
  EXPECT_EQ(c.read32(reg::aqa), 0u);
}

TEST(VfioUserServed, LinesThatAreLeftOutAreNoFaults) {
  Served s("model:capacity=64Mi");
  for (int i = 0; i < 100; ++i) vfio_user::Client(s.path, "one of many", 10);
  EXPECT_TRUE(eventually([&] { return s.server->status()["log_lines_left_out"].get<u64>() > 0; }));
  EXPECT_EQ(s.server->status()["faults_not_logged"].get<u64>(), 0u);
}

/// A driver that has its queues in a file of its own, which it treats as it likes.
struct WithFile {
  WithFile() {
    EXPECT_EQ(ftruncate(file.get(), kBytes), 0);
    memory = static_cast<u8*>(mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_SHARED, file.get(), 0));
    EXPECT_EQ(client.map({.flags = 3, .offset = 0, .address = kAt, .size = kBytes}, file.get()), 0);
    write<u32>(reg::aqa, 0x001f001f);
    write<u64>(reg::asq, kAt);
    write<u64>(reg::acq, kAt + 0x1000);
    write<u32>(reg::cc, cc::enable | 6u << cc::iosqes_shift | 4u << cc::iocqes_shift);
    EXPECT_TRUE(eventually([&] { return csts() == csts::ready; }));
  }
  ~WithFile() { munmap(memory, kBytes); }
  template <class T>
  void write(u32 offset, T value) {
    EXPECT_EQ(client.write(vfio_user::Region::bar0, offset, vfio_user::bytes_of(value)), 0);
  }
  u32 csts() {
    u32 value = 0;
    EXPECT_EQ(client.read(vfio_user::Region::bar0, reg::csts, std::span(reinterpret_cast<u8*>(&value), 4)),
              0);
    return value;
  }
  void submit(Sqe e) {
    std::memcpy(memory + u64{tail} * kSqeBytes, &e, sizeof e);
    write<u32>(reg::doorbells, ++tail);
  }
  static constexpr u64 kBytes = 0x10000, kAt = 0x100000000;
  Served s{"model:capacity=64Mi"};
  vfio_user::Client client{s.path, "served", 10};
  Descriptor file{memfd_create("driver", MFD_CLOEXEC)};
  u8* memory = nullptr;
  u32 tail = 0;
};

TEST(VfioUserHostileDriver, AFileThatShrinksUnderItsQueues) {
  WithFile d;
  ASSERT_EQ(ftruncate(d.file.get(), 0), 0);
  d.write<u32>(reg::doorbells, 3);  // entries of zeros, whose completions go nowhere
  EXPECT_TRUE(eventually([&] {
    (void)d.client.unmap(1, 1);  // any command has the counts looked at
    return d.s.server->server().counts().files_lost == 1;
  }));
  EXPECT_EQ(d.client.reset(), 0);
  EXPECT_EQ(d.csts(), 0u);
}

TEST(VfioUserHostileDriver, AnAdminQueueThatIsUnmapped) {
  WithFile d;
  ASSERT_EQ(d.client.unmap(WithFile::kAt, WithFile::kBytes), 0);
  d.write<u32>(reg::doorbells, 1);
  EXPECT_TRUE(eventually([&] { return (d.csts() & csts::fatal) != 0; }));
  // It comes back, and so does the controller after a reset.
  ASSERT_EQ(d.client.map({.flags = 3, .offset = 0, .address = WithFile::kAt, .size = WithFile::kBytes},
                         d.file.get()),
            0);
  d.write<u32>(reg::cc, 0);
  EXPECT_TRUE(eventually([&] { return d.csts() == 0; }));
}

TEST(VfioUserHostileDriver, DataAtTheEndOfAllAddresses) {
  WithFile d;
  for (const u64 prp : {~u64{0} - 4095, ~u64{0} - 3, u64{0}}) {
    Sqe e = identify_command(static_cast<u16>(d.tail), Cns::controller, 0, prp);
    e.prp2 = ~u64{0} - 4095;
    const u32 at = d.tail;
    d.submit(e);
    const auto* done = reinterpret_cast<const Word16*>(d.memory + 0x1000) + at;
    ASSERT_TRUE(eventually([&] { return (decode_cqe(load16_acquire(done)).status & 1) != 0; }));
    EXPECT_NE(status_of(decode_cqe(load16_acquire(done))).type_and_code(), status::success) << prp;
  }
  d.submit(identify_command(9, Cns::controller, 0, WithFile::kAt + 0x2000));
  EXPECT_TRUE(eventually([&] { return d.memory[0x2000 + identify::serial] == 'D'; }));
}

TEST(VfioUserServed, TheSameMediaFileTwice) {
  char name[] = "/tmp/doorbell-media-XXXXXX";
  const int fd = mkstemp(name);
  ASSERT_GE(fd, 0);
  ASSERT_EQ(ftruncate(fd, 16 << 20), 0);
  close(fd);
  const std::string spec = "model:media=file:" + std::string(name);
  {
    Served first(spec);
    EXPECT_NE(test::error_of([&] { Served second(spec); }), "no error");
  }
  { Served again(spec); }
  std::filesystem::remove(name);
}

TEST(VfioUserServed, WhatCannotBeServed) {
  const auto said = [](const std::string& spec) { return test::error_of([&] { Served s(spec); }); };
  test::expect_says(said("qemu"), "only the software controller can be served");
  test::expect_says(said("model:engine=kernel-on-cpu"), "engine");
  test::expect_says(said("model:stride=4"), "one page");
}

}  // namespace
}  // namespace doorbell::nvme::conformance
