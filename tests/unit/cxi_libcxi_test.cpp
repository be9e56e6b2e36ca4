// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// The Cassini back end over a made-up libcxi (fake_libcxi.cpp): the calls, their order and arguments, the
// reverse order of tear-down, what errors say, and that nothing is left when any call fails.

#include <dlfcn.h>
#include <doorbell/error.hpp>
#include <doorbell/gpu.hpp>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <sstream>

#include "cxi/libcxi/device.hpp"
#include "cxi/libcxi/library.hpp"
#include "cxi/loopback.hpp"

namespace doorbell::cxi {
namespace {

namespace fs = std::filesystem;
using Call = CallError::Call;
using Lines = std::vector<std::string>;

/// The fake that DOORBELL_LIBCXI names.
template <class Function>
Function* in_fake(const char* name) {
  void* const library = ::dlopen(std::getenv("DOORBELL_LIBCXI"), RTLD_NOW | RTLD_LOCAL);
  return reinterpret_cast<Function*>(::dlsym(library, name));
}
Lines calls() {
  std::istringstream log(in_fake<const char*()>("fake_cxi_log")());
  Lines lines;
  for (std::string line; std::getline(log, line);) lines.push_back(line);
  return lines;
}
int alive() {
  return in_fake<int()>("fake_cxi_alive")();
}
void forget() {
  in_fake<void()>("fake_cxi_forget")();
}

/// What a call is said to have made, or to destroy: "cq1" of "alloc_cmdq(...) = cq1" or "destroy_cmdq(cq1)".
std::string made_by(const std::string& line) {
  const auto at = line.rfind(" = ");
  return at == std::string::npos ? "" : line.substr(at + 3);
}
std::string gone_by(const std::string& line) {
  const bool destroys =
      line.starts_with("destroy_") || line.starts_with("unmap") || line.starts_with("close_");
  const auto open = line.find('(');
  return destroys ? line.substr(open + 1, line.size() - open - 2) : "";
}

/// Everything that was made is gone, in the reverse order.
void expect_reverse_tear_down() {
  Lines made, gone;
  for (const std::string& line : calls()) {
    if (!made_by(line).empty()) made.push_back(made_by(line));
    if (!gone_by(line).empty()) gone.push_back(gone_by(line));
  }
  std::reverse(made.begin(), made.end());
  EXPECT_EQ(gone, made);
  EXPECT_EQ(alive(), 0);
}

struct Refusal {
  std::string said = "no error";
  std::string hint;
  ExitCode exit = ExitCode::ok;
  bool by_call = false;
  Call call = Call::other;
  int code = 0;
};
Refusal refusal_of(const std::function<void()>& action) {
  try {
    action();
  } catch (const CallError& e) {
    return {e.what(), e.hint(), e.code(), true, e.call(), e.errno_code()};
  } catch (const Error& e) {
    return {e.what(), e.hint(), e.code()};
  }
  return {};
}
void expect_says(const std::string& said, const std::string& part) {
  EXPECT_NE(said.find(part), std::string::npos) << "'" << said << "' does not say '" << part << "'";
}

/// A GPU that exports dma-bufs and lends its pages; "device" addresses of registered pages are shifted.
class FakeGpu final : public gpu::Gpu {
 public:
  static constexpr u64 kShift = u64{1} << 40;
  [[nodiscard]] const gpu::Info& info() const override { return info_; }
  [[nodiscard]] void* allocate(u64 bytes) override { return std::aligned_alloc(65536, bytes); }
  void free(void* p) noexcept override { std::free(p); }
  [[nodiscard]] void* allocate_pinned(u64 bytes) override { return std::aligned_alloc(4096, bytes); }
  void free_pinned(void* p) noexcept override { std::free(p); }
  [[nodiscard]] void* register_host(void* p, u64 bytes, bool mmio) override {
    if (mmio && refuse_registers) throw Error("registers", "not for this GPU", "another driver");
    registered.push_back({p, bytes, mmio});
    return static_cast<u8*>(p) + kShift;
  }
  void unregister_host(void* p) noexcept override {
    std::erase_if(registered, [&](const Given& g) { return g.p == p; });
    calls_at_release = calls();
  }
  void copy(void*, const void*, u64) override {}
  void copy(std::span<const gpu::Copy>) override {}
  void fill_zero(void*, u64) override {}
  void reach(gpu::Gpu&) override {}
  [[nodiscard]] gpu::Stream create_stream() override { return {}; }
  void destroy(gpu::Stream) noexcept override {}
  [[nodiscard]] gpu::Kernel kernel(const std::string&) override { return {}; }
  void launch(gpu::Kernel, const Launch&, gpu::Stream, std::span<void*>) override {}
  [[nodiscard]] bool finished(gpu::Stream) override { return true; }
  [[nodiscard]] bool wait(gpu::Stream, u64) override { return true; }
  [[nodiscard]] int export_dmabuf(void*, u64) override { return exported = ::dup(STDOUT_FILENO); }

  struct Given {
    void* p;
    u64 bytes;
    bool mmio;
  };
  std::vector<Given> registered;
  Lines calls_at_release;
  bool refuse_registers = false;
  int exported = -1;

 private:
  gpu::Info info_;
};

/// What the loopback tool makes, in its order; members go in the reverse one.
struct Loopback {
  explicit Loopback(u32 service = 1, u32 transfers = 15)
      : endpoint(device.open(service)),
        tx_events(endpoint->create_event_queue(u64{transfers + 1} * 64, Place::pageable)),
        source(device.allocate(Place::pageable, 8192, nullptr)),
        source_md(endpoint->map(source, Access::read_write)),
        transmit(endpoint->create_command_queue({.slots = 4 * transfers + 1})),
        counter(endpoint->create_counter(false, Place::pageable)),
        triggered(endpoint->create_command_queue(
            {.kind = CommandQueueKind::triggered, .slots = 1, .events = tx_events.get()})),
        rx_events(endpoint->create_event_queue(4096, Place::pageable)),
        sink(device.allocate(Place::pageable, 8192, nullptr)),
        sink_md(endpoint->map(sink, Access::read_write)),
        target(endpoint->create_command_queue({.kind = CommandQueueKind::target, .slots = 1})),
        entry(endpoint->create_portals_entry(*rx_events, 0)) {}

  LibcxiDevice device{"cxi0"};
  std::unique_ptr<Endpoint> endpoint;
  std::unique_ptr<EventQueueObject> tx_events;
  Region source;
  std::unique_ptr<MemoryDescriptor> source_md;
  std::unique_ptr<CommandQueueObject> transmit;
  std::unique_ptr<CounterObject> counter;
  std::unique_ptr<CommandQueueObject> triggered;
  std::unique_ptr<EventQueueObject> rx_events;
  Region sink;
  std::unique_ptr<MemoryDescriptor> sink_md;
  std::unique_ptr<CommandQueueObject> target;
  std::unique_ptr<PortalsEntry> entry;
};

class LibcxiFake : public testing::Test {
 protected:
  void SetUp() override {
    for (const char* name : kVariables) ::unsetenv(name);
    use(FAKE_LIBCXI);
  }
  void TearDown() override {
    if (fs::exists(std::getenv("DOORBELL_LIBCXI"))) {
      EXPECT_EQ(alive(), 0);
    }
    for (const char* name : kVariables) ::unsetenv(name);
  }
  static void set(const char* name, const std::string& value) { ::setenv(name, value.c_str(), 1); }
  static void use(const char* library) {
    set("DOORBELL_LIBCXI", library);
    if (fs::exists(library)) forget();
  }

 private:
  static constexpr std::array kVariables = {"DOORBELL_LIBCXI", "FAKE_CXI_FAIL", "FAKE_CXI_WRONG",
                                            "FAKE_CXI_SERVICES"};
};

// --- the order of calls ------------------------------------------------------------------------------

TEST_F(LibcxiFake, LoopbackCallsInTheToolsOrder) {
  { const Loopback all; }
  const Lines made = {
      "open_device(0) = dev1",
      "get_svc(dev1, 1)",
      "alloc_lni(dev1, 1) = lni1",
      "alloc_domain(lni1, vni 1, pid 511) = domain1",
      "alloc_trig_cp of type 2:",
      "alloc_cp(lni1, vni 1, tc 3.0) = cp1",
      "map(lni1, 4096 bytes, flags 13, hints none) = md1",
      "alloc_evtq(lni1, md1, 4096 aligned bytes, flags 64, waits none none) = eq1",
      "map(lni1, 8192 bytes, flags 13, hints none) = md2",
      "alloc_cmdq(lni1, none, 61 slots, policy 0, pool 0, flags 2, lcid 5, threshold 0) = cq1",
      "alloc_ct(lni1, write-back none) = ct1",
      "alloc_cmdq(lni1, eq1, 1 slots, policy 0, pool 0, flags 10, lcid 5, threshold 0) = cq2",
      "map(lni1, 4096 bytes, flags 13, hints none) = md3",
      "alloc_evtq(lni1, md3, 4096 aligned bytes, flags 64, waits none none) = eq2",
      "map(lni1, 8192 bytes, flags 13, hints none) = md4",
      "alloc_cmdq(lni1, none, 1 slots, policy 0, pool 0, flags 0, lcid 0, threshold 0) = cq3",
      "alloc_pte(lni1, eq2, options 0) = pte1",
      "map_pte(pte1, domain1, offset 0, unicast) = ptemap1",
  };
  const Lines gone = {
      "unmap_pte(ptemap1)", "destroy_pte(pte1)",       "destroy_cmdq(cq3)",
      "unmap(md4)",         "destroy_evtq(eq2)",       "unmap(md3)",
      "destroy_cmdq(cq2)",  "destroy_ct(ct1)",         "destroy_cmdq(cq1)",
      "unmap(md2)",         "destroy_evtq(eq1)",       "unmap(md1)",
      "destroy_cp(cp1)",    "destroy_domain(domain1)", "destroy_lni(lni1)",
      "close_device(dev1)",
  };
  Lines expected = made;
  expected.insert(expected.end(), gone.begin(), gone.end());
  EXPECT_EQ(calls(), expected);
}

/// cxi_gpu_loopback_bw's own code: the same order, with an event queue for each command queue and a
/// write-back. No device answers, so it ends at the first event that it waits for.
TEST_F(LibcxiFake, TheLoopbackCommandMakesThemInThatOrder) {
  {
    LibcxiDevice device("cxi0");
    const auto endpoint = device.open(1);
    LoopbackOptions o;
    o.puts = 8192;
    o.bytes = 8192;
    try {
      (void)run_loopback(device, *endpoint, o);
      ADD_FAILURE() << "it ran without a device";
    } catch (const LoopbackError& e) {
      EXPECT_EQ(e.failure().kind, LoopbackFailure::Kind::timeout);
      EXPECT_EQ(e.failure().expected, EventType::state_change);
    }
  }
  Lines made;
  for (const std::string& line : calls())
    if (gone_by(line).empty()) made.push_back(line);
  EXPECT_EQ(made,
            (Lines{
                "open_device(0) = dev1",
                "get_svc(dev1, 1)",
                "alloc_lni(dev1, 1) = lni1",
                "alloc_domain(lni1, vni 1, pid 511) = domain1",
                "alloc_trig_cp of type 2:",
                "alloc_cp(lni1, vni 1, tc 3.0) = cp1",
                "map(lni1, 528384 bytes, flags 13, hints none) = md1",
                "alloc_evtq(lni1, md1, 528384 aligned bytes, flags 64, waits none none) = eq1",
                "map(lni1, 8192 bytes, flags 9, hints none) = md2",
                "alloc_cmdq(lni1, eq1, 32769 slots, policy 0, pool 0, flags 2, lcid 5, threshold 0) = cq1",
                "alloc_ct(lni1, write-back given) = ct1",
                "alloc_cmdq(lni1, eq1, 1 slots, policy 0, pool 0, flags 10, lcid 5, threshold 0) = cq2",
                "map(lni1, 4096 bytes, flags 13, hints none) = md3",
                "alloc_evtq(lni1, md3, 4096 aligned bytes, flags 64, waits none none) = eq2",
                "map(lni1, 8192 bytes, flags 5, hints none) = md4",
                "alloc_cmdq(lni1, eq2, 1 slots, policy 0, pool 0, flags 0, lcid 0, threshold 0) = cq3",
                "alloc_pte(lni1, eq2, options 0) = pte1",
                "map_pte(pte1, domain1, offset 0, unicast) = ptemap1",
            }));
  expect_reverse_tear_down();
}

TEST_F(LibcxiFake, TheEventQueueOfTheToolsDefaultHas528384Bytes) {
  const LibcxiDevice d("cxi0");
  const auto e = LibcxiDevice("cxi0").open(1);
  const auto q = e->create_event_queue(u64{8192 + 1} * 64, Place::pageable);
  EXPECT_EQ(q->memory(Initiator::cpu).bytes, 528384u);
}

TEST_F(LibcxiFake, ObjectsKeepWhatTheyWereMadeFrom) {
  std::unique_ptr<CommandQueueObject> q;
  {
    LibcxiDevice d("cxi0");
    const auto e = d.open(1);
    q = e->create_command_queue({});
  }
  EXPECT_EQ(alive(), 5);  // device, LNI, domain, profile, queue
  q.reset();
  expect_reverse_tear_down();
}

TEST_F(LibcxiFake, EveryRefusedCallIsNamedAndLeavesNothing) {
  struct Case {
    const char* call;
    Call kind;
    const char* what;
  };
  for (const auto& [call, kind, what] : {
           Case{"open_device", Call::open, "CXI device cxi0"},
           Case{"get_svc", Call::service, "service 1 of cxi0"},
           Case{"alloc_lni", Call::other, "an LNI of service 1 of cxi0"},
           Case{"alloc_domain", Call::other, "a domain in VNI 1 of cxi0"},
           Case{"alloc_trig_cp", Call::other, "a communication profile in VNI 1 of cxi0"},
           Case{"map", Call::map, "mapping 4096 bytes of pageable memory for cxi0"},
           Case{"alloc_evtq", Call::other, "an event queue of 4096 bytes on cxi0"},
           Case{"map#2", Call::map, "mapping 8192 bytes"},
           Case{"alloc_cmdq", Call::other, "a command queue of 61 slots on cxi0"},
           Case{"alloc_ct", Call::other, "a counter on cxi0"},
           Case{"alloc_cmdq#2", Call::other, "a command queue of 1 slots on cxi0"},
           Case{"map#3", Call::map, "mapping 4096 bytes"},
           Case{"alloc_evtq#2", Call::other, "an event queue"},
           Case{"map#4", Call::map, "mapping 8192 bytes"},
           Case{"alloc_cmdq#3", Call::other, "a command queue of 1 slots on cxi0"},
           Case{"alloc_pte", Call::other, "a portals entry on cxi0"},
           Case{"map_pte", Call::other, "portals entry 40 at offset 0 of PID 321 on cxi0"},
       }) {
    SCOPED_TRACE(call);
    forget();
    set("FAKE_CXI_FAIL", std::string(call) + "=71");
    const Refusal r = refusal_of([] { const Loopback all; });
    EXPECT_TRUE(r.by_call);
    EXPECT_EQ(r.call, kind);
    EXPECT_EQ(r.code, EPROTO);
    EXPECT_EQ(r.exit, ExitCode::usage);
    expect_says(r.said, std::string(what));
    expect_says(r.said, "Protocol error");
    expect_reverse_tear_down();
  }
}

TEST_F(LibcxiFake, ARefusalToDestroyDoesNotStopTheRest) {
  for (const char* call : {"destroy_cmdq", "unmap", "destroy_lni", "unmap_pte"}) {
    set("FAKE_CXI_FAIL", std::string(call) + "=16");
    { const Loopback all; }
    EXPECT_EQ(alive(), 0) << call;
  }
}

TEST_F(LibcxiFake, HintsFitTheErrno) {
  const auto hint = [](const std::string& fail) {
    set("FAKE_CXI_FAIL", fail);
    return refusal_of([] { const Loopback all; }).hint;
  };
  expect_says(hint("map=12"), "ulimit -l");
  expect_says(hint("alloc_lni=1"), "members");
  expect_says(hint("alloc_cmdq=28"), "limits");
  expect_says(hint("get_svc=22"), "cxi_service list");
  expect_says(hint("open_device=13"), "/dev/cxi0, readable and writable");
}

// --- names, the library, the device ------------------------------------------------------------------

TEST_F(LibcxiFake, NamesAreCxiAndANumber) {
  EXPECT_EQ(cxi_device_number("cxi0"), 0u);
  EXPECT_EQ(cxi_device_number("cxi4294967295"), 4294967295u);
  EXPECT_EQ(LibcxiDevice("cxi4294967295").name(), "cxi4294967295");
  EXPECT_EQ(LibcxiDevice("cxi003").name(), "cxi3");
  EXPECT_TRUE(libcxi_accepts("cxi4294967296")) << "it is for this back end to refuse";
  for (const char* bad : {"cxi4294967296", "cxi99999999999999999999", "cxi", "cxi-1", "cxi+1", "cxi1x",
                          "cxi 1", "cxi0x1", "mlx5_0", "", "cxi-model0"}) {
    const Refusal r = refusal_of([&] { LibcxiDevice d(bad); });
    EXPECT_EQ(r.exit, ExitCode::usage) << bad;
    expect_says(r.said, "0..4294967295");
  }
  for (const char* other : {"cxi", "cxi-model0", "cxi-1", "model", ""}) EXPECT_FALSE(libcxi_accepts(other));
}

TEST_F(LibcxiFake, AnAbsentDeviceIsAbsentHardware) {
  const Refusal r = refusal_of([] { LibcxiDevice d("cxi7"); });
  EXPECT_TRUE(r.by_call);
  EXPECT_EQ(r.call, Call::open);
  EXPECT_EQ(r.code, ENOENT);
  EXPECT_EQ(r.exit, ExitCode::absent);
  EXPECT_EQ(r.said, "CXI device cxi7: No such file or directory");
  for (const int code : {ENODEV, ENXIO}) {
    set("FAKE_CXI_FAIL", "open_device=" + std::to_string(code));
    EXPECT_EQ(refusal_of([] { LibcxiDevice d("cxi0"); }).exit, ExitCode::absent);
  }
}

TEST_F(LibcxiFake, WithoutTheLibrary) {
  use("/nonexistent/libcxi.so.1");
  const Refusal r = refusal_of([] { LibcxiDevice d("cxi0"); });
  EXPECT_TRUE(r.by_call);
  EXPECT_EQ(r.call, Call::open);
  EXPECT_EQ(r.exit, ExitCode::absent);
  expect_says(r.said, "libcxi.so.1 cannot be loaded");
  expect_says(r.hint, "install libcxi");
  EXPECT_FALSE(libcxi_status().usable);
  expect_says(libcxi_status().detail, "libcxi.so.1 cannot be loaded");
}

TEST_F(LibcxiFake, BeforeVersion12ItIsTooOld) {
  use(FAKE_LIBCXI_1_1);
  const Refusal r = refusal_of([] { LibcxiDevice d("cxi0"); });
  EXPECT_EQ(r.call, Call::open);
  EXPECT_EQ(r.exit, ExitCode::absent);
  expect_says(r.said, "it has no function cxil_get_svc");
  expect_says(r.hint, "too old");
  expect_says(libcxi_status().detail, "cxil_get_svc");
}

TEST_F(LibcxiFake, BeforeVersion19ProfilesAreForEveryQueue) {
  use(FAKE_LIBCXI_1_8);
  { const Loopback all; }
  const Lines lines = calls();
  EXPECT_EQ(std::count(lines.begin(), lines.end(), "alloc_trig_cp of type 2:"), 0);
  EXPECT_EQ(std::count(lines.begin(), lines.end(), "alloc_cp(lni1, vni 1, tc 3.0) = cp1"), 1);
  expect_reverse_tear_down();
  forget();
  set("FAKE_CXI_FAIL", "alloc_cp=28");
  EXPECT_EQ(refusal_of([] { const Loopback all; }).code, ENOSPC);
  expect_reverse_tear_down();
}

TEST_F(LibcxiFake, StatusNamesDevicesAndObstacles) {
  const fs::path root = fs::temp_directory_path() / ("doorbell-cxi-" + std::to_string(::getpid()));
  const auto device = [&](const std::string& name, bool file) {
    fs::create_directories(root / "sys/class/cxi" / name);
    fs::create_directory_symlink("../../../devices/0000:c1:00.0", root / "sys/class/cxi" / name / "device");
    fs::create_directories(root / "dev");
    if (file) std::ofstream(root / "dev" / name) << "";
  };
  EXPECT_TRUE(cxi_devices(root).empty());
  EXPECT_FALSE(libcxi_status(root).usable);
  expect_says(libcxi_status(root).detail, "no CXI device");
  expect_says(libcxi_status(root).detail, "sys/class/cxi");
  device("cxi10", false);
  EXPECT_FALSE(libcxi_status(root).usable);
  expect_says(libcxi_status(root).detail, "cxi10 (0000:c1:00.0) cannot be opened: ");
  expect_says(libcxi_status(root).detail, "dev/cxi10: No such file or directory");
  device("cxi2", true);
  const std::vector<CxiDeviceFacts> all = cxi_devices(root);
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(all[0].name, "cxi2") << "by number";
  EXPECT_EQ(all[0].pci_address, "0000:c1:00.0");
  EXPECT_EQ(all[0].obstacle, "");
  EXPECT_TRUE(libcxi_status(root).usable);
  EXPECT_TRUE(libcxi_status(root).detail.starts_with("cxi2 (0000:c1:00.0); cxi10"));
  EXPECT_TRUE(libcxi_status(root).detail.ends_with("not yet run on hardware"));
  fs::remove_all(root);
}

TEST_F(LibcxiFake, DeviceFacts) {
  const auto gpu = std::make_shared<FakeGpu>();
  const auto opened = open_libcxi({.spec = "cxi0", .gpus = {gpu}});
  EXPECT_EQ(opened->kind(), "hardware");
  EXPECT_EQ(opened->name(), "cxi0");
  EXPECT_TRUE(opened->limits().gpu_memory);
  EXPECT_TRUE(opened->limits().gpu_initiator);
  EXPECT_EQ(opened->limits().max_slots, 65536u);
  EXPECT_FALSE(LibcxiDevice("cxi0").limits().gpu_memory);
  EXPECT_FALSE(LibcxiDevice("cxi0").limits().gpu_initiator);
  const Address a = opened->open(1)->address();
  EXPECT_EQ(a.nid, 0x12345u);
  EXPECT_EQ(a.pid, 321u);
  EXPECT_EQ(a.pid_bits, 9u);
  EXPECT_EQ(a.vni, 1u);
}

// --- services ----------------------------------------------------------------------------------------

TEST_F(LibcxiFake, ServicesTellTheVni) {
  LibcxiDevice d("cxi0");
  const auto vni_of = [&](const char* services, u32 service) {
    set("FAKE_CXI_SERVICES", services);
    forget();
    return d.open(service)->address().vni;
  };
  EXPECT_EQ(vni_of("1=10", 1), 10u);
  EXPECT_EQ(vni_of("1=10,5=70", 5), 70u);
  EXPECT_EQ(calls()[0], "get_svc(dev1, 5)");
  EXPECT_EQ(calls()[1], "alloc_lni(dev1, 5) = lni1") << "service 1 has nothing to say";
  EXPECT_EQ(vni_of("1=any,5=any", 5), 1u);
  EXPECT_EQ(calls()[1], "get_svc(dev1, 1)");
  EXPECT_EQ(calls()[2], "alloc_lni(dev1, 5) = lni1");
  EXPECT_EQ(vni_of("1=65535,5=any", 5), 65535u) << "the default service's VNI";
  EXPECT_EQ(vni_of("1=any", 1), 1u);
}

TEST_F(LibcxiFake, ServicesWithoutAVniAreRefused) {
  LibcxiDevice d("cxi0");
  const auto refused = [&](const char* services, u32 service) {
    set("FAKE_CXI_SERVICES", services);
    return refusal_of([&] { (void)d.open(service); });
  };
  expect_says(refused("1=0", 1).said, "service 1 of cxi0: its first VNI is 0");
  expect_says(refused("1=10,5=0", 5).said, "service 5 of cxi0: its first VNI is 0");
  expect_says(refused("1=0,5=any", 5).said, "service 1 of cxi0: its first VNI is 0");
  const Refusal unknown = refused("1=any", 6);
  EXPECT_EQ(unknown.call, Call::service);
  EXPECT_EQ(unknown.code, EINVAL);
  EXPECT_EQ(unknown.said, "service 6 of cxi0: Invalid argument");
  const Refusal without_default = refused("5=any", 5);
  EXPECT_EQ(without_default.call, Call::service);
  expect_says(without_default.said, "service 1 of cxi0");
}

// --- structures of another shape ---------------------------------------------------------------------

TEST_F(LibcxiFake, FieldsThatLookWrongAreNamed) {
  struct Case {
    const char* wrong;
    const char* says;
  };
  for (const auto& [wrong, says] : {
           Case{"dev.id=9", "device that libcxi has made: its number is 9, not 0"},
           Case{"dev.nid=0x100000", "its NID is 1048576, not in 0..1048575"},
           Case{"dev.pid_bits=5", "its PID bits is 5, not in 6..9"},
           Case{"dev.pid_bits=10", "its PID bits is 10"},
           Case{"domain.vni=2", "domain that libcxi has made: its VNI is 2, not 1"},
           Case{"domain.pid=512", "its PID is 512, not in 0..511"},
           Case{"cp.vni=3", "communication profile that libcxi has made: its VNI is 3"},
           Case{"cp.lcid=16", "its LCID is 16, not in 0..15"},
           Case{"md.lac=8", "memory descriptor that libcxi has made: its address context is 8"},
           Case{"md.len=4096", "its range is 4096 bytes"},
           Case{"md.va=+8192", "do not cover"},
           Case{"md.va=0", "do not cover"},
           Case{"eq.byte_size=64", "event queue that libcxi has made: its size is 64, not 4096"},
           Case{"eq.events=+64", "its buffer is"},
           Case{"eq.rd_offset=0", "its read offset is 0, not 64"},
           Case{"eq.prev_rd_offset=0", "its previous read offset is 0, not 64"},
           Case{"eq.eqn=0", "its index is 0, not in 1..2047"},
           Case{"eq.eqn=2048", "its index is 2048"},
           Case{"eq.csr=0", "its register is"},
           Case{"eq.csr=+4", "its register is"},
           Case{"cq.size=65", "command queue that libcxi has made: its size32 is 128, not 130"},
           Case{"cq.size32=129", "its size32 is 129, no power of two"},
           Case{"cq.wp32=9", "its wp32 is 9, not 8"},
           Case{"cq.hw_wp32=0", "its hw_wp32 is 0, not 8"},
           Case{"cq.rp32=0", "its rp32 is 0, not 8"},
           Case{"cq.idx=1536", "its index is 1536, not in 0..1535"},
           Case{"cq.wp_addr=0", "its launch page is"},
           Case{"cq.wp_addr=+8", "its launch page is"},
           Case{"cq.ll_64=+64", "64-byte window's offset is 1088, not 1024"},
           Case{"cq.ll_128a=+4096", "aligned 128-byte window's offset is 6144, not 2048"},
           Case{"cq.ll_128u=+64", "unaligned 128-byte window's offset is 3136, not 3072"},
           Case{"cq.ring=0", "its ring is"},
           Case{"cq.ring=+16", "its ring is"},
           Case{"status.rd_ptr=0", "its status' read pointer is 0, not 4"},
           Case{"status.return_code=0", "its status' return code is 0, not 1"},
           Case{"ct.doorbell=0", "counter that libcxi has made: its doorbell page is"},
           Case{"ct.doorbell=+64", "its doorbell page is"},
           Case{"ct.ctn=0", "its index is 0, not in 1..2047"},
           Case{"ct.wb=+8", "its write-back is"},
           Case{"pte.ptn=2048", "portals entry that libcxi has made: its index is 2048"},
       }) {
    SCOPED_TRACE(wrong);
    forget();
    set("FAKE_CXI_WRONG", wrong);
    const Refusal r = refusal_of([] { const Loopback all; });
    EXPECT_FALSE(r.by_call);
    EXPECT_EQ(r.exit, ExitCode::usage);
    expect_says(r.said, says);
    expect_says(r.hint, "lays its structures out otherwise");
    expect_reverse_tear_down();
  }
}

// --- queues and counters -----------------------------------------------------------------------------

TEST_F(LibcxiFake, QueuesAreWhereTheLibrarySays) {
  Loopback all;
  const CommandQueueMemory t = all.transmit->memory(Initiator::cpu);
  EXPECT_EQ(t.slots, 64u);
  EXPECT_EQ(t.index, 20u);
  EXPECT_FALSE(t.triggered);
  EXPECT_EQ(t.ring->w[0] & 0xffff, 4u) << "the status, in slot 0";
  EXPECT_EQ(reinterpret_cast<u64>(t.launch) % 4096, 0u);
  EXPECT_TRUE(all.triggered->memory(Initiator::cpu).triggered);
  EXPECT_EQ(all.target->memory(Initiator::cpu).index, 1044u);
  const EventQueueMemory e = all.tx_events->memory(Initiator::cpu);
  EXPECT_EQ(e.bytes, 4096u);
  EXPECT_EQ(e.index, 11u);
  EXPECT_NE(e.events, nullptr);
  EXPECT_EQ(*e.csr, 0u);
  EXPECT_EQ(all.entry->index(), 40u);
}

TEST_F(LibcxiFake, CountersBeginAtZero) {
  LibcxiDevice d("cxi0");
  const auto e = d.open(1);
  const auto plain = e->create_counter(false, Place::pageable);
  const CounterMemory m = plain->memory(Initiator::cpu);
  EXPECT_EQ(m.index, 30u);
  EXPECT_EQ(m.writeback, nullptr);
  constexpr u64 kUntouched = ~u64{0};
  EXPECT_EQ(m.doorbell[0], kUntouched);
  EXPECT_EQ(m.doorbell[8], kUntouched);
  EXPECT_EQ(m.doorbell[16], 0u);
  EXPECT_EQ(m.doorbell[24], 0u);
  const auto written = e->create_counter(true, Place::pageable);
  ASSERT_NE(written->memory(Initiator::cpu).writeback, nullptr);
  EXPECT_EQ(*written->memory(Initiator::cpu).writeback, 0u);
  EXPECT_EQ(calls().back(), "alloc_ct(lni1, write-back given) = ct2") << "without a memory descriptor";
}

TEST_F(LibcxiFake, SizesArePutToTheTestFirst) {
  LibcxiDevice d("cxi0");
  const auto e = d.open(1);
  forget();
  expect_says(refusal_of([&] { (void)e->create_command_queue({.slots = 0}); }).said, "1..65536");
  expect_says(refusal_of([&] { (void)e->create_command_queue({.slots = 65537}); }).said, "1..65536");
  expect_says(refusal_of([&] { (void)e->create_event_queue(0, Place::pageable); }).said, "1..2147483648");
  expect_says(refusal_of([&] { (void)e->create_event_queue((u64{1} << 31) + 1, Place::pageable); }).said,
              "1..2147483648");
  expect_says(refusal_of([&] { (void)e->create_event_queue(4096, Place::gpu); }).said, "libcxi clears it");
  for (const Place place : {Place::gpu, Place::pinned, Place::huge_2m, Place::huge_1g})
    expect_says(refusal_of([&] { (void)e->create_command_queue({.queue_memory = place}); }).hint,
                "--queue-mem host");
  EXPECT_TRUE(calls().empty()) << "the library was not asked";
  EXPECT_EQ(e->create_command_queue({.slots = 65536})->memory(Initiator::cpu).slots, 65536u);
}

// --- memory ------------------------------------------------------------------------------------------

TEST_F(LibcxiFake, MemoryIsMappedForWhatItIsFor) {
  LibcxiDevice d("cxi0");
  const auto e = d.open(1);
  const Region region = d.allocate(Place::pageable, 8192, nullptr);
  forget();
  const auto both = e->map(region, Access::read_write);
  EXPECT_EQ(both->iova(), 0x7000'0000'0000 + reinterpret_cast<u64>(region.host()))
      << "of the region's first byte, not of the descriptor's";
  EXPECT_EQ(both->lac(), 3u);
  EXPECT_EQ(both->bytes(), 8192u);
  const auto source = e->map(region, Access::read);
  const auto sink = e->map(region, Access::write);
  const Lines expected = {"map(lni1, 8192 bytes, flags 13, hints none) = md1",
                          "map(lni1, 8192 bytes, flags 9, hints none) = md2",
                          "map(lni1, 8192 bytes, flags 5, hints none) = md3"};
  EXPECT_EQ(calls(), expected);
}

TEST_F(LibcxiFake, HugePagesAreHostMemory) {
  LibcxiDevice d("cxi0");
  const auto e = d.open(1);
  constexpr u64 kBytes = u64{2} << 20;
  for (const Place place : {Place::huge_2m, Place::huge_1g}) {
    // Whether the machine has huge pages is not the question: the region says that these are.
    auto* const base = static_cast<u8*>(std::aligned_alloc(kBytes, kBytes));
    const Region region(place, {.base = base, .bytes = kBytes, .free = [](u8* p, u64) { std::free(p); }});
    forget();
    EXPECT_EQ(e->map(region, Access::read_write)->bytes(), kBytes);
    EXPECT_EQ(calls()[0], "map(lni1, 2097152 bytes, flags 13, hints none) = md1");
  }
}

TEST_F(LibcxiFake, GpuMemoryIsMappedAsADmaBufOfItsOwnGpu) {
  const auto first = std::make_shared<FakeGpu>();
  const auto second = std::make_shared<FakeGpu>();
  LibcxiDevice d("cxi0", {first, second});
  const auto e = d.open(1);
  const Region region = d.allocate(Place::gpu, 65536, second);
  forget();
  {
    const auto md = e->map(region, Access::read_write);
    EXPECT_EQ(calls()[0], "map(lni1, 65536 bytes, flags 525, hints dma-buf open +0) = md1");
    EXPECT_EQ(md->iova(), 0x7000'0000'0000 + reinterpret_cast<u64>(region.device()));
  }
  EXPECT_EQ(first->exported, -1);
  struct stat s;
  EXPECT_NE(::fstat(second->exported, &s), 0) << "the dma-buf is still open";
  set("FAKE_CXI_FAIL", "map=95");
  const Refusal r = refusal_of([&] { (void)e->map(region, Access::read); });
  EXPECT_EQ(r.call, Call::map);
  expect_says(r.said, "mapping 65536 bytes of GPU memory for cxi0");
  expect_says(r.hint, "dma-buf");
  EXPECT_NE(::fstat(second->exported, &s), 0) << "the dma-buf is still open";
}

// --- queues driven by a GPU --------------------------------------------------------------------------

TEST_F(LibcxiFake, AGpuIsGivenRingsAndRegisters) {
  const auto gpu = std::make_shared<FakeGpu>();
  LibcxiDevice d("cxi0", {gpu});
  const auto e = d.open(1);
  {
    const auto q = e->create_command_queue({.slots = 128});
    const CommandQueueMemory cpu = q->memory(Initiator::cpu);
    EXPECT_TRUE(gpu->registered.empty());
    const CommandQueueMemory m = q->memory(Initiator::gpu);
    EXPECT_EQ(reinterpret_cast<u8*>(m.ring), reinterpret_cast<u8*>(cpu.ring) + FakeGpu::kShift);
    EXPECT_EQ(m.launch, cpu.launch + FakeGpu::kShift);
    EXPECT_EQ(m.slots, 128u);
    (void)q->memory(Initiator::gpu);
    ASSERT_EQ(gpu->registered.size(), 2u) << "once each";
    EXPECT_EQ(gpu->registered[0].bytes, 128u * 64);
    EXPECT_FALSE(gpu->registered[0].mmio);
    EXPECT_EQ(gpu->registered[1].p, cpu.launch);
    EXPECT_EQ(gpu->registered[1].bytes, 4096u);
    EXPECT_TRUE(gpu->registered[1].mmio);
  }
  EXPECT_TRUE(gpu->registered.empty());
  EXPECT_EQ(gone_by(gpu->calls_at_release.back()), "") << "before the library unmaps them";
  EXPECT_EQ(calls().back(), "destroy_cmdq(cq1)");

  const auto events = e->create_event_queue(4096, Place::pageable);
  const EventQueueMemory eq = events->memory(Initiator::gpu);
  EXPECT_EQ(eq.events, events->memory(Initiator::cpu).events) << "pinned memory, at one address for both";
  ASSERT_EQ(gpu->registered.size(), 1u);
  EXPECT_TRUE(gpu->registered[0].mmio);
  const auto counter = e->create_counter(true, Place::pageable);
  const CounterMemory ct = counter->memory(Initiator::gpu);
  EXPECT_NE(ct.writeback, nullptr);
  EXPECT_EQ(gpu->registered.size(), 2u);
  EXPECT_TRUE(gpu->registered[1].mmio);
}

TEST_F(LibcxiFake, AWritebackInGpuMemoryIsForTheGpu) {
  const auto gpu = std::make_shared<FakeGpu>();
  LibcxiDevice d("cxi0", {gpu});
  const auto e = d.open(1);
  const auto counter = e->create_counter(true, Place::gpu);
  EXPECT_NE(counter->memory(Initiator::gpu).writeback, nullptr);
  expect_says(refusal_of([&] { (void)counter->memory(Initiator::cpu); }).said, "a CPU cannot read");
}

TEST_F(LibcxiFake, AGpuThatCannotReachRegistersSaysSo) {
  const auto gpu = std::make_shared<FakeGpu>();
  gpu->refuse_registers = true;
  {
    LibcxiDevice d("cxi0", {gpu});
    const auto e = d.open(1);
    const auto q = e->create_command_queue({});
    const Refusal r = refusal_of([&] { (void)q->memory(Initiator::gpu); });
    EXPECT_EQ(r.said, "a GPU's access to the queues of cxi0: registers: not for this GPU");
    EXPECT_EQ(r.hint, "another driver");
  }
  EXPECT_TRUE(gpu->registered.empty());
  Loopback none;
  for (const auto& reach :
       std::initializer_list<std::function<void()>>{[&] { (void)none.transmit->memory(Initiator::gpu); },
                                                    [&] { (void)none.tx_events->memory(Initiator::gpu); },
                                                    [&] { (void)none.counter->memory(Initiator::gpu); }}) {
    const Refusal r = refusal_of(reach);
    expect_says(r.said, "a GPU cannot reach them");
    expect_says(r.hint, "open the device with a GPU");
  }
}

}  // namespace
}  // namespace doorbell::cxi
