// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "qdma/daemon/protocol.hpp"

#include <algorithm>
#include <cerrno>

namespace doorbell::qdma::daemon {

namespace {

struct OpcodeRow {
  Opcode opcode;
  std::string_view name;
  std::size_t body;
};

constexpr OpcodeRow kOpcodeRows[] = {
    {Opcode::num_devices, "num-devices", sizeof(Zero)},
    {Opcode::device_info, "device-info", sizeof(DeviceRequest)},
    {Opcode::qdma_info, "qdma-info", sizeof(DeviceRequest)},
    {Opcode::queue_pair_add, "queue-pair-add", sizeof(QueuePairAddRequest)},
    {Opcode::queue_pair_op, "queue-pair-op", sizeof(QueuePairRequest)},
    {Opcode::queue_pair_descriptor, "queue-pair-descriptor", sizeof(QueuePairRequest)},
    {Opcode::buffer_open, "buffer-open", sizeof(BufferOpenRequest)},
    {Opcode::buffer_close, "buffer-close", sizeof(BufferCloseRequest)},
    {Opcode::device_by_bdf, "device-by-bdf", sizeof(BdfRequest)},
    {Opcode::buffer_open_raw, "buffer-open-raw", sizeof(BufferOpenRawRequest)},
    {Opcode::hello, "hello", sizeof(Hello)},
    {Opcode::descriptor, "descriptor", sizeof(DescriptorRequest)},
    {Opcode::host_buffer, "host-buffer", sizeof(HostBufferRequest)},
    {Opcode::holder, "holder", sizeof(HolderRequest)},
};

const OpcodeRow* row_of(Opcode o) {
  const auto* const row = std::ranges::find(kOpcodeRows, o, &OpcodeRow::opcode);
  return row == std::end(kOpcodeRows) ? nullptr : row;
}

template <class Header>
std::vector<u8> framed(Header header, std::span<const u8> body) {
  header.bytes = static_cast<u16>(body.size());
  std::vector<u8> message(sizeof header + body.size());
  std::memcpy(message.data(), &header, sizeof header);
  std::ranges::copy(body, message.begin() + sizeof header);
  return message;
}

}  // namespace

std::string_view name(Opcode o) {
  const OpcodeRow* const row = row_of(o);
  return row == nullptr ? "unknown" : row->name;
}

std::span<const Opcode> opcodes() {
  static const std::vector<Opcode> all = [] {
    std::vector<Opcode> list;
    for (const OpcodeRow& row : kOpcodeRows) list.push_back(row.opcode);
    return list;
  }();
  return all;
}

std::string_view name(Code c) {
  switch (c) {
    case Code::ok:
      return "ok";
    case Code::bad_request:
      return "bad-request";
    case Code::invalid_argument:
      return "invalid-argument";
    case Code::noexist:
      return "noexist";
    case Code::internal_error:
      return "internal-error";
    case Code::auth_error:
      return "auth-error";
    case Code::busy:
      return "busy";
  }
  return "unknown";
}

Code code_of(int error) {
  switch (error) {
    case 0:
      return Code::ok;
    case EBADMSG:
    case ENOTTY:
      return Code::bad_request;
    case EINVAL:
    case E2BIG:
    case EBADF:
    case EOPNOTSUPP:
    case EPROTONOSUPPORT:
      return Code::invalid_argument;
    case ENOENT:
    case ENODEV:
    case ESTALE:
      return Code::noexist;
    case EACCES:
    case EPERM:
      return Code::auth_error;
    case EBUSY:
    case ENOMEM:
    case EDQUOT:
    case EAGAIN:
    case EMFILE:
    case ENFILE:
    case ENOSPC:
      return Code::busy;
    default:
      return Code::internal_error;
  }
}

int errno_of(Code code) {
  switch (code) {
    case Code::ok:
      return 0;
    case Code::bad_request:
      return EBADMSG;
    case Code::invalid_argument:
      return EINVAL;
    case Code::noexist:
      return ENOENT;
    case Code::auth_error:
      return EACCES;
    case Code::busy:
      return EBUSY;
    case Code::internal_error:
      break;
  }
  return EIO;
}

std::optional<std::size_t> body_bytes(Opcode o) {
  const OpcodeRow* const row = row_of(o);
  return row == nullptr ? std::nullopt : std::optional(row->body);
}

Parsed parse_request(std::span<const u8> message) {
  RequestHeader header;
  if (message.size() < sizeof header) return {{}, {"the message is shorter than its header", 0, EBADMSG}};
  std::memcpy(&header, message.data(), sizeof header);
  if (message.size() > kMaxMessage)
    return {{}, {"the message is longer than 4096 bytes", header.sequence, EBADMSG}};
  if (header.bytes != message.size() - sizeof header)
    return {{}, {"the header's body size is not the message's", header.sequence, EBADMSG}};
  const auto body = body_bytes(Opcode{header.opcode});
  if (!body) return {{}, {"this daemon has no such opcode", header.sequence, ENOTTY}};
  if (header.bytes != *body) return {{}, {"the body is not of its opcode's size", header.sequence, EBADMSG}};
  return {Request{header, message.subspan(sizeof header)}, {}};
}

std::vector<u8> request_message(Opcode o, u32 sequence, std::span<const u8> body) {
  return framed(RequestHeader{.opcode = static_cast<u16>(o), .sequence = sequence}, body);
}

std::vector<u8> reply_message(Code code, u32 sequence, std::span<const u8> body) {
  return framed(ReplyHeader{.code = static_cast<u16>(code), .sequence = sequence}, body);
}

std::vector<u8> refusal_message(int error, std::string_view text, u32 sequence, bool hello) {
  if (!hello) return reply_message(code_of(error), sequence);
  const ErrorBody head{.error = static_cast<u32>(error)};
  std::vector<u8> body(sizeof head);
  std::memcpy(body.data(), &head, sizeof head);
  text = text.substr(0, 512);
  body.insert(body.end(), text.begin(), text.end());
  return reply_message(code_of(error), sequence, body);
}

}  // namespace doorbell::qdma::daemon
