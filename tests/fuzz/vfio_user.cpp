// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// vfio-user's messages, any bytes of them: what the codec makes of them keeps its limits, maps of any ranges
// keep theirs, and configuration space takes any write.

#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "fuzz/fuzz.hpp"
#include "model/dma.hpp"
#include "vfio_user/config_space.hpp"
#include "vfio_user/dma_maps.hpp"
#include "vfio_user/interrupts.hpp"
#include "vfio_user/wire.hpp"

using namespace doorbell;
using namespace doorbell::vfio_user;
using fuzz::require;

namespace {

class Nothing final : public RemoteMemory {
 public:
  bool read(Iova, void* to, u64 bytes, const std::function<void()>&) override {
    std::memset(to, 0, bytes);
    return true;
  }
  bool write(Iova, const void*, u64, const std::function<void()>&) override { return true; }
};

void decode(std::span<const u8> bytes) {
  std::string why;
  const std::size_t length = length_of(bytes, kLongest);
  require(length == 0 || (length >= kHeaderBytes && length <= kLongest));
  if (const auto v = decode_version(bytes, why)) {
    require(v->capabilities.max_data_xfer_size > 0 && v->capabilities.pgsizes > 0);
    const auto again = encode_version(v->major, v->minor, &v->capabilities);
    require(decode_version(again, why).has_value());
  }
  if (const auto areas = decode_areas(bytes, why)) {
    const auto info = *first_of<RegionInfo>(bytes);
    for (const Area& a : *areas) require(within(a.offset, a.size, info.size));
  }
}

void map_and_access(FuzzedDataProvider& in) {
  static const int file = [] {
    const int fd = memfd_create("fuzz", MFD_CLOEXEC);
    require(ftruncate(fd, 1 << 20) == 0);
    return fd;
  }();
  SoftwareAddressSpace space;
  Nothing remote;
  DmaMaps maps(space, remote);
  model::DmaEngine dma(space, nullptr, 0);
  const auto number = [&]() -> u64 {
    switch (in.ConsumeIntegralInRange<u32>(0, 3)) {
      case 0:
        return in.ConsumeIntegral<u64>();
      case 1:
        return ~u64{0} - 4096 * in.ConsumeIntegral<u8>();
      default:
        return 4096 * u64{in.ConsumeIntegral<u8>()};
    }
  };
  std::vector<u8> space_of_bytes(8192);
  for (u32 i = 0; i < 64 && in.remaining_bytes() > 0; ++i) {
    const bool here = in.ConsumeBool();
    const DmaMap map{.flags = in.ConsumeIntegralInRange<u32>(0, 15),
                     .offset = number(),
                     .address = number(),
                     .size = number()};
    if (in.ConsumeBool()) {
      const int error = maps.map(map, here ? file : -1, {0x10000, 0x4000});
      require(error == 0 || map.size == 0 || error > 0);
    } else {
      (void)maps.is_here({.flags = map.flags & 3, .address = map.address, .size = map.size});
      (void)maps.unmap({.flags = map.flags & 3, .address = map.address, .size = map.size});
    }
    const u64 bytes = in.ConsumeIntegralInRange<u64>(0, space_of_bytes.size());
    const u64 at = number();
    const bool reachable = dma.reachable(at, bytes, Access::read);
    require(dma.fetch(at, space_of_bytes.data(), bytes) == reachable);
  }
  maps.forget_all();
  require(maps.ranges() == 0 && maps.remote_ranges() == 0 && !dma.reachable(0, 1, Access::read));
}

void write_config(FuzzedDataProvider& in) {
  ConfigSpace config({1, 2, 3, 4, 5, 0x010802}, 0x4000, 65);
  for (u32 i = 0; i < 32 && in.remaining_bytes() > 0; ++i) {
    const auto data = in.ConsumeBytes<u8>(in.ConsumeIntegralInRange<std::size_t>(0, 64));
    (void)config.write(in.ConsumeIntegralInRange<u32>(0, 4096 - 64), data);
    std::vector<u8> all(4096);
    config.read(0, all);
    require(all[0] == 1 && all[0xb] == 1 && all[0x34] == 0x40 && (all[0x51] & 0x80) == 0);
  }
}

void set_irqs(FuzzedDataProvider& in) {
  static const auto lines = std::make_unique<Interrupts>(65);
  for (u32 i = 0; i < 32 && in.remaining_bytes() > 0; ++i) {
    const IrqSet s{.flags = in.ConsumeIntegralInRange<u32>(0, 63),
                   .index = in.ConsumeIntegralInRange<u32>(0, 4),
                   .start = in.ConsumeIntegral<u32>() >> in.ConsumeIntegralInRange<u32>(0, 31),
                   .count = in.ConsumeIntegral<u32>() >> in.ConsumeIntegralInRange<u32>(0, 31)};
    const auto data = in.ConsumeBytes<u8>(in.ConsumeIntegralInRange<std::size_t>(0, 80));
    if (lines->set(s, data, {}) == 0) require(s.count <= lines->count(s.index));
    lines->raise(in.ConsumeIntegral<u8>());
  }
  lines->reset();
  lines->close_replaced();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const u8* bytes, std::size_t size) {
  FuzzedDataProvider in(bytes, size);
  switch (in.ConsumeIntegralInRange<u32>(0, 3)) {
    case 0: {
      const auto rest = in.ConsumeRemainingBytes<u8>();
      decode(rest);
      break;
    }
    case 1:
      map_and_access(in);
      break;
    case 2:
      write_config(in);
      break;
    default:
      set_irqs(in);
  }
  return 0;
}
