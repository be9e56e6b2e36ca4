// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// The Cassini back end with a fake libcxi (fake_libcxi.cpp): the calls, their order and arguments, the
// reverse order of destruction, the texts of errors, and that nothing is left when any call fails.

#include "libcxi_fixture.hpp"

namespace doorbell::cxi {
namespace {

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
    LibcxiCassini device("cxi0");
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
  const LibcxiCassini d("cxi0");
  const auto e = LibcxiCassini("cxi0").open(1);
  const auto q = e->create_event_queue(u64{8192 + 1} * 64, Place::pageable);
  EXPECT_EQ(q->memory(Initiator::cpu).bytes, 528384u);
}

TEST_F(LibcxiFake, ObjectsKeepWhatTheyWereMadeFrom) {
  std::unique_ptr<CommandQueueObject> q;
  {
    LibcxiCassini d("cxi0");
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
           Case{"open_device", Call::open, "device cxi0"},
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
  EXPECT_EQ(LibcxiCassini("cxi4294967295").name(), "cxi4294967295");
  EXPECT_EQ(LibcxiCassini("cxi003").name(), "cxi3");
  EXPECT_TRUE(libcxi_accepts("cxi4294967296")) << "it is for this back end to refuse";
  for (const char* bad : {"cxi4294967296", "cxi99999999999999999999", "cxi", "cxi-1", "cxi+1", "cxi1x",
                          "cxi 1", "cxi0x1", "mlx5_0", "", "cxi-model0"}) {
    const Refusal r = refusal_of([&] { LibcxiCassini d(bad); });
    EXPECT_EQ(r.exit, ExitCode::usage) << bad;
    expect_says(r.said, "0..4294967295");
    expect_says(r.said, std::string("device ") + bad);
  }
  for (const char* other : {"cxi", "cxi-model0", "cxi-1", "model", ""}) EXPECT_FALSE(libcxi_accepts(other));
}

TEST_F(LibcxiFake, AnAbsentDeviceIsAbsentHardware) {
  const Refusal r = refusal_of([] { LibcxiCassini d("cxi7"); });
  EXPECT_TRUE(r.by_call);
  EXPECT_EQ(r.call, Call::open);
  EXPECT_EQ(r.code, ENOENT);
  EXPECT_EQ(r.exit, ExitCode::absent);
  EXPECT_EQ(r.said, "device cxi7: No such file or directory");
  for (const int code : {ENODEV, ENXIO}) {
    set("FAKE_CXI_FAIL", "open_device=" + std::to_string(code));
    EXPECT_EQ(refusal_of([] { LibcxiCassini d("cxi0"); }).exit, ExitCode::absent);
  }
}

TEST_F(LibcxiFake, WithoutTheLibrary) {
  use("/nonexistent/libcxi.so.1");
  const Refusal r = refusal_of([] { LibcxiCassini d("cxi0"); });
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
  const Refusal r = refusal_of([] { LibcxiCassini d("cxi0"); });
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
  EXPECT_FALSE(LibcxiCassini("cxi0").limits().gpu_memory);
  EXPECT_FALSE(LibcxiCassini("cxi0").limits().gpu_initiator);
  const Address a = opened->open(1)->address();
  EXPECT_EQ(a.nid, 0x12345u);
  EXPECT_EQ(a.pid, 321u);
  EXPECT_EQ(a.pid_bits, 9u);
  EXPECT_EQ(a.vni, 1u);
}

// --- services ----------------------------------------------------------------------------------------

TEST_F(LibcxiFake, ServicesTellTheVni) {
  LibcxiCassini d("cxi0");
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
  LibcxiCassini d("cxi0");
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

}  // namespace
}  // namespace doorbell::cxi
