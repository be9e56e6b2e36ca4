// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// The parts of linux/vfio.h that Linux 6.1 lacks: device files (/dev/vfio/devices) and iommufd. The layouts
// and numbers are those of include/uapi/linux/vfio.h (6.6) and include/uapi/linux/iommufd.h (6.2;
// IOMMU_IOAS_MAP_FILE 6.13).
#pragma once

#include <doorbell/config.hpp>
#include <linux/vfio.h>
#include <sys/ioctl.h>

namespace doorbell::pci::kernel {

struct VfioBindIommufd {  // VFIO_DEVICE_BIND_IOMMUFD
  u32 argsz = sizeof(VfioBindIommufd);
  u32 flags = 0;
  std::int32_t iommufd = -1;
  u32 device_id = 0;
};
struct VfioAttachTable {  // VFIO_DEVICE_ATTACH_IOMMUFD_PT; pasid (6.15) left out
  u32 argsz = sizeof(VfioAttachTable);
  u32 flags = 0;
  u32 table_id = 0;
};
inline constexpr unsigned long kVfioBindIommufd = _IO(VFIO_TYPE, VFIO_BASE + 18);
inline constexpr unsigned long kVfioAttachTable = _IO(VFIO_TYPE, VFIO_BASE + 19);

struct IoasAlloc {
  u32 size = sizeof(IoasAlloc);
  u32 flags = 0;
  u32 ioas_id = 0;
};
struct IovaRange {
  u64 start = 0;
  u64 last = 0;
};
struct IoasIovaRanges {
  u32 size = sizeof(IoasIovaRanges);
  u32 ioas_id = 0;
  u32 count = 0;
  u32 reserved = 0;
  u64 ranges = 0;  // IovaRange[count]
  u64 alignment = 0;
};
inline constexpr u32 kMapFixedIova = 1;
inline constexpr u32 kMapWriteable = 2;
inline constexpr u32 kMapReadable = 4;
struct IoasMap {
  u32 size = sizeof(IoasMap);
  u32 flags = 0;
  u32 ioas_id = 0;
  u32 reserved = 0;
  u64 user_va = 0;
  u64 length = 0;
  u64 iova = 0;
};
struct IoasMapFile {
  u32 size = sizeof(IoasMapFile);
  u32 flags = 0;
  u32 ioas_id = 0;
  std::int32_t fd = -1;
  u64 start = 0;
  u64 length = 0;
  u64 iova = 0;
};
struct IoasUnmap {
  u32 size = sizeof(IoasUnmap);
  u32 ioas_id = 0;
  u64 iova = 0;
  u64 length = 0;
};
inline constexpr char kIommufdType = ';';
inline constexpr unsigned long kIoasAlloc = _IO(kIommufdType, 0x81);
inline constexpr unsigned long kIoasIovaRanges = _IO(kIommufdType, 0x84);
inline constexpr unsigned long kIoasMap = _IO(kIommufdType, 0x85);
inline constexpr unsigned long kIoasUnmap = _IO(kIommufdType, 0x86);
inline constexpr unsigned long kIoasMapFile = _IO(kIommufdType, 0x8f);

static_assert(sizeof(VfioBindIommufd) == 16 && sizeof(VfioAttachTable) == 12 && sizeof(IoasAlloc) == 12 &&
              sizeof(IoasIovaRanges) == 32 && sizeof(IoasMap) == 40 && sizeof(IoasMapFile) == 40 &&
              sizeof(IoasUnmap) == 24);

}  // namespace doorbell::pci::kernel
