// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// A device's description of itself: limits, port, GIDs, P_Keys, clock.
#include <arpa/inet.h>
#include <net/if.h>

#include <algorithm>
#include <cstring>
#include <ctime>

#include "rdma/dropin/devices.hpp"
#include "system/interface_of.hpp"

namespace doorbell::dropin {

namespace {

constexpr u32 kGids = 4;  ///< entries of the table, of which the first is used
/// A port's LID, SM and lanes mean nothing on Ethernet; programs print the rate: 4 lanes of 25 Gb/s.
constexpr u8 kWidth4 = 2, kSpeedEdr = 32, kLinkUp = 5;
constexpr u32 kVendor = 0x0d00be;

ibv_mtu mtu_code(u32 bytes) {
  for (int code = IBV_MTU_4096; code > IBV_MTU_256; --code)
    if (bytes >= (128U << code)) return static_cast<ibv_mtu>(code);
  return IBV_MTU_256;
}

int query_device_plain(ibv_context* base, ibv_device_attr* into) {
  Context& context = of(base);
  const roce::Limits& limits = context.nic->limits();
  std::memset(into, 0, sizeof *into);
  std::strcpy(into->fw_ver, "1.0");
  into->node_guid = context.device->guid;
  into->sys_image_guid = context.device->guid;
  into->max_mr_size = ~u64{0};
  into->page_size_cap = 0xFFFF'F000;
  into->vendor_id = kVendor;
  into->vendor_part_id = 1;
  into->hw_ver = 1;
  into->max_qp = static_cast<int>(limits.queue_pairs);
  into->max_qp_wr = static_cast<int>(limits.requests);
  into->device_cap_flags = IBV_DEVICE_RC_RNR_NAK_GEN | IBV_DEVICE_SYS_IMAGE_GUID | IBV_DEVICE_MEM_WINDOW |
                           IBV_DEVICE_MEM_WINDOW_TYPE_2B | IBV_DEVICE_MEM_MGT_EXTENSIONS |
                           IBV_DEVICE_CURR_QP_STATE_MOD | IBV_DEVICE_XRC;
  into->max_sge = static_cast<int>(limits.sges);
  into->max_sge_rd = static_cast<int>(limits.sges);
  into->max_cq = static_cast<int>(limits.completion_queues);
  into->max_cqe = static_cast<int>(limits.completions);
  into->max_mr = 1 << 23;
  into->max_pd = 1 << 23;
  into->max_mw = 1 << 23;
  into->max_qp_rd_atom = static_cast<int>(limits.reads);
  into->max_res_rd_atom = static_cast<int>(limits.reads * limits.queue_pairs);
  into->max_qp_init_rd_atom = static_cast<int>(limits.reads);
  into->atomic_cap = IBV_ATOMIC_HCA;
  into->max_ah = 1 << 23;
  into->max_srq = static_cast<int>(limits.shared_receive_queues);
  into->max_srq_wr = static_cast<int>(limits.requests);
  into->max_srq_sge = static_cast<int>(limits.sges);
  into->max_pkeys = 1;
  into->local_ca_ack_delay = 15;
  into->phys_port_cnt = 1;
  return 0;
}

int query_device_extended(ibv_context* base, const ibv_query_device_ex_input* input, ibv_device_attr_ex* into,
                          std::size_t bytes) {
  if ((input != nullptr && input->comp_mask != 0) || bytes < sizeof(ibv_device_attr)) return EINVAL;
  ibv_device_attr_ex all = {};
  if (const int error = query_device_plain(base, &all.orig_attr)) return error;
  all.completion_timestamp_mask = ~u64{0};
  all.hca_core_clock = 1'000'000;  // kHz: completions have the time in ns
  // IB_UVERBS_DEVICE_ATOMIC_WRITE of Linux's include/uapi/rdma/ib_user_verbs.h; verbs.h of rdma-core 44 has
  // no name for it.
  constexpr u64 kAtomicWrite = u64{1} << 40;
  all.device_cap_flags_ex = all.orig_attr.device_cap_flags | kAtomicWrite;
  all.max_dm_size = kDeviceMemory;
  all.phys_port_cnt_ex = 1;
  // A newer program has a longer structure, whose end nobody here knows.
  std::memset(into, 0, bytes);
  std::memcpy(into, &all, std::min(bytes, sizeof all));
  return 0;
}

int query_port_long(ibv_context* base, u8 port, ibv_port_attr* into, std::size_t bytes) {
  Context& context = of(base);
  if (context.dead) return EIO;
  if (port != 1) return EINVAL;
  ibv_port_attr all = {};
  all.state = IBV_PORT_ACTIVE;
  all.max_mtu = IBV_MTU_4096;
  all.active_mtu = mtu_code(context.adapter->mtu());
  all.gid_tbl_len = kGids;
  all.port_cap_flags = IBV_PORT_IP_BASED_GIDS;
  all.max_msg_sz = static_cast<u32>(std::min<u64>(context.nic->limits().message_bytes, 1U << 31));
  all.pkey_tbl_len = 1;
  all.max_vl_num = 1;
  all.active_width = kWidth4;
  all.active_speed = kSpeedEdr;
  all.phys_state = kLinkUp;
  all.link_layer = IBV_LINK_LAYER_ETHERNET;
  std::memset(into, 0, bytes);
  std::memcpy(into, &all, std::min(bytes, sizeof all));
  return 0;
}

int query_clock(ibv_context* base, ibv_values_ex* values) {
  if (of(base).dead) return EIO;
  const u32 asked = values->comp_mask;
  values->comp_mask = 0;
  if ((asked & IBV_VALUES_MASK_RAW_CLOCK) != 0) {
    ::clock_gettime(CLOCK_MONOTONIC, &values->raw_clock);
    values->comp_mask |= IBV_VALUES_MASK_RAW_CLOCK;
  }
  return 0;
}

ibv_gid gid_of(u32 address) {
  ibv_gid gid = {};
  gid.raw[10] = gid.raw[11] = 0xFF;
  const u32 wire = htonl(address);
  std::memcpy(gid.raw + 12, &wire, sizeof wire);
  return gid;
}

ibv_gid_entry entry_of(Context& context) {
  const u32 address = context.adapter->self().address;
  return {.gid = gid_of(address),
          .gid_index = 0,
          .port_num = 1,
          .gid_type = IBV_GID_TYPE_ROCE_V2,
          .ndev_ifindex = ::if_nametoindex(interface_of(address).c_str())};
}

}  // namespace

void set_query_operations(Context& context) {
  context.verbs.query_port = query_port_long;
  context.verbs.query_device_ex = query_device_extended;
  context.verbs.query_rt_values = query_clock;
}

}  // namespace doorbell::dropin

using namespace doorbell::dropin;
using doorbell::u32;
using doorbell::u8;

DOORBELL_VERBS int ibv_query_device(ibv_context* context, ibv_device_attr* into) {
  return query_device_plain(context, into);
}

DOORBELL_VERBS int ibv_query_port(ibv_context* context, u8 port, _compat_ibv_port_attr* into) {
  // Programs of old have room up to link_layer's word.
  constexpr std::size_t kOldBytes = 48;
  return query_port_long(context, port, reinterpret_cast<ibv_port_attr*>(into), kOldBytes);
}

DOORBELL_VERBS int ibv_query_gid(ibv_context* base, u8 port, int index, ibv_gid* into) {
  Context& context = of(base);
  if (context.dead || port != 1 || index < 0 || index >= static_cast<int>(kGids)) {
    errno = context.dead ? EIO : EINVAL;
    return -1;
  }
  *into = index == 0 ? gid_of(context.adapter->self().address) : ibv_gid{};
  return 0;
}

DOORBELL_VERBS int _ibv_query_gid_ex(ibv_context* base, u32 port, u32 index, ibv_gid_entry* into, u32 flags,
                                     std::size_t bytes) {
  Context& context = of(base);
  if (context.dead) return EIO;
  if (flags != 0) return EOPNOTSUPP;
  if (port != 1 || index >= kGids) return EINVAL;
  if (index != 0) return ENODATA;
  const ibv_gid_entry entry = entry_of(context);
  std::memset(into, 0, bytes);
  std::memcpy(into, &entry, std::min(bytes, sizeof entry));
  return 0;
}

DOORBELL_VERBS ssize_t _ibv_query_gid_table(ibv_context* base, ibv_gid_entry* into, std::size_t most,
                                            u32 flags, std::size_t bytes) {
  Context& context = of(base);
  if (context.dead) return -EIO;
  if (flags != 0) return -EOPNOTSUPP;
  if (most == 0) return -EINVAL;
  const ibv_gid_entry entry = entry_of(context);
  std::memset(into, 0, bytes);
  std::memcpy(into, &entry, std::min(bytes, sizeof entry));
  return 1;
}

/// Private to rdma-core, and called by its programs all the same: 1 is RoCE v2 in the numbers of sysfs.
DOORBELL_VERBS int ibv_query_gid_type(ibv_context* base, u8 port, unsigned index, int* type) {
  if (of(base).dead) return EIO;
  if (port != 1 || index >= kGids) return EINVAL;
  *type = 1;
  return 0;
}

DOORBELL_VERBS int ibv_query_pkey(ibv_context* base, u8 port, int index, __be16* key) {
  if (of(base).dead || port != 1 || index != 0) {
    errno = of(base).dead ? EIO : EINVAL;
    return -1;
  }
  *key = 0xFFFF;
  return 0;
}

DOORBELL_VERBS int ibv_get_pkey_index(ibv_context* base, u8 port, __be16 key) {
  if (of(base).dead || port != 1 || (key & 0xFF7F) != 0xFF7F) {
    errno = EINVAL;
    return -1;
  }
  return 0;
}
