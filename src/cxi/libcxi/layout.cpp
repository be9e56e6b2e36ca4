// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "cxi/libcxi/layout.hpp"

#include <doorbell/cxi/types.hpp>
#include <doorbell/error.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>

namespace doorbell::cxi {

namespace {

constexpr u32 kFirstWp32 = 2 * kStatusSlots;
constexpr u32 kEventBlock = 64;
constexpr u64 kWindow64 = 1024;
constexpr u64 kWindow128Aligned = 2048;
constexpr u64 kWindow128Unaligned = 3072;
constexpr u32 kNids = 1 << 20;
constexpr u32 kLcids = 16;
constexpr u32 kLacs = 8;
constexpr u32 kQueues = 1536;   // 1024 transmit queues and 512 target queues
constexpr u32 kIndices = 2048;  // for event queues, counters and portals entries
constexpr u8 kReturnOk = 1;

[[noreturn]] void wrong(const std::string& what, const std::string& field, const std::string& why) {
  throw Error(fmt::format("the {} that libcxi has made", what), fmt::format("its {} {}", field, why),
              "this libcxi lays its structures out otherwise than libcxi.so.1 did when this was written");
}

template <class T>
void equal(const char* what, const char* field, T is, T should_be) {
  if (is != should_be) wrong(what, field, fmt::format("is {}, not {}", is, should_be));
}
void in_range(const char* what, const char* field, u64 is, u64 least, u64 most) {
  if (is < least || is > most) wrong(what, field, fmt::format("is {}, not in {}..{}", is, least, most));
}
void pointer(const char* what, const char* field, const void* is, u64 alignment) {
  if (is == nullptr || reinterpret_cast<u64>(is) % alignment != 0)
    wrong(what, field, fmt::format("is {}, which is no address of one", is));
}

/// Checks that the windows lie in the launch page, behind the write pointer.
void check_launch(const libcxi::Cq& q, const char* what) {
  pointer(what, "launch page", q.wp_address, kLaunchBytes);
  const auto page = reinterpret_cast<u64>(q.wp_address);
  const auto window = [&](const char* field, const u8* at, u64 offset) {
    equal(what, field, reinterpret_cast<u64>(at) - page, offset);
  };
  window("64-byte window's offset", q.ll_64, kWindow64);
  window("aligned 128-byte window's offset", q.ll_128a, kWindow128Aligned);
  window("unaligned 128-byte window's offset", q.ll_128u, kWindow128Unaligned);
}

}  // namespace

void check_made(const void* object, const std::string& what) {
  if (object == nullptr) throw Error(what, "libcxi reports success, but hands out nothing");
}

void check(const libcxi::OpenNic& nic, u32 number) {
  equal("device", "number", nic.id, number);
  in_range("device", "NID", nic.nid, 0, kNids - 1);
  in_range("device", "PID bits", nic.pid_bits, 6, 9);
}

void check(const libcxi::Domain& d, u32 vni, u32 pid_bits) {
  equal("domain", "VNI", d.vni, vni);
  in_range("domain", "PID", d.pid, 0, (1U << pid_bits) - 1);
}

void check(const libcxi::Cp& cp, u32 vni) {
  equal("communication profile", "VNI", cp.vni, vni);
  in_range("communication profile", "LCID", cp.lcid, 0, kLcids - 1);
}

void check(const libcxi::Md& md, u64 address, u64 bytes) {
  constexpr const char* kWhat = "memory descriptor";
  if (md.va > address || md.bytes < bytes || address - md.va > md.bytes - bytes)
    wrong(
        kWhat, "range",
        fmt::format("is {} bytes at {:#x}, which do not cover {} at {:#x}", md.bytes, md.va, bytes, address));
  in_range(kWhat, "address context", md.lac, 0, kLacs - 1);
}

void check(const libcxi::Eq& q, const libcxi::EqAttributes& asked) {
  constexpr const char* kWhat = "event queue";
  equal<u64>(kWhat, "size", q.bytes, asked.bytes);
  equal<const void*>(kWhat, "buffer", q.events, asked.queue);
  equal(kWhat, "read offset", q.rd_offset, kEventBlock);
  equal(kWhat, "previous read offset", q.prev_rd_offset, kEventBlock);
  in_range(kWhat, "index", q.index, 1, kIndices - 1);
  pointer(kWhat, "register", q.csr, sizeof(u64));
}

void check_in_buffer(const libcxi::Cq& q, u32 slots) {
  constexpr const char* kWhat = "command queue";
  if (!std::has_single_bit(q.size32)) wrong(kWhat, "size32", fmt::format("is {}, no power of two", q.size32));
  equal(kWhat, "size32", q.size32, 2 * q.slots);
  in_range(kWhat, "size", q.slots, std::max(slots, kMinSlots), kMaxSlots);
  equal<u64>(kWhat, "wp32", q.wp32, kFirstWp32);
  equal<u64>(kWhat, "hw_wp32", q.hw_wp32, kFirstWp32);
  equal<u64>(kWhat, "rp32", q.rp32, kFirstWp32);
  in_range(kWhat, "index", q.index, 0, kQueues - 1);
  check_launch(q, kWhat);
}

void check(const libcxi::Cq& q, u32 slots) {
  constexpr const char* kWhat = "command queue";
  check_in_buffer(q, slots);
  pointer(kWhat, "ring", q.ring, kSlotBytes);
  u16 rd_pointer = 0;
  std::memcpy(&rd_pointer, q.ring, sizeof rd_pointer);
  equal<u32>(kWhat, "status' read pointer", rd_pointer, kStatusSlots);
  equal<u32>(kWhat, "status' return code", q.ring[6] & 0x3f, kReturnOk);
}

void check(const libcxi::Ct& ct, const void* writeback) {
  constexpr const char* kWhat = "counter";
  in_range(kWhat, "index", ct.index, 1, kIndices - 1);
  pointer(kWhat, "doorbell page", ct.doorbell, kLaunchBytes);
  equal<const void*>(kWhat, "write-back", ct.writeback, writeback);
}

void check(const libcxi::Pte& entry) {
  in_range("portals entry", "index", entry.index, 0, kIndices - 1);
}

}  // namespace doorbell::cxi
