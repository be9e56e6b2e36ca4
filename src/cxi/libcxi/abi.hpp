// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// The structures and numbers of libcxi's public interface, as far as they are used here. The declarations are
// our own. Source of the layouts: HewlettPackard/shs-libcxi c147b9e.
#pragma once

#include <doorbell/config.hpp>

#include <cstddef>

namespace doorbell::cxi {

/// The library's structures, with the fields that are read or written here. Those that the library hands out
/// are longer.
namespace libcxi {

/// One NIC that the library has opened (struct cxil_dev).
struct OpenNic {
  u32 id;
  u32 nid;
  u32 pid_bits;
};

/// The library fills 68 bytes; the rest is room for newer versions that fill more.
struct alignas(8) Service {
  static constexpr u8 kRestrictedVnis = 1 << 1;
  u8 flags;
  u8 vni_count;
  u16 vnis[4];
  u8 rest[246];
};
static_assert(offsetof(Service, vnis) == 2 && sizeof(Service) == 256);

struct Lni;
struct PteMap;
struct WaitObject;

/// All that the library says of a NIC (struct cxil_devinfo).
struct DeviceInfo {
  u32 id;
  u32 nid;
  u32 pid_bits;
  u32 pid_count;
  u32 pid_granule;
  u32 min_free_shift;
  u32 rdzv_get_idx;
  char device_name[14];
  char driver_name[9];
  u32 vendor_id;
  u32 device_id;
  u32 revision;
  u32 protocol;
  u32 platform;  ///< 0: hardware
  u16 ptes, transmit_queues, target_queues, event_queues, counters, contexts, triggers, list_entries;
  u16 pci_domain;
  u8 pci_bus;
  u8 pci_device;
  u8 pci_function;
  u64 link_mtu;
  u64 link_speed;
  u8 link_state;
  int is_unicast_nic;
  u32 retry_event_queue;  ///< 0: no retry handler
  u32 version;
  char part[16];
  bool is_virtual;
  u32 system_type;
};
static_assert(offsetof(DeviceInfo, vendor_id) == 52 && offsetof(DeviceInfo, ptes) == 72 &&
              offsetof(DeviceInfo, link_mtu) == 96 && offsetof(DeviceInfo, version) == 124 &&
              offsetof(DeviceInfo, is_virtual) == 144 && sizeof(DeviceInfo) == 152);

/// A service with all of its fields (struct cxi_svc_desc).
struct ServiceDescription {
  static constexpr u8 kRestrictedVnis = 1 << 1, kRestrictedClasses = 1 << 2, kEnabled = 1 << 4,
                      kSystem = 1 << 5;
  u8 flags;
  u8 vni_count;
  u16 vnis[4];
  bool traffic_classes[5];
  u8 gap;
  u32 members[4];  ///< identity and kind, of two
  u16 limits[16];  ///< most and reserved, of eight resources
  u32 id;
};
static_assert(offsetof(ServiceDescription, traffic_classes) == 10 &&
              offsetof(ServiceDescription, members) == 16 && offsetof(ServiceDescription, limits) == 32 &&
              offsetof(ServiceDescription, id) == 64 && sizeof(ServiceDescription) == 68);

/// A portals entry's status (struct cxi_pte_status).
struct PteStatus {
  u32 drop_count;
  u8 state;
  u16 reserved;
  u16 allocated;
  u16 most;
  u64* offsets;
  u16 offset_count;
};
static_assert(offsetof(PteStatus, state) == 4 && offsetof(PteStatus, offsets) == 16 &&
              sizeof(PteStatus) == 32);

struct Domain {
  u32 vni;
  u32 pid;
};

/// A communication profile.
struct Cp {
  u32 vni;
  u32 traffic_class;
  u32 traffic_class_type;
  u32 lcid;
};

/// A memory descriptor.
struct Md {
  u64 iova;
  u64 va;
  u64 bytes;
  u8 lac;
};
static_assert(offsetof(Md, lac) == 24);

struct MdHints {
  u32 page_shift;
  u32 huge_shift;
  u32 ptg_mode;
  bool ptg_mode_valid;
  int dmabuf_fd;
  u64 dmabuf_offset;
  bool dmabuf_valid;
};
static_assert(offsetof(MdHints, dmabuf_fd) == 16 && offsetof(MdHints, dmabuf_offset) == 24 &&
              offsetof(MdHints, dmabuf_valid) == 32 && sizeof(MdHints) == 40);

struct EqAttributes {
  void* queue;
  u64 bytes;
  u64 flags;
  u32 rest[6];  ///< status thresholds, combining delay, CPU, reserved slots
};
static_assert(sizeof(EqAttributes) == 48);

struct Eq {
  u32 bytes;
  u64 sw_state;
  u64* csr;
  u64 last_status[2];
  u32 rd_offset;
  u32 prev_rd_offset;
  u32 index;
  void* context;
  u8* events;
};
static_assert(offsetof(Eq, csr) == 16 && offsetof(Eq, rd_offset) == 40 && offsetof(Eq, index) == 48 &&
              offsetof(Eq, events) == 64 && sizeof(Eq) == 72);

struct CqOptions {
  u32 slots;
  u32 update_policy;
  u32 counter_pool;
  u32 flags;
  u32 lcid;
  u32 threshold_id;
};
static_assert(sizeof(CqOptions) == 24);

/// A queue in memory of the caller (struct cxi_cq_alloc_opts_buf).
struct CqBufferOptions {
  CqOptions options;
  void* buffer;  ///< null: the library's own memory
  bool is_host_memory;
  int dmabuf_fd;  ///< -1: none
  u64 dmabuf_offset;
};
static_assert(offsetof(CqBufferOptions, buffer) == 24 && offsetof(CqBufferOptions, dmabuf_fd) == 36 &&
              sizeof(CqBufferOptions) == 48);

struct Cq {
  u32 slots;
  u64* wp_address;
  u8* ll_64;
  u8* ll_128a;
  u8* ll_128u;
  u8* ring;
  u64 rp32;
  u32 index;
  u32 size32;
  u64 wp32;
  u64 hw_wp32;
};
static_assert(offsetof(Cq, ring) == 40 && offsetof(Cq, index) == 56 && offsetof(Cq, wp32) == 64 &&
              sizeof(Cq) == 80);

struct Ct {
  u64* doorbell;
  u32 index;
  void* writeback;
};
static_assert(offsetof(Ct, writeback) == 16);

struct Pte {
  u32 index;
};

inline constexpr u32 kDefaultService = 1;
inline constexpr u32 kAnyPid = 511;
inline constexpr int kBestEffort = 3;
inline constexpr int kDefaultType = 0;
inline constexpr int kAnyLcid = 2;  ///< a profile for triggered and other queues
inline constexpr u32 kMapPin = 1 << 0;
inline constexpr u32 kMapWrite = 1 << 2;
inline constexpr u32 kMapRead = 1 << 3;
inline constexpr u32 kMapDevice = 1 << 9;
inline constexpr u64 kEqNoCombining = 1 << 6;
inline constexpr u32 kCqTransmit = 1 << 1;
inline constexpr u32 kCqTriggered = 1 << 3;
inline constexpr u64 kPteNonMatching = 0, kPteMatching = 1 << 7;

}  // namespace libcxi

}  // namespace doorbell::cxi
