// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// The back end for a ConnectX's own queues with a fake libmlx5 (fake_mlx5.cpp): what it refuses, where the
// queues lie, and that QueuePair writes what libmlx5's own structures require.

#include <dlfcn.h>
#include <doorbell/error.hpp>
#include <doorbell/gpu.hpp>
#include <doorbell/rdma/mlx5.hpp>
#include <doorbell/rdma/queue_pair.hpp>
#include <endian.h>
#include <gtest/gtest.h>
#include <infiniband/mlx5dv.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <functional>

#include "errors.hpp"
#include "formats.hpp"
#include "idle_gpu.hpp"
#include "rdma/backends.hpp"
#include "rdma/mlx5dv/nic.hpp"

namespace doorbell::rdma {
namespace {

namespace fs = std::filesystem;
using test::error_of;
using test::expect_says;
using Queue = QueuePair<OneLane, Mlx5>;
constexpr OneLane kLane;
constexpr u64 kPage = 4096;

template <class Function>
Function* in_fake(const char* name) {
  static void* library = ::dlopen(FAKE_MLX5, RTLD_NOW | RTLD_LOCAL);
  return reinterpret_cast<Function*>(::dlsym(library, name));
}
int alive(const char* what) {
  return in_fake<int(const char*)>("fake_verbs_alive")(what);
}
long last(const char* what) {
  return in_fake<long(const char*)>("fake_verbs_last")(what);
}
u64* the_register() {
  return static_cast<u64*>(in_fake<void*()>("fake_mlx5_register")());
}
void set(const char* name, const char* value) {
  ::setenv(name, value, 1);
}

/// A GPU that sees host memory at other addresses, and takes no page twice.
class FakeGpu final : public IdleGpu {
 public:
  static constexpr u64 kShift = u64{1} << 40;
  struct Registered {
    u64 begin;
    u64 bytes;
    bool mmio;
  };
  std::vector<Registered> registered;
  u32 calls = 0;
  u32 fail_at = 0;  ///< this call of register_host, from 1

  [[nodiscard]] void* register_host(void* p, u64 bytes, bool mmio) override {
    if (++calls == fail_at) throw Error("register", "not permitted", "PeerMappingOverride");
    const auto begin = reinterpret_cast<u64>(p);
    EXPECT_EQ(begin % kPage, 0u);
    EXPECT_EQ(bytes % kPage, 0u);
    for (const Registered& r : registered)
      EXPECT_TRUE(begin + bytes <= r.begin || r.begin + r.bytes <= begin) << "a page is registered twice";
    registered.push_back({begin, bytes, mmio});
    return reinterpret_cast<void*>(begin + kShift);
  }
  void unregister_host(void* p) noexcept override {
    EXPECT_EQ(::msync(p, kPage, MS_ASYNC), 0) << "the queue pair went before its mapping";
    EXPECT_EQ(
        std::erase_if(registered, [p](const Registered& r) { return r.begin == reinterpret_cast<u64>(p); }),
        1u);
  }
};

class Mlx5Fake : public testing::Test {
 protected:
  void SetUp() override {
    for (const char* name :
         {"FAKE_VERBS_DEVICES", "FAKE_VERBS_FAIL", "FAKE_MLX5_SET", "FAKE_MLX5_FAIL", "MLX5_SHUT_UP_BF"})
      ::unsetenv(name);
    set("DOORBELL_LIBIBVERBS", FAKE_MLX5);
    set("DOORBELL_LIBMLX5", FAKE_MLX5);
    root_ = fs::temp_directory_path() / ("doorbell-mlx5-" + std::to_string(::getpid()));
    fs::create_directories(root_ / "driver/mlx5_core");
    fs::create_directories(root_ / "class/infiniband/mlx5_0/device");
    fs::create_symlink(root_ / "driver/mlx5_core", root_ / "class/infiniband/mlx5_0/device/driver");
    *the_register() = 0;
  }
  void TearDown() override {
    fs::remove_all(root_);
    for (const char* what : {"device", "context", "pd", "mr", "cq", "qp"})
      EXPECT_EQ(alive(what), 0) << what << " is left";
  }
  VerbsConfig config() {
    VerbsConfig c = parse_verbs_spec("verbs");
    c.sysfs = root_;
    return c;
  }

  fs::path root_;
};

TEST_F(Mlx5Fake, WithoutTheLibrary) {
  const auto opened = [&] { return error_of([&] { Mlx5Nic d(config()); }, ExitCode::absent); };
  set("DOORBELL_LIBMLX5", "/nonexistent/libmlx5.so.1");
  expect_says(opened(), "libmlx5.so.1 cannot be loaded");
  expect_says(opened(), "install ibverbs-providers");
  EXPECT_FALSE(mlx5_status().usable);
  expect_says(mlx5_status().detail, "cannot be loaded");
  set("DOORBELL_LIBMLX5", FAKE_VERBS);
  expect_says(opened(), "it has no function mlx5dv_is_supported");
}

TEST_F(Mlx5Fake, OtherDevicesAreRefused) {
  set("FAKE_VERBS_DEVICES", "rxe0");
  expect_says(error_of([&] { Mlx5Nic d(config()); }, ExitCode::absent), "rxe0: it is no ConnectX");
  EXPECT_FALSE(mlx5_status().usable);
  expect_says(mlx5_status().detail, "none of the RDMA devices is a ConnectX");
  set("FAKE_VERBS_DEVICES", "rxe0,mlx5_7");
  const BackendStatus status = mlx5_status();
  expect_says(status.detail, "mlx5_7");
  expect_says(status.detail, "not yet run on hardware");
  EXPECT_EQ(status.detail.find("rxe0"), std::string::npos) << status.detail;
}

TEST_F(Mlx5Fake, RegistersAreUncached) {
  {
    const Mlx5Nic d(config());
    EXPECT_EQ(last("uncached"), 1);
    EXPECT_EQ(std::getenv("MLX5_SHUT_UP_BF"), nullptr);
  }
  set("MLX5_SHUT_UP_BF", "0");
  const Mlx5Nic d(config());
  EXPECT_EQ(last("uncached"), 1);
  EXPECT_STREQ(std::getenv("MLX5_SHUT_UP_BF"), "0");
}

TEST_F(Mlx5Fake, TheDeviceIsTheVerbsNic) {
  Mlx5Nic d(config());
  EXPECT_EQ(d.name(), "mlx5_0,port=1,gid=2");
  EXPECT_EQ(d.kind(), "hardware");
  EXPECT_EQ(d.provider(), Provider::mlx5);
  const Limits l = d.limits();
  EXPECT_EQ(l.max_requests, 2048u);
  EXPECT_EQ(l.max_inline, 412u);
  EXPECT_FALSE(l.gpu_initiator);
  const Region region = d.allocate(Place::pageable, 8192);
  EXPECT_EQ(d.register_memory(region, access::all)->rkey(), 0x2222u);
  EXPECT_NE(d.alive(Initiator::cpu), nullptr);
}

TEST_F(Mlx5Fake, LayoutIsTheFormats) {
  Mlx5Nic d(config());
  const auto q = d.create_queue_pair({.sq_requests = 20, .rq_requests = 21, .max_inline = 64});
  const QueuePairMemory m = q->memory(Initiator::cpu);
  EXPECT_EQ(in_fake<u32()>("fake_mlx5_create_flags")(), u32{MLX5DV_QP_CREATE_DISABLE_SCATTER_TO_CQE});
  EXPECT_EQ(m.qpn, q->address().qpn);
  EXPECT_EQ(m.sq_requests, 20u);
  EXPECT_EQ(m.sq_units, 128u);  // 20 requests of 192 + 68 bytes
  EXPECT_EQ(m.rq_entries, 32u);
  EXPECT_EQ(m.cq_entries, 32u);
  EXPECT_EQ(m.recv_cq_entries, 32u);
  EXPECT_EQ(m.sq, m.rq + 32) << "the send ring follows the receive ring";
  EXPECT_EQ(m.sq_doorbell, the_register());
  EXPECT_NE(m.cqn, m.recv_cqn);
  EXPECT_EQ(m.max_inline, 64u);
  EXPECT_EQ(m.mtu, 2048u);
  EXPECT_EQ(m.track_entries, 256u);
  for (u32 i = 0; i < m.track_entries; ++i) EXPECT_EQ(m.track[i], Word16{});
  for (const u32* record : {m.cq_record, m.recv_cq_record})
    EXPECT_EQ(reinterpret_cast<u64>(record) / kPage, reinterpret_cast<u64>(m.qp_record) / kPage);
  for (u32 i = 0; i < 32; ++i) {
    EXPECT_FALSE(Mlx5::cqe_valid(m.cq[i * 4 + 3], 0));
    EXPECT_FALSE(Mlx5::cqe_valid(m.recv_cq[i * 4 + 3], 1));
  }
}

TEST_F(Mlx5Fake, OtherLayoutsAreRefused) {
  Mlx5Nic d(config());
  const std::pair<const char*, const char*> cases[] = {
      {"sq_stride=128", "send queue that libmlx5 has made: its entries take 128 bytes, not 64"},
      {"sq_cnt=48", "send queue that libmlx5 has made: it has 48 entries"},
      {"sq_cnt=8", "it has 8 entries, which is no power of two in 16..32768"},
      {"sq_cnt=65536", "it has 65536 entries"},
      {"rq_stride=32", "receive queue that libmlx5 has made: its entries take 32 bytes, not 16"},
      {"rq_stride=32", "unset MLX5_QP_SIGNATURE"},
      {"rq_cnt=24", "receive queue that libmlx5 has made: it has 24 entries"},
      {"cqe_size=128",
       "completion queue of requests that libmlx5 has made: its entries take 128 bytes, not 64"},
      {"cqe_size=128", "unset MLX5_CQE_SIZE"},
      {"cqe_cnt=16", "completion queue of requests that libmlx5 has made: it has 16 entries"},
      {"reg=0", "doorbell register"},
  };
  for (const auto& [setting, says] : cases) {
    set("FAKE_MLX5_SET", setting);
    expect_says(error_of([&] { (void)d.create_queue_pair({.sq_requests = 16, .rq_requests = 16}); }), says);
    EXPECT_EQ(alive("cq") + alive("qp"), 0) << setting;
  }
  set("FAKE_MLX5_SET", "");
  expect_says(error_of([&] { (void)d.create_queue_pair({.queue_memory = Place::gpu}); }), "host memory");
  expect_says(error_of([&] { (void)d.create_queue_pair({.signal_all = true}); }), "own flag");
  expect_says(error_of([&] { (void)d.create_queue_pair({.sq_requests = 2049}); }), "takes 1..2048");
}

TEST_F(Mlx5Fake, EveryFailureLeavesNothing) {
  Mlx5Nic d(config());
  for (const char* call : {"create_cq", "create_second_cq", "create_qp"}) {
    set("FAKE_VERBS_FAIL", (std::string(call) + "=12").c_str());
    expect_says(error_of([&] { (void)d.create_queue_pair({}); }), "ulimit -l");
    EXPECT_EQ(alive("cq") + alive("qp"), 0) << call;
  }
  set("FAKE_VERBS_FAIL", "");
  set("FAKE_MLX5_FAIL", "95");
  expect_says(error_of([&] { (void)d.create_queue_pair({}); }), "Operation not supported");
  EXPECT_EQ(alive("cq") + alive("qp"), 0);
}

/// A queue pair, and libmlx5's view of its memory.
class Mlx5Queue : public Mlx5Fake {
 protected:
  static constexpr u32 kRequests = 8;
  static constexpr WorkRequest kWrite = {.op = Op::write,
                                         .bytes = 0x140,
                                         .local = 0x1122334455667788,
                                         .lkey = 0xa1b2c3d4,
                                         .rkey = 0x0badf00d,
                                         .remote = 0x99aabbccddeeff00};

  void SetUp() override {
    Mlx5Fake::SetUp();
    device_ = std::make_unique<Mlx5Nic>(config());
    queue_ = device_->create_queue_pair({.sq_requests = kRequests, .rq_requests = kRequests});
    m_ = queue_->memory(Initiator::cpu);
  }
  void TearDown() override {
    queue_.reset();
    device_.reset();
    Mlx5Fake::TearDown();
  }

  [[nodiscard]] const QueuePairState& fresh() { return fresh_ = initial_state(m_); }
  template <class T>
  [[nodiscard]] const T& segment(u32 block, u32 part) const {
    return *reinterpret_cast<const T*>(m_.sq + block * 4 + part);
  }
  /// Writes the completion of request or receive `counter` as the NIC does; `n` entries came before.
  void complete(const Word16* cq, u32 entries, u32 n, u8 opcode, u32 counter, u32 bytes = 0) {
    auto* cqe = reinterpret_cast<mlx5_cqe64*>(const_cast<Word16*>(cq)) + n % entries;
    cqe->byte_cnt = htobe32(bytes);
    cqe->sop_drop_qpn = htobe32(m_.qpn);
    cqe->wqe_counter = htobe16(static_cast<u16>(counter));
    cqe->op_own = static_cast<u8>(opcode << 4 | (n / entries & 1));
  }

  std::unique_ptr<Mlx5Nic> device_;
  std::unique_ptr<QueuePairObject> queue_;
  QueuePairMemory m_;
  QueuePairState fresh_;
};

TEST_F(Mlx5Queue, ARequestLandsInRingRecordAndRegister) {
  Queue q(fresh());
  q.post(kLane, 2, [](u32 i) {
    WorkRequest r = kWrite;
    r.signalled = i == 1;
    return r;
  });
  EXPECT_EQ(m_.qp_record[MLX5_SND_DBR], 0u) << "rung before ring()";
  EXPECT_EQ(*the_register(), 0u);
  (void)q.ring(kLane);
  for (u32 i = 0; i < 2; ++i) {
    const auto& ctrl = segment<mlx5_wqe_ctrl_seg>(i, 0);
    EXPECT_EQ(be32toh(ctrl.opmod_idx_opcode), i << 8 | MLX5_OPCODE_RDMA_WRITE);
    EXPECT_EQ(be32toh(ctrl.qpn_ds), m_.qpn << 8 | 3);
    EXPECT_EQ(ctrl.fm_ce_se, i == 1 ? MLX5_WQE_CTRL_CQ_UPDATE : 0);
    const auto& remote = segment<mlx5_wqe_raddr_seg>(i, 1);
    EXPECT_EQ(be64toh(remote.raddr), kWrite.remote);
    EXPECT_EQ(be32toh(remote.rkey), kWrite.rkey);
    const auto& data = segment<mlx5_wqe_data_seg>(i, 2);
    EXPECT_EQ(be32toh(data.byte_count), kWrite.bytes);
    EXPECT_EQ(be32toh(data.lkey), kWrite.lkey);
    EXPECT_EQ(be64toh(data.addr), kWrite.local);
  }
  EXPECT_EQ(be32toh(m_.qp_record[MLX5_SND_DBR]), 2u);
  EXPECT_EQ(m_.qp_record[MLX5_RCV_DBR], 0u);
  EXPECT_EQ(std::memcmp(the_register(), m_.sq + 4, sizeof(u64)), 0) << "the last WQE's first 8 bytes";
}

TEST_F(Mlx5Queue, CompletionsArePolledWhileTheRingsWrap) {
  Queue q(fresh());
  const u32 rounds = 3 * m_.sq_units;
  ASSERT_EQ(m_.cq_entries, 16u);
  for (u32 n = 0; n < rounds; ++n) {
    EXPECT_EQ(q.poll(kLane).count, 0u);
    ASSERT_GE(q.room(), 1u);
    q.post(kLane, 1, [](u32) { return kWrite; });
    (void)q.ring(kLane);
    EXPECT_EQ(be32toh(segment<mlx5_wqe_ctrl_seg>(n % m_.sq_units, 0).opmod_idx_opcode), n << 8 | 0x08);
    EXPECT_EQ(be32toh(m_.qp_record[MLX5_SND_DBR]), n + 1);
    complete(m_.cq, m_.cq_entries, n, MLX5_CQE_REQ, n);
    const auto done = q.poll(kLane);
    ASSERT_EQ(done.count, 1u) << n;
    EXPECT_EQ(done.mine.status, Status::ok);
    EXPECT_EQ(done.serial, n + 1);
    EXPECT_LE(n + 1 - be32toh(m_.cq_record[0]), m_.cq_entries / 2) << "given back in time";
  }
  EXPECT_EQ(q.duplicated() + q.skipped() + q.protocol(), 0u);
  EXPECT_EQ(m_.recv_cq_record[0], 0u);
}

TEST_F(Mlx5Queue, AnErrorIsUnderstood) {
  Queue q(fresh());
  q.post(kLane, 1, [](u32) { return kWrite; });
  (void)q.ring(kLane);
  auto* cqe = reinterpret_cast<mlx5_err_cqe*>(const_cast<Word16*>(m_.cq));
  cqe->syndrome = MLX5_CQE_SYNDROME_REMOTE_ACCESS_ERR;
  cqe->vendor_err_synd = 0x88;
  cqe->op_own = MLX5_CQE_REQ_ERR << 4;
  const auto done = q.poll(kLane);
  ASSERT_EQ(done.count, 1u);
  EXPECT_EQ(done.mine.status, Status::remote_access);
  EXPECT_EQ(done.mine.vendor_error, 0x88u);
}

TEST_F(Mlx5Queue, ReceivesLandInTheirRing) {
  Queue q(fresh());
  const u32 rounds = 3 * m_.rq_entries;
  for (u32 n = 0; n < rounds; ++n) {
    ASSERT_GE(q.receive_room(), 1u);
    q.post_receives(kLane, 1,
                    [n](u32) { return ReceiveRequest{.local = 0x5000 + n, .lkey = 0x77, .bytes = 64}; });
    (void)q.ring_receives(kLane);
    const auto& data = reinterpret_cast<const mlx5_wqe_data_seg*>(m_.rq)[n % m_.rq_entries];
    EXPECT_EQ(be32toh(data.byte_count), 64u);
    EXPECT_EQ(be32toh(data.lkey), 0x77u);
    EXPECT_EQ(be64toh(data.addr), 0x5000u + n);
    EXPECT_EQ(be32toh(m_.qp_record[MLX5_RCV_DBR]), n + 1);
    EXPECT_EQ(q.poll_receives(kLane).count, 0u);
    complete(m_.recv_cq, m_.recv_cq_entries, n, MLX5_CQE_RESP_SEND, n, 48);
    const auto done = q.poll_receives(kLane);
    ASSERT_EQ(done.count, 1u) << n;
    EXPECT_TRUE(done.mine.receive);
    EXPECT_EQ(done.mine.bytes, 48u);
    EXPECT_EQ(done.serial, n + 1);
  }
  EXPECT_EQ(q.protocol(), 0u);
  EXPECT_EQ(*the_register(), 0u) << "receives need no register";
  EXPECT_EQ(m_.qp_record[MLX5_SND_DBR], 0u);
}

TEST_F(Mlx5Queue, ResetStartsFromNothing) {
  Queue q(fresh());
  q.post(kLane, 1, [](u32) { return kWrite; });
  (void)q.ring(kLane);
  complete(m_.cq, m_.cq_entries, 0, MLX5_CQE_REQ, 0);
  queue_->initialise({});
  queue_->connect(queue_->address(), {});
  EXPECT_EQ(queue_->state(), QpState::rts);
  queue_->fail();
  EXPECT_EQ(queue_->state(), QpState::error);
  const u32 before = queue_->address().qpn;
  queue_->reset();
  EXPECT_EQ(queue_->state(), QpState::reset);
  EXPECT_NE(queue_->address().qpn, before);
  EXPECT_EQ(alive("qp"), 1);
  EXPECT_EQ(alive("cq"), 2);
  m_ = queue_->memory(Initiator::cpu);
  EXPECT_EQ(m_.qpn, queue_->address().qpn);
  EXPECT_EQ(m_.qp_record[MLX5_SND_DBR], 0u);
  EXPECT_EQ(m_.cq_record[0], 0u);
  Queue again(fresh());
  EXPECT_EQ(again.poll(kLane).count, 0u) << "an entry of the old queue";
  set("FAKE_VERBS_FAIL", "create_qp=12");
  EXPECT_THROW(queue_->reset(), Error);
  set("FAKE_VERBS_FAIL", "");
  EXPECT_EQ(queue_->address().qpn, m_.qpn) << "what could not be replaced stays";
}

TEST_F(Mlx5Fake, AGpuGetsEveryPageOnce) {
  const auto gpu = std::make_shared<FakeGpu>();
  {
    Mlx5Nic d(config(), gpu);
    EXPECT_TRUE(d.limits().gpu_initiator);
    const auto a = d.create_queue_pair({.sq_requests = 8, .rq_requests = 8});
    const auto b = d.create_queue_pair({.sq_requests = 300, .rq_requests = 300});
    EXPECT_TRUE(gpu->registered.empty()) << "a GPU's addresses were not asked for";
    for (QueuePairObject* q : {a.get(), b.get()}) {
      const QueuePairMemory host = q->memory(Initiator::cpu);
      const QueuePairMemory m = q->memory(Initiator::gpu);
      const auto moved = [](const void* on_gpu, const void* on_host) {
        EXPECT_EQ(reinterpret_cast<u64>(on_gpu), reinterpret_cast<u64>(on_host) + FakeGpu::kShift);
      };
      moved(m.sq, host.sq);
      moved(m.rq, host.rq);
      moved(m.cq, host.cq);
      moved(m.recv_cq, host.recv_cq);
      moved(m.qp_record, host.qp_record);
      moved(m.cq_record, host.cq_record);
      moved(m.recv_cq_record, host.recv_cq_record);
      moved(m.sq_doorbell, host.sq_doorbell);
      EXPECT_NE(m.track, nullptr);
      EXPECT_EQ(m.sq_units, host.sq_units);
      EXPECT_EQ(m.qpn, host.qpn);
    }
    // Of each queue pair the rings and two completion queues; of both one page of records, one of registers.
    ASSERT_EQ(gpu->registered.size(), 8u);
    EXPECT_EQ(std::count_if(gpu->registered.begin(), gpu->registered.end(),
                            [](const FakeGpu::Registered& r) {
                              return r.mmio &&
                                     r.begin == reinterpret_cast<u64>(the_register()) / kPage * kPage;
                            }),
              1);
    EXPECT_EQ(
        std::count_if(gpu->registered.begin(), gpu->registered.end(), [](const auto& r) { return r.mmio; }),
        1);
    a->reset();
    EXPECT_EQ(gpu->registered.size(), 5u) << "the old queues are still mapped";
    (void)a->memory(Initiator::gpu);
    EXPECT_EQ(gpu->registered.size(), 8u);
  }
  EXPECT_TRUE(gpu->registered.empty());
}

TEST_F(Mlx5Fake, WhatAGpuCannotGetIsSaid) {
  Mlx5Nic without(config());
  const auto alone = without.create_queue_pair({});
  expect_says(error_of([&] { (void)alone->memory(Initiator::gpu); }), "open the device with a GPU");

  const auto gpu = std::make_shared<FakeGpu>();
  Mlx5Nic d(config(), gpu);
  const auto q = d.create_queue_pair({});
  for (u32 call = 1; call <= 5; ++call) {
    gpu->calls = 0;
    gpu->fail_at = call;
    const std::string said = error_of([&] { (void)q->memory(Initiator::gpu); });
    expect_says(said, "a GPU's access to the queues of mlx5_0: register: not permitted");
    expect_says(said, "PeerMappingOverride");
    EXPECT_TRUE(gpu->registered.empty()) << call;
  }
  gpu->fail_at = 0;
  EXPECT_NE(q->memory(Initiator::gpu).sq, nullptr);
}

TEST_F(Mlx5Fake, ObjectsKeepTheDeviceOpen) {
  const auto gpu = std::make_shared<FakeGpu>();
  auto d = std::make_unique<Mlx5Nic>(config(), gpu);
  auto q = d->create_queue_pair({});
  (void)q->memory(Initiator::gpu);
  d.reset();
  EXPECT_EQ(alive("context"), 1);
  q.reset();
  EXPECT_EQ(alive("context"), 0);
  EXPECT_TRUE(gpu->registered.empty());
}

TEST_F(Mlx5Fake, TheRegistryKnowsWhoHasABackEnd) {
  EXPECT_EQ(backend_of(Provider::mlx5, "mlx5_0").name, "mlx5");
  EXPECT_EQ(backend_of(Provider::mlx5, "model").name, "model");
  EXPECT_EQ(backend_of(Provider::verbs, "mlx5_0").name, "verbs");
  EXPECT_EQ(open_device({.spec = "mlx5_0,port=1"})->provider(), Provider::mlx5);
  for (const Provider p : vendors()) {
    if (vendor_of(p)->open != nullptr) continue;
    const Backend& b = backend_of(p, "nic0");
    EXPECT_EQ(b.name, name(p));
    EXPECT_FALSE(b.status().usable);
    expect_says(b.status().detail, "no back end");
    expect_says(error_of([&] { (void)open_device({.spec = "nic0", .provider = p}); }, ExitCode::absent),
                "no back end");
    EXPECT_EQ(backend_of(p, "model").name, "model");
  }
}

}  // namespace
}  // namespace doorbell::rdma
