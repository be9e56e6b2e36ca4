// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// The verbs back end with a fake libibverbs (fake_verbs.cpp) and a simulated sysfs: what it chooses, which
// attributes the device gets, the texts of errors, and that nothing is left open.

#include <dlfcn.h>
#include <doorbell/error.hpp>
#include <gtest/gtest.h>
#include <infiniband/verbs.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <thread>

#include "errors.hpp"
#include "idle_gpu.hpp"
#include "rdma/verbs/library.hpp"
#include "rdma/verbs/nic.hpp"

namespace doorbell::rdma {
namespace {

namespace fs = std::filesystem;
using test::error_of;
using test::expect_says;

template <class Function>
Function* in_fake(const char* name) {
  static void* library = ::dlopen(FAKE_VERBS, RTLD_NOW | RTLD_LOCAL);
  return reinterpret_cast<Function*>(::dlsym(library, name));
}
int alive(const char* what) {
  return in_fake<int(const char*)>("fake_verbs_alive")(what);
}
long last(const char* what) {
  return in_fake<long(const char*)>("fake_verbs_last")(what);
}

/// A GPU that only exports a dma-buf.
class FakeGpu final : public IdleGpu {
 public:
  [[nodiscard]] int export_dmabuf(void*, u64) override { return exported_ = ::dup(STDOUT_FILENO); }
  int exported_ = -1;
};

class VerbsFake : public testing::Test {
 protected:
  void SetUp() override {
    for (const char* name : kVariables) ::unsetenv(name);
    set("DOORBELL_LIBIBVERBS", FAKE_VERBS);
    root_ = fs::temp_directory_path() / ("doorbell-verbs-" + std::to_string(::getpid()));
    fs::create_directories(root_ / "class/infiniband");
    hardware("mlx5_0");
  }
  void TearDown() override {
    fs::remove_all(root_);
    for (const char* what : {"device", "context", "pd", "mr", "cq", "qp", "unacknowledged event"})
      EXPECT_EQ(alive(what), 0) << what << " is left";
  }
  static void set(const char* name, const char* value) { ::setenv(name, value, 1); }

  fs::path port_of(const std::string& device) { return root_ / "class/infiniband" / device / "ports/1"; }
  void write(const fs::path& file, const std::string& text) {
    fs::create_directories(file.parent_path());
    std::ofstream(file) << text << "\n";
  }
  void hardware(const std::string& device) {
    write(port_of(device) / "state", "4: ACTIVE");
    fs::create_directories(root_ / "driver/mlx5_core");
    fs::create_directories(root_ / "class/infiniband" / device / "device");
    fs::create_symlink(root_ / "driver/mlx5_core", root_ / "class/infiniband" / device / "device/driver");
  }
  void soft_roce(const std::string& device) {
    write(port_of(device) / "state", "1: DOWN");
    write(root_ / "class/infiniband" / device / "parent", "v0");
  }
  VerbsConfig config(const std::string& spec = "verbs") {
    VerbsConfig c = parse_verbs_spec(spec);
    c.sysfs = root_;
    return c;
  }
  std::string open_error(const std::string& spec = "verbs", ExitCode code = ExitCode::usage) {
    return error_of([&] { VerbsNic d(config(spec)); }, code);
  }

  fs::path root_;

 private:
  static constexpr std::array kVariables = {"FAKE_VERBS_DEVICES", "FAKE_VERBS_FAIL", "FAKE_VERBS_IWARP",
                                            "FAKE_VERBS_PORTS",   "FAKE_VERBS_GIDS", "DOORBELL_LIBIBVERBS"};
};

TEST_F(VerbsFake, WithoutTheLibrary) {
  set("DOORBELL_LIBIBVERBS", "/nonexistent/libibverbs.so.1");
  expect_says(open_error("verbs", ExitCode::absent), "libibverbs.so.1 cannot be loaded");
  expect_says(open_error("verbs", ExitCode::absent), "install libibverbs1 and ibverbs-providers");
  EXPECT_FALSE(verbs_status().usable);
  expect_says(verbs_status().detail, "cannot be loaded");
  set("DOORBELL_LIBIBVERBS", FAKE_VERBS_INCOMPLETE);
  expect_says(open_error("verbs", ExitCode::absent), "it has no function ibv_get_device_list");
}

TEST_F(VerbsFake, SpecsAreParsed) {
  EXPECT_EQ(parse_verbs_spec("verbs").device, "");
  const VerbsConfig c = parse_verbs_spec("verbs:mlx5_1,port=2,gid=3");
  EXPECT_EQ(c.device, "mlx5_1");
  EXPECT_EQ(c.port, 2u);
  EXPECT_EQ(c.gid, 3);
  EXPECT_EQ(parse_verbs_spec("verbs:rxe0").gid, -1);
  EXPECT_EQ(parse_verbs_spec("verbs:port=2").port, 2u);
  for (const char* bad : {"verbs:", "verbs:,port=1", "verbs:a,", "verbs:a,port", "verbs:a,port=256",
                          "verbs:a,gid=x", "verbs:a,colour=1", "verbs:a,b", "verbs:a,port=1,port=2"})
    EXPECT_THROW((void)parse_verbs_spec(bad), Error) << bad;
}

TEST_F(VerbsFake, TheOnlyDeviceNeedsNoName) {
  EXPECT_EQ(VerbsNic(config()).name(), "verbs:mlx5_0,port=1,gid=2");
  set("FAKE_VERBS_DEVICES", "mlx5_0,mlx5_1");
  expect_says(open_error(), "the devices are mlx5_0, mlx5_1");
  expect_says(open_error("verbs:rxe0", ExitCode::absent), "the devices are mlx5_0, mlx5_1");
  expect_says(open_error("verbs:rxe0", ExitCode::absent), "device rxe0: libibverbs shows none");
  EXPECT_TRUE(VerbsNic(config("verbs:mlx5_1")).name().starts_with("verbs:mlx5_1,"));
  set("FAKE_VERBS_DEVICES", "");
  EXPECT_NE(open_error("verbs", ExitCode::absent), "no error");
  EXPECT_FALSE(verbs_status().usable);
}

TEST_F(VerbsFake, StatusSaysWhyADeviceCannotBeOpened) {
  set("FAKE_VERBS_DEVICES", "rxe7");
  const BackendStatus status = verbs_status();
  EXPECT_FALSE(status.usable);
  expect_says(status.detail, "rxe7");
  expect_says(status.detail, "/dev/infiniband/uverbs-none: No such file or directory");
}

TEST_F(VerbsFake, SysfsTellsHardwareFromTheKernelsOwn) {
  soft_roce("rxe0");
  set("FAKE_VERBS_DEVICES", "mlx5_0,rxe0");
  EXPECT_EQ(VerbsNic(config("verbs:mlx5_0")).kind(), "hardware");
  EXPECT_EQ(VerbsNic(config("verbs:rxe0")).kind(), "emulated");
  const RdmaDeviceFacts facts = rdma_device_facts("mlx5_0", root_);
  EXPECT_EQ(facts.driver, "mlx5_core");
  EXPECT_EQ(facts.port, "ACTIVE");
  EXPECT_EQ(rdma_device_facts("rxe0", root_).driver, "rdma_rxe");
  EXPECT_EQ(rdma_device_facts("rxe0", root_).port, "DOWN");
  EXPECT_EQ(rdma_devices(root_).size(), 2u);
}

TEST_F(VerbsFake, PortsAreChosen) {
  set("FAKE_VERBS_PORTS", "da");
  expect_says(open_error("verbs:mlx5_0,port=1"), "port 1 is not active");
  expect_says(open_error("verbs:mlx5_0,port=3"), "device mlx5_0: port: mlx5_0 has ports 1..2, not 3");
  // The GIDs are all of port 1.
  expect_says(open_error("verbs:mlx5_0"), "port 2 has no GID");
  set("FAKE_VERBS_PORTS", "dd");
  expect_says(open_error(), "it has no active port");
}

TEST_F(VerbsFake, GidsAreChosen) {
  expect_says(VerbsNic(config("verbs:mlx5_0,gid=0")).name(), "gid=0");
  expect_says(open_error("verbs:mlx5_0,gid=3"), "device mlx5_0: gid: port 1 of mlx5_0 has no GID 3");
  set("FAKE_VERBS_GIDS", "0");
  expect_says(open_error(), "give its network interface an address");

  std::vector<ibv_gid_entry> table(4);
  for (u32 i = 0; i < table.size(); ++i) table[i].gid_index = i;
  EXPECT_EQ(preferred_gid({}), nullptr);
  EXPECT_EQ(preferred_gid(table)->gid_index, 0u);  // none is RoCE v2
  table[1].gid_type = table[2].gid_type = table[3].gid_type = IBV_GID_TYPE_ROCE_V2;
  table[1].gid.raw[0] = 0xfe;  // link-local
  table[1].gid.raw[1] = 0x80;
  table[2].gid.raw[0] = 0x20;
  table[3].gid.raw[0] = 0x20;
  EXPECT_EQ(preferred_gid(table)->gid_index, 2u);
  table[3].gid = {};
  table[3].gid.raw[10] = table[3].gid.raw[11] = 0xff;
  EXPECT_EQ(preferred_gid(table)->gid_index, 3u);
}

TEST_F(VerbsFake, IwarpIsRefused) {
  set("FAKE_VERBS_IWARP", "1");
  expect_says(open_error(), "iWARP");
}

TEST_F(VerbsFake, EveryFailureOfOpeningLeavesNothing) {
  for (const char* call :
       {"get_device_list", "open_device", "query_device", "query_port", "query_gid_table", "alloc_pd"}) {
    set("FAKE_VERBS_FAIL", (std::string(call) + "=13").c_str());
    expect_says(open_error(), "Permission denied");
    for (const char* what : {"device", "context", "pd"}) EXPECT_EQ(alive(what), 0) << call << ": " << what;
  }
}

TEST_F(VerbsFake, AKernelWithoutRdmaIsAbsentHardware) {
  set("FAKE_VERBS_FAIL", "get_device_list=38");
  const std::string said = open_error("verbs", ExitCode::absent);
  EXPECT_EQ(said.find("Function not implemented"), std::string::npos) << said;
  EXPECT_FALSE(verbs_status().usable);
}

TEST_F(VerbsFake, EveryFailureOfAQueuePairLeavesNothing) {
  VerbsNic d(config());
  for (const char* call : {"create_cq", "create_second_cq", "create_qp"}) {
    set("FAKE_VERBS_FAIL", (std::string(call) + "=12").c_str());
    expect_says(error_of([&] { (void)d.create_queue_pair({}); }), "ulimit -l");
    EXPECT_EQ(alive("cq") + alive("qp"), 0) << call;
  }
}

TEST_F(VerbsFake, LimitsAreTheDevices) {
  VerbsNic d(config());
  const NicLimits l = d.limits();
  EXPECT_EQ(l.max_requests, 2048u);
  EXPECT_EQ(l.max_queues, 40u);
  EXPECT_EQ(l.max_inline, 412u);
  EXPECT_EQ(l.max_message, 1u << 30);
  EXPECT_EQ(l.active_mtu, 2048u);
  EXPECT_TRUE(l.atomics);
  EXPECT_FALSE(l.gpu_memory) << "there is no GPU";
  expect_says(error_of([&] { (void)d.create_queue_pair({.sq_requests = 2049}); }), "takes 1..2048");
  expect_says(error_of([&] { (void)d.create_queue_pair({.rq_requests = 2049}); }), "takes 1..2048");
  expect_says(error_of([&] { (void)d.create_queue_pair({.max_inline = 413}); }), "takes 0..412");
}

TEST_F(VerbsFake, ConnectingTellsTheDeviceEverything) {
  VerbsNic d(config());
  const auto q = d.create_queue_pair({.signal_all = true});
  EXPECT_EQ(last("signal all"), 1);
  const ConnectionOptions options{.timeout = 20,
                                  .retry_count = 3,
                                  .rnr_retry = 2,
                                  .min_rnr_timer = 9,
                                  .max_rd_atomic = 16,
                                  .access = access::remote_read};
  QueuePairAddress peer{.qpn = 0x123456, .psn = 0x654321, .lid = 0, .mtu = 1024, .gid = {}};
  peer.gid[15] = 0x77;
  q->initialise(options);
  EXPECT_EQ(q->state(), QpState::init);
  EXPECT_EQ(last("mask 01"), IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
  EXPECT_EQ(last("access"), static_cast<long>(access::remote_read));
  q->connect(peer, options);
  EXPECT_EQ(q->state(), QpState::rts);
  EXPECT_EQ(last("mask 12"), IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                                 IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
  EXPECT_EQ(last("mask 23"), IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
                                 IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC);
  EXPECT_EQ(last("mtu"), IBV_MTU_1024) << "the smaller of the two";
  EXPECT_EQ(last("peer"), 0x123456);
  EXPECT_EQ(last("rq psn"), 0x654321);
  EXPECT_EQ(last("sq psn"), static_cast<long>(q->address().psn));
  EXPECT_EQ(last("responder reads"), 8);
  EXPECT_EQ(last("reads"), 4);
  EXPECT_EQ(last("rnr timer"), 9);
  EXPECT_EQ(last("timeout"), 20);
  EXPECT_EQ(last("retry"), 3);
  EXPECT_EQ(last("rnr retry"), 2);
  EXPECT_EQ(last("gid index"), 2);
  EXPECT_EQ(last("peer gid"), 0x77);
  EXPECT_EQ(last("global"), 1);
  const QueuePairAddress mine = q->address();
  EXPECT_EQ(mine.qpn, 0x321u);
  EXPECT_LT(mine.psn, 1u << 24);
  EXPECT_EQ(mine.mtu, 2048u);
  EXPECT_EQ(mine.gid[12], 10);
  q->fail();
  EXPECT_EQ(q->state(), QpState::error);
  q->reset();
  EXPECT_EQ(q->state(), QpState::reset);
}

TEST_F(VerbsFake, ConnectionOptionsAreChecked) {
  VerbsNic d(config());
  const auto q = d.create_queue_pair({});
  const auto refused = [&](const ConnectionOptions& options, const std::string& part) {
    expect_says(error_of([&] { q->connect(q->address(), options); }), part);
  };
  refused({.mtu = 4096}, "4096 is above the port's 2048");
  refused({.mtu = 1000}, "1000 is not one of 256, 512");
  refused({.mtu = 128}, "128 is not one of");
  refused({.timeout = 32}, "32 is not in 0..31");
  refused({.retry_count = 8}, "8 is not in 0..7");
  refused({.rnr_retry = 8}, "8 is not in 0..7");
  refused({.min_rnr_timer = 32}, "32 is not in 0..31");
  set("FAKE_VERBS_FAIL", "modify_qp=22");
  refused({}, "queue pair 801 of mlx5_0 to RTR: Invalid argument / it is in state RESET now");
}

TEST_F(VerbsFake, MemoryIsRegistered) {
  VerbsNic d(config());
  const Region region = d.allocate(Place::pageable, 8192);
  {
    const auto mr = d.register_memory(region, access::all);
    EXPECT_EQ(mr->iova(), reinterpret_cast<u64>(region.host()));
    EXPECT_EQ(mr->lkey(), 0x1111u);
    EXPECT_EQ(mr->rkey(), 0x2222u);
    EXPECT_EQ(last("mr access"), static_cast<long>(access::all));
  }
  expect_says(error_of([&] { (void)d.register_memory(region, access::remote_write); }),
              "need local write access");
  expect_says(error_of([&] { (void)d.register_memory(region, access::remote_atomic); }),
              "need local write access");
  set("FAKE_VERBS_FAIL", "reg_mr=12");
  expect_says(error_of([&] { (void)d.register_memory(region, access::all); }), "ulimit -l");
}

TEST_F(VerbsFake, GpuMemoryIsRegisteredAsADmaBuf) {
  soft_roce("rxe0");
  set("FAKE_VERBS_DEVICES", "mlx5_0,rxe0");
  const auto gpu = std::make_shared<FakeGpu>();
  VerbsNic d(config("verbs:mlx5_0"), gpu);
  EXPECT_TRUE(d.limits().gpu_memory);
  const Region region = d.allocate(Place::gpu, 65536);
  {
    const auto mr = d.register_memory(region, access::all);
    EXPECT_EQ(mr->iova(), reinterpret_cast<u64>(region.device()));
    EXPECT_EQ(last("dma-buf"), gpu->exported_);
    EXPECT_EQ(last("dma-buf iova"), static_cast<long>(mr->iova()));
    struct stat s;
    EXPECT_NE(::fstat(gpu->exported_, &s), 0) << "the dma-buf is still open";
  }
  set("FAKE_VERBS_FAIL", "reg_dmabuf_mr=95");
  expect_says(error_of([&] { (void)d.register_memory(region, access::all); }), "dma-buf");
  set("FAKE_VERBS_FAIL", "");
  VerbsNic soft(config("verbs:rxe0"), gpu);
  EXPECT_FALSE(soft.limits().gpu_memory);
  expect_says(error_of([&] { (void)soft.register_memory(region, access::all); }),
              "rdma_rxe moves data with the CPU, which cannot reach GPU memory");
}

TEST_F(VerbsFake, ObjectsKeepTheDeviceOpen) {
  auto d = std::make_unique<VerbsNic>(config());
  const Region region = d->allocate(Place::pageable, 4096);
  auto mr = d->register_memory(region, access::all);
  auto q = d->create_queue_pair({});
  d.reset();
  EXPECT_EQ(alive("context"), 1);
  q.reset();
  mr.reset();
  EXPECT_EQ(alive("context"), 0);
}

TEST_F(VerbsFake, EventsAreReadAndAFatalOneEndsTheDevice) {
  VerbsNic d(config());
  const u32* word = d.alive(Initiator::cpu);
  ASSERT_NE(word, nullptr);
  EXPECT_EQ(d.alive(Initiator::gpu), nullptr);
  const auto event = in_fake<void(ibv_context*, ibv_event_type)>("fake_verbs_event");
  ibv_context* context = *in_fake<ibv_context*>("fake_verbs_context");
  const auto within = [](const std::function<bool()>& condition) {
    for (int i = 0; i < 500 && !condition(); ++i) std::this_thread::sleep_for(std::chrono::milliseconds(10));
    return condition();
  };
  event(context, IBV_EVENT_PORT_ERR);
  EXPECT_TRUE(within([&] { return d.counters()["events"].contains("another event"); }));
  EXPECT_EQ(load_acquire(word), 1u);
  event(context, IBV_EVENT_DEVICE_FATAL);
  EXPECT_TRUE(within([&] { return load_acquire(word) == 0; }));
  EXPECT_TRUE(within([&] { return d.counters()["events"].contains("local catastrophic error"); }));
}

TEST_F(VerbsFake, CountersAreDifferences) {
  write(port_of("mlx5_0") / "hw_counters/sent_pkts", "1000");
  write(port_of("mlx5_0") / "hw_counters/lifespan", "10");
  write(port_of("mlx5_0") / "counters/port_xmit_data", "5");
  write(port_of("mlx5_0") / "counters/bad", "N/A (no PMA)");
  VerbsNic d(config());
  write(port_of("mlx5_0") / "hw_counters/sent_pkts", "1042");
  const auto counted = d.counters();
  EXPECT_EQ(counted["sent_pkts"], 42);
  EXPECT_EQ(counted["port_xmit_data"], 0);
  EXPECT_FALSE(counted.contains("lifespan"));
  EXPECT_FALSE(counted.contains("bad"));
}

TEST_F(VerbsFake, CountersAreNotThoseThatTheKernelHasKept) {
  write(port_of("mlx5_0") / "hw_counters/sent_pkts", "1000");
  write(port_of("mlx5_0") / "hw_counters/lifespan", "1000");
  VerbsNic d(config());
  std::thread refreshed([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    write(port_of("mlx5_0") / "hw_counters/sent_pkts", "1042");
  });
  const auto counted = d.counters();
  refreshed.join();
  EXPECT_EQ(counted["sent_pkts"], 42);
}

}  // namespace
}  // namespace doorbell::rdma
