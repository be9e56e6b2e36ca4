// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// libcxi as a program sees it: the calls by name, and the structures by the offsets of their fields, apart
// from the declarations that the library under test is made of.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <ctime>

namespace doorbell::cxi::program {

/// A field of a structure that the library has filled.
template <class T>
T field(const void* structure, std::size_t offset) {
  T value;
  std::memcpy(&value, static_cast<const std::uint8_t*>(structure) + offset, sizeof value);
  return value;
}
template <class T>
void set_field(void* structure, std::size_t offset, T value) {
  std::memcpy(static_cast<std::uint8_t*>(structure) + offset, &value, sizeof value);
}

struct EqAttr {
  void* queue = nullptr;
  std::size_t queue_len = 0;
  std::uint64_t flags = 0;
  unsigned rest[6] = {};
};
static_assert(sizeof(EqAttr) == 48);

struct CqOpts {
  unsigned count = 0, policy = 0, stat_cnt_pool = 0, flags = 0, lcid = 0, lpe_cdt_thresh_id = 0;
};
struct CqOptsBuf {
  CqOpts opts;
  void* buf = nullptr;
  bool is_host_mem = true;
  int dmabuf_fd = -1;
  std::uint64_t dmabuf_offset = 0;
};
static_assert(sizeof(CqOptsBuf) == 48);

inline constexpr unsigned kTx = 2, kTrig = 8;                                // flags of command queues
inline constexpr unsigned kPin = 1, kWrite = 4, kRead = 8, kDevice = 0x200;  // of mappings
inline constexpr unsigned kAnyPid = 511;
inline constexpr int kBestEffort = 3, kLowLatency = 1, kTrigLcid = 0, kNonTrigLcid = 1, kAnyLcid = 2;

}  // namespace doorbell::cxi::program

extern "C" {
int cxil_get_device_list(void** list);
void cxil_free_device_list(void* list);
int cxil_open_device(unsigned id, void** dev);
void cxil_close_device(void* dev);
int cxil_get_svc(void* dev, unsigned id, void* desc);
int cxil_get_svc_list(void* dev, void** list);
void cxil_free_svc_list(void* list);
int cxil_alloc_svc(void* dev, const void* desc, void* info);
int cxil_update_svc(void* dev, const void* desc, void* info);
int cxil_destroy_svc(void* dev, unsigned id);
int cxil_svc_enable(void* dev, unsigned id, bool enable);
int cxil_set_svc_lpr(void* dev, unsigned id, unsigned n);
int cxil_get_svc_lpr(void* dev, unsigned id);
int cxil_svc_set_exclusive_cp(void* dev, unsigned id, bool v);
int cxil_svc_get_exclusive_cp(void* dev, unsigned id, bool* v);
int cxil_svc_set_vni_range(void* dev, unsigned id, std::uint16_t a, std::uint16_t b);
int cxil_svc_get_vni_range(void* dev, unsigned id, std::uint16_t* a, std::uint16_t* b);
int cxil_svc_set_netns(void* dev, unsigned id, unsigned n);
int cxil_svc_get_netns(void* dev, unsigned id, unsigned* n);
int cxil_get_svc_rsrc_use(void* dev, unsigned id, void* use);
int cxil_get_svc_rsrc_list(void* dev, void** list);
void cxil_free_svc_rsrc_list(void* list);
int cxil_alloc_lni(void* dev, void** lni, unsigned svc);
int cxil_destroy_lni(void* lni);
int cxil_alloc_cp(void* lni, unsigned vni, int tc, int type, void** cp);
int cxil_alloc_trig_cp(void* lni, unsigned vni, int tc, int type, int lcid_type, void** cp);
int cxil_destroy_cp(void* cp);
int cxil_modify_cp(void* lni, void* cp, unsigned vni);
int cxil_reserve_domain(void* lni, unsigned vni, unsigned pid, unsigned count);
int cxil_alloc_domain(void* lni, unsigned vni, unsigned pid, void** domain);
int cxil_destroy_domain(void* domain);
int cxil_alloc_cmdq(void* lni, void* evtq, const doorbell::cxi::program::CqOpts* opts, void** cmdq);
int cxil_alloc_buf_cmdq(void* lni, void* evtq, const doorbell::cxi::program::CqOptsBuf* opts, void** cmdq);
int cxil_destroy_cmdq(void* cmdq);
int cxil_cmdq_ack_counter(void* cmdq, unsigned* count);
int cxil_map(void* lni, void* va, std::size_t len, std::uint32_t flags, void* hints, void** md);
int cxil_unmap(void* md);
int cxil_update_md(void* md, void* va, std::size_t len, std::uint32_t flags);
int cxil_alloc_pte(void* lni, void* evtq, const std::uint64_t* opts, void** pte);
int cxil_destroy_pte(void* pte);
int cxil_map_pte(void* pte, void* domain, unsigned offset, bool multicast, void** map);
int cxil_unmap_pte(void* map);
int cxil_invalidate_pte_le(void* pte, unsigned id, int list);
int cxil_pte_status(void* pte, void* status);
int cxil_pte_transition_sm(void* pte, unsigned count);
int cxil_alloc_evtq(void* lni, const void* md, const doorbell::cxi::program::EqAttr* attr, void* event_wait,
                    void* status_wait, void** evtq);
int cxil_destroy_evtq(void* evtq);
int cxil_evtq_adjust_reserved_fc(void* evtq, int value);
int cxil_evtq_resize(void* evtq, void* queue, std::size_t len, void* md);
int cxil_evtq_resize_complete(void* evtq);
int cxil_alloc_wait_obj(void* lni, void** wait);
void cxil_clear_wait_obj(void* wait);
int cxil_destroy_wait_obj(void* wait);
int cxil_get_wait_obj_fd(void* wait);
int cxil_alloc_ct(void* lni, void* wb, void** ct);
int cxil_ct_wb_update(void* ct, void* wb);
int cxil_destroy_ct(void* ct);
int cxil_map_csr(void* dev);
int cxil_read_csr(void* dev, unsigned csr, void* value, std::size_t len);
int cxil_write_csr(void* dev, unsigned csr, const void* value, std::size_t len);
int cxil_write8_csr(void* dev, unsigned csr, unsigned offset, const void* value, std::size_t len);
int cxil_read_cntr(void* dev, unsigned cntr, std::uint64_t* value, timespec* ts);
int cxil_read_n_cntrs(void* dev, unsigned count, const void* cntr, std::uint64_t* value, timespec* ts);
int cxil_read_all_cntrs(void* dev, std::uint64_t* value, timespec* ts);
int cxil_inbound_wait(void* dev);
int cxil_sbus_op(void* dev, const void* params, std::uint32_t* rsp, std::uint8_t* code,
                 std::uint8_t* overrun);
int cxil_sbus_op_reset(void* dev);
int cxil_serdes_op(void* dev, int port, std::uint64_t sel, std::uint64_t op, std::uint64_t data,
                   std::uint16_t* result, int timeout, unsigned flags);
int cxil_get_amo_remap_to_pcie_fadd(void* dev, int* value);
std::size_t cxil_page_size(void* base);
bool cxil_is_copy_on_fork();
}
