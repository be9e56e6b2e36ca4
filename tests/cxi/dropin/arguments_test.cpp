// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// The calls of the drop-in libcxi with arguments that are wrong, limits, what others use, and calls that the
// software Cassini does not have.
#include <sys/mman.h>

#include <cerrno>

#include "cxi/dropin/program.hpp"

namespace doorbell::cxi::program {

TEST(DropinDevices, OneDeviceWithItsFacts) {
  void* dev = nullptr;
  EXPECT_EQ(cxil_open_device(0, nullptr), -EINVAL);
  EXPECT_EQ(cxil_open_device(1, &dev), -ENOENT);
  ASSERT_EQ(cxil_open_device(0, &dev), 0);
  EXPECT_EQ(field<u32>(dev, 0), 0u);
  EXPECT_EQ(field<u32>(dev, 8), 9u);
  EXPECT_EQ(field<u32>(dev, 12), 511u);
  EXPECT_EQ(field<u32>(dev, 16), 256u);
  EXPECT_STREQ(static_cast<const char*>(dev) + 28, "cxi0");
  EXPECT_EQ(field<u8>(dev, 112), 1u) << "the link is up";
  void* list = nullptr;
  EXPECT_EQ(cxil_get_device_list(nullptr), -EINVAL);
  ASSERT_EQ(cxil_get_device_list(&list), 0);
  EXPECT_EQ(field<u32>(list, 0), 1u);
  EXPECT_EQ(field<u32>(list, 8 + 4), field<u32>(dev, 4));
  cxil_free_device_list(list);
  EXPECT_EQ(cxil_inbound_wait(dev), 0);
  EXPECT_EQ(cxil_inbound_wait(nullptr), -EINVAL);
  int operation = 0;
  EXPECT_EQ(cxil_get_amo_remap_to_pcie_fadd(dev, &operation), 0);
  EXPECT_EQ(operation, -1);
  EXPECT_EQ(cxil_page_size(dev), 4096u);
  EXPECT_FALSE(cxil_is_copy_on_fork());
  cxil_close_device(dev);
  cxil_close_device(nullptr);
}

TEST(DropinServices, TwoThatAreFixed) {
  End e;
  u8 service[68];
  EXPECT_EQ(cxil_get_svc(e.dev, 0, service), -EINVAL);
  EXPECT_EQ(cxil_get_svc(e.dev, 3, service), -EINVAL);
  EXPECT_EQ(cxil_get_svc(nullptr, 1, service), -EINVAL);
  ASSERT_EQ(cxil_get_svc(e.dev, 1, service), 0);
  EXPECT_NE(service[0] & 2, 0) << "VNIs are restricted";
  EXPECT_EQ(field<std::uint16_t>(service, 2), 1u);
  EXPECT_EQ(field<std::uint16_t>(service, 4), 10u);
  EXPECT_EQ(field<u32>(service, 64), 1u);
  void* list = nullptr;
  ASSERT_EQ(cxil_get_svc_list(e.dev, &list), 0);
  EXPECT_EQ(field<u32>(list, 0), 2u);
  EXPECT_EQ(field<u32>(list, 4 + 68 + 64), 2u);
  cxil_free_svc_list(list);
  void* lni = nullptr;
  EXPECT_EQ(cxil_alloc_lni(e.dev, &lni, 9), -EINVAL);
  EXPECT_EQ(cxil_alloc_lni(nullptr, &lni, 1), -EINVAL);
  EXPECT_EQ(cxil_alloc_lni(e.dev, nullptr, 1), -EINVAL);
  EXPECT_EQ(cxil_destroy_lni(nullptr), -EINVAL);
}

TEST(DropinNames, ProfilesAndTheirNumbers) {
  End e;  // holds a profile that is not for triggered commands
  EXPECT_EQ(e.lcid(), 1u);
  void* first = nullptr;
  void* other = nullptr;
  ASSERT_EQ(cxil_alloc_trig_cp(e.lni, 1, kBestEffort, 0, kTrigLcid, &first), 0);
  EXPECT_EQ(field<u32>(first, 12), 0u);
  EXPECT_EQ(cxil_alloc_trig_cp(e.lni, 1, kBestEffort, 0, kTrigLcid, &other), -ENOSPC);
  ASSERT_EQ(cxil_alloc_cp(e.lni, 10, kBestEffort, 0, &other), 0);
  EXPECT_EQ(field<u32>(other, 12), 2u);
  EXPECT_EQ(cxil_modify_cp(e.lni, other, 77), -EINVAL);
  EXPECT_EQ(cxil_modify_cp(e.lni, other, 1), 0);
  EXPECT_EQ(field<u32>(other, 0), 1u);
  EXPECT_EQ(cxil_modify_cp(nullptr, other, 1), -EINVAL);
  EXPECT_EQ(cxil_destroy_cp(other), 0);
  EXPECT_EQ(cxil_destroy_cp(first), 0);
  EXPECT_EQ(cxil_destroy_cp(nullptr), -EINVAL);
  struct Case {
    unsigned vni;
    int tc, type;
  };
  for (const Case& c : {Case{2, kBestEffort, 0},
                        {1u << 16, kBestEffort, 0},
                        {1, kLowLatency, 0},
                        {1, 40, 0},
                        {1, -1, 0},
                        {1, kBestEffort, 4}})
    EXPECT_EQ(cxil_alloc_cp(e.lni, c.vni, c.tc, c.type, &other), -EINVAL)
        << c.vni << ' ' << c.tc << ' ' << c.type;
  std::vector<void*> all;
  while (cxil_alloc_cp(e.lni, 1, kBestEffort, 0, &other) == 0) all.push_back(other);
  EXPECT_EQ(all.size(), 15u);
  for (void* const cp : all) EXPECT_EQ(cxil_destroy_cp(cp), 0);
}

TEST(DropinNames, DomainsAndReservations) {
  End e, f;
  void* domain = nullptr;
  void* other = nullptr;
  EXPECT_EQ(cxil_alloc_domain(e.lni, 1, 511 + 1, &domain), -EINVAL);
  EXPECT_EQ(cxil_alloc_domain(e.lni, 5, kAnyPid, &domain), -EINVAL);
  EXPECT_EQ(cxil_alloc_domain(nullptr, 1, 3, &domain), -EINVAL);
  EXPECT_EQ(cxil_alloc_domain(e.lni, 1, 3, nullptr), -EINVAL);
  ASSERT_EQ(cxil_alloc_domain(e.lni, 1, 300, &domain), 0);
  EXPECT_EQ(cxil_alloc_domain(f.lni, 1, 300, &other), -EEXIST);
  ASSERT_EQ(cxil_alloc_domain(f.lni, 10, 300, &other), 0) << "another network";
  EXPECT_EQ(cxil_destroy_domain(other), 0);
  EXPECT_EQ(cxil_destroy_domain(domain), 0);
  EXPECT_EQ(cxil_destroy_domain(nullptr), -EINVAL);

  EXPECT_EQ(cxil_reserve_domain(nullptr, 1, 0, 1), -EINVAL);
  EXPECT_EQ(cxil_reserve_domain(e.lni, 1, 100, 0), -EINVAL);
  EXPECT_EQ(cxil_reserve_domain(e.lni, 1, 100, 512), -EINVAL);
  EXPECT_EQ(cxil_reserve_domain(e.lni, 1, 100, 10), 100);
  EXPECT_EQ(cxil_reserve_domain(f.lni, 1, 109, 1), -EEXIST);
  EXPECT_EQ(cxil_reserve_domain(f.lni, 1, 110, 1), 110);
  EXPECT_EQ(cxil_alloc_domain(f.lni, 1, 105, &domain), -EEXIST);
  ASSERT_EQ(cxil_alloc_domain(e.lni, 1, 105, &domain), 0);
  EXPECT_EQ(cxil_destroy_domain(domain), 0);
}

TEST(DropinMemory, WhatCanBeMapped) {
  End e;
  Buffer b(3 * kPageBytes);
  void* md = nullptr;
  EXPECT_EQ(cxil_map(nullptr, b.data, 64, kRead, nullptr, &md), -EINVAL);
  EXPECT_EQ(cxil_map(e.lni, nullptr, 64, kRead, nullptr, &md), -EINVAL);
  EXPECT_EQ(cxil_map(e.lni, b.data, 0, kRead, nullptr, &md), -EINVAL);
  EXPECT_EQ(cxil_map(e.lni, b.data, 64, kRead, nullptr, nullptr), -EINVAL);
  EXPECT_EQ(cxil_map(e.lni, b.data, ~std::size_t{0}, kRead, nullptr, &md), -EINVAL);
  EXPECT_EQ(cxil_map(e.lni, b.data, std::size_t{1} << 46, kRead, nullptr, &md), -EFAULT);
  EXPECT_EQ(cxil_map(e.lni, b.data, 64, kRead | kDevice, nullptr, &md), -EOPNOTSUPP);
  ASSERT_EQ(cxil_map(e.lni, b.data + 100, kPageBytes, kRead | kWrite, nullptr, &md), 0);
  EXPECT_EQ(field<u64>(md, 8), reinterpret_cast<u64>(b.data));
  EXPECT_EQ(field<u64>(md, 16), 2 * kPageBytes);
  EXPECT_NE(field<u64>(md, 0), 0u);
  EXPECT_EQ(cxil_update_md(md, b.data, 64, kRead), -EOPNOTSUPP);
  EXPECT_EQ(cxil_destroy_lni(e.lni), -EBUSY);
  EXPECT_EQ(cxil_unmap(md), 0);
  EXPECT_EQ(cxil_unmap(nullptr), -EINVAL);
  ASSERT_EQ(::munmap(b.data + kPageBytes, kPageBytes), 0);
  EXPECT_EQ(cxil_map(e.lni, b.data, 2 * kPageBytes, kRead, nullptr, &md), -EFAULT) << "a hole";
}

TEST(DropinQueues, ArgumentsOfEventQueues) {
  End e;
  Mapped m(e.lni, 4 * kPageBytes);
  void* eq = nullptr;
  EqAttr attr{m.buffer.data, kPageBytes, 0, {}};
  EXPECT_EQ(cxil_alloc_evtq(nullptr, m.md, &attr, nullptr, nullptr, &eq), -EINVAL);
  EXPECT_EQ(cxil_alloc_evtq(e.lni, nullptr, &attr, nullptr, nullptr, &eq), -EINVAL);
  EXPECT_EQ(cxil_alloc_evtq(e.lni, m.md, nullptr, nullptr, nullptr, &eq), -EINVAL);
  EXPECT_EQ(cxil_alloc_evtq(e.lni, m.md, &attr, nullptr, nullptr, nullptr), -EINVAL);
  attr.queue_len = kPageBytes + 1;
  EXPECT_EQ(cxil_alloc_evtq(e.lni, m.md, &attr, nullptr, nullptr, &eq), -EINVAL);
  attr.queue_len = 0;
  EXPECT_EQ(cxil_alloc_evtq(e.lni, m.md, &attr, nullptr, nullptr, &eq), -EINVAL);
  Buffer outside(kPageBytes);
  attr = {outside.data, kPageBytes, 0, {}};
  EXPECT_EQ(cxil_alloc_evtq(e.lni, m.md, &attr, nullptr, nullptr, &eq), -EINVAL) << "not in the mapping";
  attr = {m.buffer.data, kPageBytes, 0, {}};
  ASSERT_EQ(cxil_alloc_evtq(e.lni, m.md, &attr, nullptr, nullptr, &eq), 0);
  EXPECT_EQ(cxil_evtq_adjust_reserved_fc(eq, 1 << 14), -EINVAL);
  EXPECT_EQ(cxil_evtq_adjust_reserved_fc(eq, -1), -EINVAL);
  EXPECT_EQ(cxil_evtq_adjust_reserved_fc(eq, 10'000), -ENOSPC);
  EXPECT_EQ(cxil_evtq_adjust_reserved_fc(eq, 10), 10);
  EXPECT_EQ(cxil_evtq_adjust_reserved_fc(eq, -3), 7);
  EXPECT_EQ(cxil_evtq_resize_complete(eq), -EINVAL);
  EXPECT_EQ(cxil_destroy_evtq(eq), 0);
  EXPECT_EQ(cxil_destroy_evtq(nullptr), -EINVAL);
}

TEST(DropinQueues, ArgumentsOfCommandQueues) {
  End e;
  void* cq = nullptr;
  CqOpts o{.count = 64, .flags = kTx, .lcid = e.lcid()};
  EXPECT_EQ(cxil_alloc_cmdq(nullptr, nullptr, &o, &cq), -EINVAL);
  EXPECT_EQ(cxil_alloc_cmdq(e.lni, nullptr, nullptr, &cq), -EINVAL);
  EXPECT_EQ(cxil_alloc_cmdq(e.lni, nullptr, &o, nullptr), -EINVAL);
  o.lcid = 9;
  EXPECT_EQ(cxil_alloc_cmdq(e.lni, nullptr, &o, &cq), -EINVAL);
  o = {.count = 64, .policy = 4, .flags = kTx, .lcid = e.lcid()};
  EXPECT_EQ(cxil_alloc_cmdq(e.lni, nullptr, &o, &cq), -EINVAL);
  o = {.count = 65'537, .flags = kTx, .lcid = e.lcid()};
  EXPECT_EQ(cxil_alloc_cmdq(e.lni, nullptr, &o, &cq), -EINVAL);
  for (const auto& [asked, got] : {std::pair{0u, 64u}, {64u, 64u}, {65u, 128u}, {32'769u, 65'536u}}) {
    o.count = asked;
    ASSERT_EQ(cxil_alloc_cmdq(e.lni, nullptr, &o, &cq), 0);
    EXPECT_EQ(field<u32>(cq, 0), got);
    EXPECT_EQ(field<u32>(cq, 60), 2 * got);
    // Slot 0 is the status: read pointer 4, return code 1.
    EXPECT_EQ(field<u64>(field<void*>(cq, 40), 0), (u64{1} << 48 | 4));
    unsigned count = 9;
    EXPECT_EQ(cxil_cmdq_ack_counter(cq, &count), 0);
    EXPECT_EQ(count, 0u);
    EXPECT_EQ(cxil_cmdq_ack_counter(cq, nullptr), -EINVAL);
    EXPECT_EQ(cxil_destroy_cmdq(cq), 0);
  }
  EXPECT_EQ(cxil_destroy_cmdq(nullptr), -EINVAL);
  // Nothing lies behind it.
  constexpr std::size_t kReserved = 128 * kPageBytes;
  void* const reserved = ::mmap(nullptr, kReserved, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(reserved, MAP_FAILED);
  ASSERT_EQ(::mprotect(reserved, 4 * kPageBytes, PROT_READ | PROT_WRITE), 0);
  u8* const own = static_cast<u8*>(reserved);
  CqOptsBuf with{.opts = {.count = 256, .flags = kTx, .lcid = e.lcid()}, .buf = own + 64};
  EXPECT_EQ(cxil_alloc_buf_cmdq(e.lni, nullptr, &with, &cq), -EINVAL) << "not at a page";
  with.buf = own;
  with.opts.count = 200;
  EXPECT_EQ(cxil_alloc_buf_cmdq(e.lni, nullptr, &with, &cq), -EINVAL) << "no power of two";
  with.opts.count = 4096;
  EXPECT_EQ(cxil_alloc_buf_cmdq(e.lni, nullptr, &with, &cq), -EFAULT) << "longer than the buffer";
  with.opts.count = 256;
  with.is_host_mem = false;
  EXPECT_EQ(cxil_alloc_buf_cmdq(e.lni, nullptr, &with, &cq), -EOPNOTSUPP) << "a GPU's memory";
  ::munmap(reserved, kReserved);
}

TEST(DropinPortals, ArgumentsAndWhatIsInUse) {
  End e;
  Events events(e.lni, kPageBytes);
  void* pte = nullptr;
  void* map = nullptr;
  void* second = nullptr;
  const u64 options = 0;
  EXPECT_EQ(cxil_alloc_pte(nullptr, events.eq, &options, &pte), -EINVAL);
  EXPECT_EQ(cxil_alloc_pte(e.lni, events.eq, nullptr, &pte), -EINVAL);
  EXPECT_EQ(cxil_alloc_pte(e.lni, events.eq, &options, nullptr), -EINVAL);
  EXPECT_EQ(pte, nullptr);
  ASSERT_EQ(cxil_alloc_pte(e.lni, events.eq, &options, &pte), 0);
  EXPECT_EQ(cxil_destroy_evtq(events.eq), -EBUSY);
  EXPECT_EQ(cxil_map_pte(pte, nullptr, 0, false, &map), -EINVAL);
  EXPECT_EQ(cxil_map_pte(nullptr, e.domain, 0, false, &map), -EINVAL);
  EXPECT_EQ(cxil_map_pte(pte, e.domain, 0, false, nullptr), -EINVAL);
  EXPECT_EQ(cxil_map_pte(pte, e.domain, 256, false, &map), -EINVAL);
  EXPECT_EQ(cxil_map_pte(pte, e.domain, 0, true, &map), -EOPNOTSUPP);
  ASSERT_EQ(cxil_map_pte(pte, e.domain, 255, false, &map), 0);
  EXPECT_EQ(cxil_map_pte(pte, e.domain, 254, false, &second), -EBUSY);
  EXPECT_EQ(cxil_destroy_pte(pte), -EBUSY);
  EXPECT_EQ(cxil_destroy_domain(e.domain), -EBUSY);
  void* other = nullptr;
  ASSERT_EQ(cxil_alloc_pte(e.lni, events.eq, &options, &other), 0);
  EXPECT_EQ(cxil_map_pte(other, e.domain, 255, false, &second), -EEXIST);
  EXPECT_EQ(cxil_destroy_pte(other), 0);
  u8 status[32] = {};
  EXPECT_EQ(cxil_pte_status(nullptr, status), -EINVAL);
  EXPECT_EQ(cxil_pte_status(pte, nullptr), -EINVAL);
  ASSERT_EQ(cxil_pte_status(pte, status), 0);
  EXPECT_EQ(status[4], 1) << "disabled";
  EXPECT_EQ(cxil_invalidate_pte_le(pte, 0, 0), 0);
  EXPECT_EQ(cxil_invalidate_pte_le(nullptr, 0, 0), -EINVAL);
  EXPECT_EQ(cxil_pte_transition_sm(pte, 0), -EOPNOTSUPP);
  EXPECT_EQ(cxil_unmap_pte(map), 0);
  EXPECT_EQ(cxil_unmap_pte(nullptr), -EINVAL);
  EXPECT_EQ(cxil_destroy_pte(pte), 0);
  EXPECT_EQ(cxil_destroy_pte(nullptr), -EINVAL);
}

TEST(DropinCalls, ThatThereAreNotSaySoOnce) {
  End e;
  u64 value = 0;
  unsigned n = 0;
  bool b = true;
  std::uint16_t vni[2] = {};
  u8 description[68] = {};
  testing::internal::CaptureStderr();
  for (int twice = 0; twice < 2; ++twice) {
    EXPECT_EQ(cxil_map_csr(e.dev), -EPERM);
    EXPECT_EQ(cxil_read_csr(e.dev, 0, &value, 8), -EINVAL);
    EXPECT_EQ(cxil_write_csr(e.dev, 0, &value, 8), -EINVAL);
    EXPECT_EQ(cxil_write8_csr(e.dev, 0, 0, &value, 8), -EINVAL);
    EXPECT_EQ(cxil_read_cntr(e.dev, 0, &value, nullptr), -ENOENT);
    EXPECT_EQ(cxil_read_n_cntrs(e.dev, 1, &n, &value, nullptr), -ENOENT);
    EXPECT_EQ(cxil_read_all_cntrs(e.dev, &value, nullptr), -ENOENT);
    EXPECT_EQ(cxil_alloc_svc(e.dev, description, nullptr), -EPERM);
    EXPECT_EQ(cxil_update_svc(e.dev, description, nullptr), -EPERM);
    EXPECT_EQ(cxil_destroy_svc(e.dev, 2), -EPERM);
    EXPECT_EQ(cxil_svc_enable(e.dev, 1, true), -EPERM);
    EXPECT_EQ(cxil_set_svc_lpr(e.dev, 1, 2), -EPERM);
    EXPECT_EQ(cxil_svc_set_exclusive_cp(e.dev, 1, true), -EPERM);
    EXPECT_EQ(cxil_svc_set_vni_range(e.dev, 1, 1, 2), -EPERM);
    EXPECT_EQ(cxil_svc_set_netns(e.dev, 1, 1), -EPERM);
    EXPECT_EQ(cxil_get_svc_rsrc_use(e.dev, 1, description), -EOPNOTSUPP);
    EXPECT_EQ(cxil_sbus_op(e.dev, description, nullptr, nullptr, nullptr), -EPERM);
    EXPECT_EQ(cxil_sbus_op_reset(e.dev), -EPERM);
    EXPECT_EQ(cxil_serdes_op(e.dev, 0, 0, 0, 0, nullptr, 0, 0), -EPERM);
  }
  const std::string said = testing::internal::GetCapturedStderr();
  for (const char* const call : {"cxil_map_csr:", "cxil_read_cntr:", "cxil_alloc_svc:", "cxil_sbus_op:"}) {
    const auto at = said.find(call);
    EXPECT_NE(at, std::string::npos) << call << " in " << said;
    EXPECT_EQ(said.find(call, at + 1), std::string::npos) << call << " twice in " << said;
  }
  EXPECT_EQ(cxil_get_svc_lpr(e.dev, 1), 1);
  EXPECT_EQ(cxil_svc_get_exclusive_cp(e.dev, 1, &b), 0);
  EXPECT_FALSE(b);
  EXPECT_EQ(cxil_svc_get_netns(e.dev, 1, &n), 0);
  EXPECT_EQ(cxil_svc_get_vni_range(e.dev, 1, &vni[0], &vni[1]), -EINVAL);
  EXPECT_EQ(cxil_map_csr(nullptr), -EINVAL);
  cxil_free_svc_rsrc_list(nullptr);
}

}  // namespace doorbell::cxi::program
