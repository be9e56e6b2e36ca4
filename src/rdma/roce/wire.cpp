// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "rdma/roce/wire.hpp"

#include <array>
#include <concepts>

#include "rdma/roce/big_endian.hpp"

namespace doorbell::roce {
namespace {

constexpr std::size_t kBthBytes = 12;
constexpr std::size_t kOperations = 30;

// Bits of one operation's Shape, so that the table below has a row for each operation.
enum Part : u16 {
  kRequest = 1,
  kStarts = 2,
  kEnds = 4,
  kPayload = 8,
  kReth = 16,
  kAtomic = 32,
  kAeth = 64,
  kAtomicAck = 128,
  kImmediate = 256,
  kInvalidate = 512,
  kForUc = 1024,  // the service has it, too
  kForUd = 2048,
  kExists = 4096,
};
constexpr u16 kMiddle = kExists | kRequest | kPayload | kForUc;
constexpr u16 kFirst = kMiddle | kStarts;
constexpr u16 kLast = kMiddle | kEnds;
constexpr u16 kOnly = kFirst | kLast;
constexpr u16 kResponse = kExists | kPayload;

// InfiniBand 9.2, table of opcodes, in their order.
constexpr std::array<u16, kOperations> kTable = {
    kFirst,                                          // send
    kMiddle,                                         //
    kLast,                                           //
    kLast | kImmediate,                              //
    kOnly | kForUd,                                  //
    kOnly | kImmediate | kForUd,                     //
    kFirst | kReth,                                  // write
    kMiddle,                                         //
    kLast,                                           //
    kLast | kImmediate,                              //
    kOnly | kReth,                                   //
    kOnly | kReth | kImmediate,                      //
    kExists | kRequest | kStarts | kEnds | kReth,    // read request
    kResponse | kStarts | kAeth,                     // its responses
    kResponse,                                       //
    kResponse | kEnds | kAeth,                       //
    kResponse | kStarts | kEnds | kAeth,             //
    kExists | kStarts | kEnds | kAeth,               // acknowledge
    kExists | kStarts | kEnds | kAeth | kAtomicAck,  // atomic acknowledge
    kExists | kRequest | kStarts | kEnds | kAtomic,  // compare and swap
    kExists | kRequest | kStarts | kEnds | kAtomic,  // fetch and add
    0,                                               // 21 is reserved
    (kLast | kInvalidate) & ~kForUc,                 // send with invalidate
    (kOnly | kInvalidate) & ~kForUc,                 //
    0,
    0,
    0,
    0,
    0,                          // 24 to 27 are reserved, 28 is FLUSH
    (kOnly | kReth) & ~kForUc,  // atomic write
};

template <std::size_t Bytes, std::unsigned_integral To>
void read(const u8* from, To& into) {
  into = static_cast<To>(load<Bytes>(from));
}

}  // namespace

Shape shape_of(Service service, Operation operation) {
  const auto number = static_cast<std::size_t>(operation);
  const u16 bits = number < kOperations ? kTable[number] : u16{0};
  const auto needed = [service]() -> u16 {
    switch (service) {
      case Service::rc:
      case Service::xrc:
        return kExists;
      case Service::uc:
        return kForUc;
      case Service::ud:
        return kForUd;
    }
    return 0;
  }();
  if ((bits & needed) == 0) return {};
  return {.exists = true,
          .request = (bits & kRequest) != 0,
          .starts = (bits & kStarts) != 0,
          .ends = (bits & kEnds) != 0,
          .payload = (bits & kPayload) != 0,
          .reth = (bits & kReth) != 0,
          .atomic = (bits & kAtomic) != 0,
          .aeth = (bits & kAeth) != 0,
          .atomic_ack = (bits & kAtomicAck) != 0,
          .immediate = (bits & kImmediate) != 0,
          .invalidate = (bits & kInvalidate) != 0,
          .deth = service == Service::ud,
          .xrceth = service == Service::xrc && (bits & kRequest) != 0};
}

std::size_t header_bytes(const Shape& shape) {
  return kBthBytes + (shape.reth ? 16 : 0) + (shape.atomic ? 28 : 0) + (shape.aeth ? 4 : 0) +
         (shape.atomic_ack ? 8 : 0) + (shape.immediate ? 4 : 0) + (shape.invalidate ? 4 : 0) +
         (shape.deth ? 8 : 0) + (shape.xrceth ? 4 : 0);
}

std::size_t encode(const Headers& h, std::size_t payload_bytes, u8* out) {
  const Shape shape = shape_of(h.service, h.operation);
  out[0] = static_cast<u8>(static_cast<u8>(h.service) << 5 | static_cast<u8>(h.operation));
  out[1] =
      static_cast<u8>((h.solicited ? 0x80 : 0) | (h.migrated ? 0x40 : 0) | pad_bytes(payload_bytes) << 4);
  store<2>(out + 2, h.partition);
  out[4] = h.becn ? 0x40 : 0;
  store<3>(out + 5, h.queue_pair);
  out[8] = h.wants_ack ? 0x80 : 0;
  store<3>(out + 9, h.psn);
  u8* at = out + kBthBytes;
  if (shape.xrceth) {
    at[0] = 0;
    store<3>(at + 1, h.shared_receives);
    at += 4;
  }
  if (shape.deth) {
    store<4>(at, h.queue_key);
    at[4] = 0;
    store<3>(at + 5, h.source_queue_pair);
    at += 8;
  }
  if (shape.reth) {
    store<8>(at, h.range.address);
    store<4>(at + 8, h.range.key);
    store<4>(at + 12, h.range.length);
    at += 16;
  }
  if (shape.atomic) {
    store<8>(at, h.range.address);
    store<4>(at + 8, h.range.key);
    store<8>(at + 12, h.swap_or_add);
    store<8>(at + 20, h.compare);
    at += 28;
  }
  if (shape.aeth) {
    at[0] = static_cast<u8>(static_cast<u8>(h.ack.kind) << 5 | (h.ack.value & 0x1F));
    store<3>(at + 1, h.ack.msn);
    at += 4;
  }
  if (shape.atomic_ack) {
    store<8>(at, h.original);
    at += 8;
  }
  if (shape.immediate) {
    __builtin_memcpy(at, &h.immediate, 4);
    at += 4;
  }
  if (shape.invalidate) {
    store<4>(at, h.invalidate_key);
    at += 4;
  }
  return static_cast<std::size_t>(at - out);
}

std::optional<DecodeError> decode(std::span<const u8> bytes, Decoded& into) {
  if (bytes.size() < kBthBytes) return DecodeError::short_packet;
  // Everything is read from this copy from here on: the bytes may change meanwhile.
  u8 copy[kLongestHeaders] = {};
  __builtin_memcpy(copy, bytes.data(), bytes.size() < sizeof copy ? bytes.size() : sizeof copy);
  Headers& h = into.headers;
  h.service = static_cast<Service>(copy[0] >> 5);
  h.operation = static_cast<Operation>(copy[0] & 0x1F);
  if ((copy[1] & 0x0F) != 0) return DecodeError::bad_version;
  into.shape = shape_of(h.service, h.operation);
  const Shape& shape = into.shape;
  if (!shape.exists) return DecodeError::unknown_opcode;
  const std::size_t headers = header_bytes(shape);
  if (bytes.size() < headers) return DecodeError::short_packet;
  h.solicited = (copy[1] & 0x80) != 0;
  h.migrated = (copy[1] & 0x40) != 0;
  h.pad = copy[1] >> 4 & 3;
  const std::size_t padded = bytes.size() - headers;
  if (padded % 4 != 0 || h.pad > padded || (!shape.payload && padded != 0)) return DecodeError::bad_padding;
  into.payload = bytes.subspan(headers, padded - h.pad);
  read<2>(copy + 2, h.partition);
  h.becn = (copy[4] & 0x40) != 0;
  read<3>(copy + 5, h.queue_pair);
  h.wants_ack = (copy[8] & 0x80) != 0;
  read<3>(copy + 9, h.psn);
  const u8* at = copy + kBthBytes;
  if (shape.xrceth) {
    read<3>(at + 1, h.shared_receives);
    at += 4;
  }
  if (shape.deth) {
    read<4>(at, h.queue_key);
    read<3>(at + 5, h.source_queue_pair);
    at += 8;
  }
  if (shape.reth || shape.atomic) {
    read<8>(at, h.range.address);
    read<4>(at + 8, h.range.key);
    at += 12;
    h.range.length = 0;
  }
  if (shape.reth) {
    read<4>(at, h.range.length);
    at += 4;
  }
  if (shape.atomic) {
    read<8>(at, h.swap_or_add);
    read<8>(at + 8, h.compare);
    at += 16;
  }
  if (shape.aeth) {
    h.ack.kind = static_cast<Acknowledge::Kind>(at[0] >> 5 & 3);
    h.ack.value = at[0] & 0x1F;
    read<3>(at + 1, h.ack.msn);
    at += 4;
  }
  if (shape.atomic_ack) {
    read<8>(at, h.original);
    at += 8;
  }
  if (shape.immediate) {
    __builtin_memcpy(&h.immediate, at, 4);
    at += 4;
  }
  if (shape.invalidate) read<4>(at, h.invalidate_key);
  return std::nullopt;
}

u64 rnr_timer_ns(u8 code) {
  // InfiniBand 9.7.5.2.8, in units of 10 us. Code 25 is 61.44 ms.
  static constexpr std::array<u16, 32> kTens = {
      65535, 1,   2,   3,   4,    6,    8,    12,   16,   24,   32,   48,    64,    96,    128,   192,
      256,   384, 512, 768, 1024, 1536, 2048, 3072, 4096, 6144, 8192, 12288, 16384, 24576, 32768, 49152};
  return code == 0 ? 655'360'000 : kTens[code & 31] * u64{10'000};
}

u64 timeout_ns(u8 code) {
  return (code & 31) == 0 ? 0 : u64{4096} << (code & 31);
}

}  // namespace doorbell::roce
