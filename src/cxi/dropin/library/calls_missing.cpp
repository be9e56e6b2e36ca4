// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// libcxi's calls that manage a NIC. The software Cassini has none of what they change: each returns its
// documented error, and a line on standard error names it once.
#include <unistd.h>

#include <ctime>

#include "cxi/dropin/library/handles.hpp"

namespace doorbell::cxi::dropin {
namespace {

constexpr const char* kFixedServices =
    "the services of the software Cassini are fixed: 1 (VNIs 1 and 10) and 2 (10)";
constexpr const char* kNoRegisters = "the software Cassini has no registers to look at";
constexpr const char* kNoTelemetry =
    "the software Cassini has no telemetry; doorbell run cxi --report has its counts";
constexpr const char* kNoLink = "the software Cassini has no link hardware";

}  // namespace

// Services.
DOORBELL_LIBCXI int cxil_alloc_svc(void* device, const void* description, void*) {
  return device == nullptr || description == nullptr ? -EINVAL
                                                     : missing("cxil_alloc_svc", EPERM, kFixedServices);
}
DOORBELL_LIBCXI int cxil_destroy_svc(void* device, unsigned) {
  return device == nullptr ? -EINVAL : missing("cxil_destroy_svc", EPERM, kFixedServices);
}
DOORBELL_LIBCXI int cxil_update_svc(void* device, const void* description, void*) {
  return device == nullptr || description == nullptr ? -EINVAL
                                                     : missing("cxil_update_svc", EPERM, kFixedServices);
}
DOORBELL_LIBCXI int cxil_svc_enable(void* device, unsigned id, bool) {
  return device == nullptr || id == 0 ? -EINVAL : missing("cxil_svc_enable", EPERM, kFixedServices);
}
DOORBELL_LIBCXI int cxil_set_svc_lpr(void* device, unsigned, unsigned) {
  return device == nullptr ? -EINVAL : missing("cxil_set_svc_lpr", EPERM, kFixedServices);
}
DOORBELL_LIBCXI int cxil_get_svc_lpr(void* device, unsigned) {
  return device == nullptr ? -EINVAL : 1;  // each LNI has numbers of its own
}
DOORBELL_LIBCXI int cxil_svc_set_exclusive_cp(void* device, unsigned id, bool) {
  return device == nullptr || id == 0 ? -EINVAL : missing("cxil_svc_set_exclusive_cp", EPERM, kFixedServices);
}
DOORBELL_LIBCXI int cxil_svc_get_exclusive_cp(void* device, unsigned, bool* exclusive) {
  if (device == nullptr || exclusive == nullptr) return -EINVAL;
  *exclusive = false;
  return 0;
}
DOORBELL_LIBCXI int cxil_svc_set_vni_range(void* device, unsigned id, std::uint16_t, std::uint16_t) {
  return device == nullptr || id == 0 ? -EINVAL : missing("cxil_svc_set_vni_range", EPERM, kFixedServices);
}
DOORBELL_LIBCXI int cxil_svc_get_vni_range(void* device, unsigned, std::uint16_t* first,
                                           std::uint16_t* last) {
  return device == nullptr || first == nullptr || last == nullptr ? -EINVAL : -EINVAL;  // a list, not a range
}
DOORBELL_LIBCXI int cxil_svc_set_netns(void* device, unsigned id, unsigned) {
  return device == nullptr || id == 0 ? -EINVAL : missing("cxil_svc_set_netns", EPERM, kFixedServices);
}
DOORBELL_LIBCXI int cxil_svc_get_netns(void* device, unsigned, unsigned* netns) {
  if (device == nullptr || netns == nullptr) return -EINVAL;
  *netns = 0;
  return 0;
}
DOORBELL_LIBCXI int cxil_get_svc_rsrc_use(void* device, unsigned, void* use) {
  return device == nullptr || use == nullptr ? -EINVAL
                                             : missing("cxil_get_svc_rsrc_use", EOPNOTSUPP, kFixedServices);
}
DOORBELL_LIBCXI int cxil_get_svc_rsrc_list(void* device, void** list) {
  return device == nullptr || list == nullptr ? -EINVAL
                                              : missing("cxil_get_svc_rsrc_list", EOPNOTSUPP, kFixedServices);
}
DOORBELL_LIBCXI void cxil_free_svc_rsrc_list(void*) {}

// Registers.
DOORBELL_LIBCXI int cxil_map_csr(void* device) {
  return device == nullptr ? -EINVAL : missing("cxil_map_csr", EPERM, kNoRegisters);
}
DOORBELL_LIBCXI int cxil_read_csr(void* device, unsigned, void* value, size_t) {
  return device == nullptr || value == nullptr ? -EINVAL : missing("cxil_read_csr", EINVAL, kNoRegisters);
}
DOORBELL_LIBCXI int cxil_write_csr(void* device, unsigned, const void* value, size_t) {
  return device == nullptr || value == nullptr ? -EINVAL : missing("cxil_write_csr", EINVAL, kNoRegisters);
}
DOORBELL_LIBCXI int cxil_write8_csr(void* device, unsigned, unsigned, const void* value, size_t) {
  return device == nullptr || value == nullptr ? -EINVAL : missing("cxil_write8_csr", EINVAL, kNoRegisters);
}

// Telemetry.
DOORBELL_LIBCXI int cxil_read_cntr(void* device, unsigned, u64* value, timespec*) {
  return device == nullptr || value == nullptr ? -EINVAL : missing("cxil_read_cntr", ENOENT, kNoTelemetry);
}
DOORBELL_LIBCXI int cxil_read_n_cntrs(void* device, unsigned, const void* which, u64* value, timespec*) {
  return device == nullptr || which == nullptr || value == nullptr
             ? -EINVAL
             : missing("cxil_read_n_cntrs", ENOENT, kNoTelemetry);
}
DOORBELL_LIBCXI int cxil_read_all_cntrs(void* device, u64* value, timespec*) {
  return device == nullptr || value == nullptr ? -EINVAL
                                               : missing("cxil_read_all_cntrs", ENOENT, kNoTelemetry);
}

// The library exports these and declares them nowhere.
#define DOORBELL_UNDECLARED(name)                    \
  DOORBELL_LIBCXI int name() {                       \
    return missing(#name, EOPNOTSUPP, kNoTelemetry); \
  }
DOORBELL_UNDECLARED(cxil_read_n_cntrs_with_hdr)
DOORBELL_UNDECLARED(cxil_get_telemetry)
DOORBELL_UNDECLARED(cxil_reserve_cntr_pool_id)
DOORBELL_UNDECLARED(cxil_release_cntr_pool_id)
DOORBELL_UNDECLARED(cxil_get_telemetry_refresh_interval)
DOORBELL_UNDECLARED(cxil_set_telemetry_refresh_interval)
#undef DOORBELL_UNDECLARED

// The link.
DOORBELL_LIBCXI int cxil_inbound_wait(void* device) {
  return device == nullptr ? -EINVAL : 0;  // what has been acknowledged is in memory
}
DOORBELL_LIBCXI int cxil_sbus_op(void* device, const void*, u32*, u8*, u8*) {
  return device == nullptr ? -EINVAL : missing("cxil_sbus_op", EPERM, kNoLink);
}
DOORBELL_LIBCXI int cxil_sbus_op_compat(void* device, int, u32, u8, u8, u8, u32*, u8*, u8*, int, unsigned) {
  return device == nullptr ? -EINVAL : missing("cxil_sbus_op_compat", EPERM, kNoLink);
}
DOORBELL_LIBCXI int cxil_sbus_op_reset(void* device) {
  return device == nullptr ? -EINVAL : missing("cxil_sbus_op_reset", EPERM, kNoLink);
}
DOORBELL_LIBCXI int cxil_sbus_op_reset_compat(void* device, int) {
  return device == nullptr ? -EINVAL : missing("cxil_sbus_op_reset_compat", EPERM, kNoLink);
}
DOORBELL_LIBCXI int cxil_serdes_op(void* device, int, u64, u64, u64, u16*, int, unsigned) {
  return device == nullptr ? -EINVAL : missing("cxil_serdes_op", EPERM, kNoLink);
}

// The machine.
DOORBELL_LIBCXI int cxil_get_amo_remap_to_pcie_fadd(void* device, int* operation) {
  if (device == nullptr || operation == nullptr) return -EINVAL;
  *operation = -1;  // none is
  return 0;
}
DOORBELL_LIBCXI size_t cxil_page_size(void*) {
  return static_cast<size_t>(::sysconf(_SC_PAGESIZE));
}
DOORBELL_LIBCXI bool cxil_is_copy_on_fork() {
  return false;
}

}  // namespace doorbell::cxi::dropin
