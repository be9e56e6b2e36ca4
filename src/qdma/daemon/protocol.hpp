// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// The daemon's messages: AF_UNIX SOCK_SEQPACKET, one header and one packed body a message, little endian. The
// opcodes and bodies below 0x8000 are those of Xilinx/SLASH 6a4cc11e, vrtd/wire.h, as far as they concern
// QDMA; test vectors in tests/golden/qdma.json, kind daemon_request. Those from 0x8000 on are doorbell's own.
//
// A client that says hello gets an ErrorBody with every refusal. One that does not gets what upstream's
// daemon sends: a code, and no body.
#pragma once

#include <doorbell/qdma/abi.hpp>

#include <cstring>
#include <optional>
#include <span>
#include <string_view>
#include <type_traits>
#include <vector>

namespace doorbell::qdma::daemon {

/// HelloReply::features: the card is a software one.
inline constexpr u32 kFeatureModel = 1;
/// Header and body together.
inline constexpr std::size_t kMaxMessage = 4096;
inline constexpr u32 kProtocolVersion = 1;
inline constexpr const char* kDefaultSocket = "/run/doorbelld.sock";

enum class Opcode : u16 {
  num_devices = 0,
  device_info = 1,
  qdma_info = 4,
  queue_pair_add = 5,
  queue_pair_op = 6,
  queue_pair_descriptor = 7,
  buffer_open = 10,
  buffer_close = 11,
  device_by_bdf = 12,
  buffer_open_raw = 15,
  hello = 0x8000,        ///< Hello; the reply's body is a HelloReply
  descriptor = 0x8001,   ///< DescriptorRequest; the reply has one zero byte and the descriptor
  host_buffer = 0x8002,  ///< HostBufferRequest; the reply has a BufCreate and the descriptor
  holder = 0x8003,       ///< HolderRequest; the reply's body is a HolderReply. Older daemons have it not
};
/// "buffer-open"; "unknown" for a number that is no opcode of this daemon.
[[nodiscard]] std::string_view name(Opcode o);
/// Every opcode that this daemon serves.
[[nodiscard]] std::span<const Opcode> opcodes();

enum class Code : u16 {
  ok = 0,
  bad_request = 3,
  invalid_argument = 4,
  noexist = 5,
  internal_error = 6,
  auth_error = 7,
  busy = 8,
};
[[nodiscard]] std::string_view name(Code c);
/// The code that stands for an errno.
[[nodiscard]] Code code_of(int error);
/// The errno that a code stands for, where a reply has no ErrorBody.
[[nodiscard]] int errno_of(Code code);

enum class AllocationType : u32 { ddr = 0, hbm = 1, hbm_vnoc = 2 };
/// A buffer's direction: 0 both, 1 host to card, 2 card to host.
inline constexpr u32 kMaxBufferDirection = 2;

#pragma pack(push, 1)
struct RequestHeader {
  u16 bytes = 0;  ///< of the body
  u16 opcode = 0;
  u32 sequence = 0;  ///< comes back with the reply
};
struct ReplyHeader {
  u16 bytes = 0;
  u16 code = 0;
  u32 sequence = 0;
};
struct Zero {
  u8 zero = 0;
};
struct DeviceRequest {
  u32 device = 0;
};
struct DeviceInfoReply {
  std::array<char, 128> name{};
  std::array<char, 32> bdf{};
  u16 vendor = 0, device = 0, subsystem_vendor = 0, subsystem_device = 0;
  u8 shell_type = 0;  ///< 0: unknown
  u8 jtag = 0;
};
struct BdfRequest {
  std::array<char, 32> bdf{};
};
struct QueuePairAddRequest {
  u32 device = 0;
  QpairAdd add;
};
/// A request about one queue pair.
struct QueuePairRequest {
  u32 device = 0;
  u32 qid = 0;
  u32 argument = 0;  ///< queue_pair_op: a QueueOp; queue_pair_descriptor: its flags
};
struct BufferOpenRequest {
  u32 device = 0;
  u32 type = 0;       ///< AllocationType
  u32 direction = 0;  ///< up to kMaxBufferDirection
  u32 channel = 0;    ///< kChannelAuto: two queue pairs, index 0 on channel 0
  u64 argument = 0;   ///< HBM: the region, 0..63
  u64 size = 0;
};
struct BufferOpenReply {
  u64 size = 0;
  u64 address = 0;
  u32 queue_pairs = 0;
};
struct BufferCloseRequest {
  u32 device = 0;
  u64 address = 0;
  u64 size = 0;
};
struct BufferOpenRawRequest {
  u32 device = 0;
  u32 direction = 0;
  u32 channel = 0;
  u64 address = 0;
  u64 size = 0;
};
struct Hello {
  u32 version = kProtocolVersion;
  u32 features = 0;  ///< 0
};
struct HelloReply {
  u32 version = kProtocolVersion;
  u32 features = 0;    ///< kFeatureModel
  u32 connection = 0;  ///< this connection's number in the daemon's log
  u32 max_connections = 0, max_queue_pairs = 0, max_buffers = 0;  ///< the user's quotas
  u64 max_card_bytes = 0, max_host_bytes = 0;
};
/// A transfer descriptor of one or two of the client's queue pairs.
struct DescriptorRequest {
  u32 device = 0;
  u32 flags = 0;  ///< kFlagCloseOnExec only
  u32 count = 1;
  std::array<u32, kMaxDescriptorQueuePairs> ids{};
  u32 directions = 0;   ///< kDirH2C | kDirC2H; 0: those of the queue pairs
  u64 window_base = 0;  ///< with window_bytes 0: all card memory that the client may reach
  u64 window_bytes = 0;
};
struct HostBufferRequest {
  u32 device = 0;
  BufCreate create;
};
/// Asks which buffers of other connections have bytes of a range. For clients with raw-mem-access, which
/// would overwrite them.
struct HolderRequest {
  u32 device = 0;
  u64 base = 0;
  u64 bytes = 0;
};
struct HolderReply {
  u32 buffers = 0;     ///< of others in that range; the rest is about one of them
  u32 user = 0;        ///< its owner's user id
  u32 connection = 0;  ///< its owner's number in the daemon's log
  u64 base = 0;
  u64 bytes = 0;
};
/// The body of a refusal, for clients that have said hello; text fills the rest of the message.
struct ErrorBody {
  u32 error = 0;  ///< an errno
  u32 zero = 0;
};
#pragma pack(pop)

static_assert(sizeof(RequestHeader) == 8 && sizeof(ReplyHeader) == 8 && sizeof(DeviceInfoReply) == 170);
static_assert(sizeof(QueuePairAddRequest) == 40 && sizeof(QueuePairRequest) == 12);
static_assert(sizeof(BufferOpenRequest) == 32 && sizeof(BufferOpenReply) == 20);
static_assert(sizeof(BufferCloseRequest) == 20 && sizeof(BufferOpenRawRequest) == 28);
static_assert(sizeof(HelloReply) == 40 && sizeof(DescriptorRequest) == 40 && sizeof(HostBufferRequest) == 28);
static_assert(sizeof(HolderRequest) == 20 && sizeof(HolderReply) == 28);

/// The bytes of an opcode's body; empty: no opcode of this daemon.
[[nodiscard]] std::optional<std::size_t> body_bytes(Opcode o);

/// A request whose header fits its length: its opcode may be unknown, its body of a wrong size.
struct Request {
  RequestHeader header;
  std::span<const u8> body;
  [[nodiscard]] Opcode opcode() const { return Opcode{header.opcode}; }
  /// The body as a structure of its opcode, or the part of it that begins at `offset`; call it after the size
  /// has been checked.
  template <class T>
  [[nodiscard]] T as(std::size_t offset = 0) const {
    static_assert(std::is_trivially_copyable_v<T>);
    T value;
    std::memcpy(static_cast<void*>(&value), body.data() + offset, sizeof value);
    return value;
  }
};

/// The fault in a message.
struct Malformed {
  std::string_view why;
  u32 sequence = 0;  ///< 0 if the message has no header
  int error = 0;     ///< EBADMSG; ENOTTY: no such opcode
};

struct Parsed {
  std::optional<Request> request;
  Malformed malformed;  ///< without a request
};
/// Splits a message, which the request then points into, and checks its lengths and its opcode.
[[nodiscard]] Parsed parse_request(std::span<const u8> message);

template <class T>
[[nodiscard]] std::span<const u8> bytes_of(const T& value) {
  static_assert(std::is_trivially_copyable_v<T>);
  return {reinterpret_cast<const u8*>(&value), sizeof value};
}
/// A whole message.
[[nodiscard]] std::vector<u8> request_message(Opcode o, u32 sequence, std::span<const u8> body);
[[nodiscard]] std::vector<u8> reply_message(Code code, u32 sequence, std::span<const u8> body = {});
/// A refusal: with an ErrorBody and `text` if the client has said hello.
[[nodiscard]] std::vector<u8> refusal_message(int error, std::string_view text, u32 sequence, bool hello);

}  // namespace doorbell::qdma::daemon
