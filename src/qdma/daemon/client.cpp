// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "qdma/daemon/client.hpp"

#include <doorbell/error.hpp>
#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "qdma/peer/buffer_time.hpp"
#include "service/local_socket.hpp"
#include "service/message.hpp"
#include "system/clock.hpp"
#include "system/sysfs.hpp"

namespace doorbell::qdma::daemon {

namespace {

constexpr const char* kDaemon = "doorbelld";

/// Waits until the socket is ready for `events`: 0, or why it is not.
int wait_for(int fd, short events, service::Waiting& waiting) {
  for (;;) {
    const u64 now = wall_ns(), until = waiting.slice_ns();
    const u64 left_ms = until > now ? (until - now) / 1'000'000 + 1 : 0;
    pollfd p{fd, events, 0};
    // An event that has come meanwhile counts, however late this process looks.
    const int rc = ::poll(&p, 1, static_cast<int>(std::min<u64>(left_ms, 60'000)));
    if (rc > 0) return 0;
    if (rc < 0 && errno != EINTR) return errno;
    if (const int over = waiting.over(); over != 0) return over;
  }
}

/// A message and the first descriptor of it. Returns its length, 0 at the end, or a negative errno.
ssize_t receive_reply(int fd, std::span<u8> out, Descriptor& descriptor) {
  int flags = 0;
  bool more = false;
  const ssize_t n = service::receive(fd, out, flags, [&](Descriptor file) {
    if (descriptor.get() < 0) descriptor = std::move(file);
    else more = true;
  });
  if (n < 0) return n;
  return more || (flags & MSG_CTRUNC) != 0 ? -EMFILE : n;
}

Descriptor connect_daemon(const std::string& path, const service::Patience& patience) {
  const std::string name = "daemon:" + path;
  int error = 0;
  Descriptor fd = service::connect_local(service::local_address(path, name), patience, error);
  if (error == 0) return fd;
  if (error == EINTR) throw Error(name, service::why_over(error, kDaemon, 0), "", ExitCode::interrupted);
  if (error == EACCES || error == EPERM)
    throw Error(name, reason(error), "its --socket-mode, or a folder above it, keeps this user out");
  throw Error(name, "no doorbelld answers: " + reason(error), "start doorbelld, or name its socket",
              ExitCode::absent);
}

/// The structure of a call that begins with its size, by the driver's rule: 0 or an errno.
template <class T>
int take_call(u32 number, std::span<const u8> bytes, T& out) {
  u32 size = 0;
  if (bytes.size() < sizeof size) return EFAULT;
  std::memcpy(&size, bytes.data(), sizeof size);
  if (size < smallest_size(number)) return EINVAL;
  if (size > bytes.size()) return EFAULT;
  const std::size_t known = std::min<std::size_t>(size, structure_size(number));
  const auto unknown = bytes.subspan(known, size - known);
  if (std::ranges::any_of(unknown, [](u8 b) { return b != 0; })) return E2BIG;
  out = T{};
  std::memcpy(static_cast<void*>(&out), bytes.data(), known);
  out.size = size;
  return 0;
}

/// Writes it back as the driver does: its own size, as much as the caller knows, zeros behind.
template <class T>
void give_call(u32 number, u32 size, T value, std::span<u8> bytes) {
  const u32 known = structure_size(number);
  value.size = known;
  std::memset(bytes.data(), 0, size);
  std::memcpy(bytes.data(), &value, std::min(size, known));
}

/// The part of an answer that a request's own structure is in.
template <class T>
int body_of(const Answer& answer, T& out) {
  if (answer.error != 0) return answer.error;
  if (answer.body.size() != sizeof out) return EPROTO;
  std::memcpy(static_cast<void*>(&out), answer.body.data(), sizeof out);
  return 0;
}

/// A body that is the device's number, 0, and a structure of the driver's.
template <class T>
std::vector<u8> after_device(const T& structure) {
  std::vector<u8> body(sizeof(u32));
  const auto bytes = bytes_of(structure);
  body.insert(body.end(), bytes.begin(), bytes.end());
  return body;
}

CallResult failed_call(int error) {
  return {-error, 0};
}

template <class Request>
CardBuffer opened_buffer(const char* what, Answer answer, const Request& request) {
  if (answer.error != 0)
    throw CardError(what, answer.error, answer.text.empty() ? reason(answer.error) : answer.text);
  CardBuffer buffer;
  int error = 0;
  if constexpr (std::is_same_v<Request, BufferOpenRequest>) {
    BufferOpenReply reply;
    error = body_of(answer, reply);
    buffer = {reply.address, reply.size, reply.queue_pairs, {}};
  } else {
    buffer = {request.address, request.size, 0, {}};
    error = body_of(answer, buffer.queue_pairs);
  }
  buffer.descriptor = std::move(answer.descriptor);
  if (error != 0 || buffer.descriptor.get() < 0)
    throw CardError(what, EPROTO, "the daemon's reply is not complete");
  return buffer;
}

}  // namespace

DaemonClient::DaemonClient(const std::string& path, const service::Patience& patience)
    : patience_(patience), socket_(connect_daemon(path, patience)) {}

Answer DaemonClient::give_up(int error, std::string why) {
  dead_ = true;
  ::shutdown(socket_.get(), SHUT_RDWR);
  return {.error = error, .code = Code::internal_error, .text = std::move(why)};
}

Answer DaemonClient::ask(Opcode o, std::span<const u8> body, double more_s) {
  const std::lock_guard lock(mutex_);
  if (dead_)
    return {.error = ENODEV, .code = Code::internal_error, .text = "the connection has been given up"};
  const u32 sequence = ++sequence_;
  const std::vector<u8> message = request_message(o, sequence, body);
  const double limit_s = patience_.limit_s + more_s;
  service::Waiting waiting(patience_, limit_s);
  const auto wait = [&](short events) { return wait_for(socket_.get(), events, waiting); };
  int over = 0;
  ssize_t sent = 0;
  do {
    sent = ::send(socket_.get(), message.data(), message.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent < 0 && errno == EAGAIN) over = wait(POLLOUT);
  } while (over == 0 && sent < 0 && (errno == EINTR || errno == EAGAIN));
  // A daemon that has refused this client has closed already; why is still there to be read.
  if (over == 0 && sent < 0 && errno != EPIPE && errno != ECONNRESET)
    return give_up(errno, "the request was not sent");
  if (over == 0) over = wait(POLLIN);
  if (over != 0) return give_up(over, service::why_over(over, kDaemon, limit_s));
  std::array<u8, kMaxMessage> space;
  Answer answer;
  ssize_t n = receive_reply(socket_.get(), space, answer.descriptor);
  // A daemon that refuses a client closes with the request unread; what it has said comes after that error.
  if (n == -ECONNRESET) n = receive_reply(socket_.get(), space, answer.descriptor);
  if (n == 0 || n == -ECONNRESET) return give_up(ENODEV, "the daemon has gone");
  if (n < 0) return give_up(static_cast<int>(-n), "the reply was not received");
  ReplyHeader header;
  if (static_cast<std::size_t>(n) < sizeof header) return give_up(EPROTO, "the reply is no message");
  std::memcpy(&header, space.data(), sizeof header);
  const auto rest = std::span(space).subspan(sizeof header, static_cast<std::size_t>(n) - sizeof header);
  if (header.bytes != rest.size()) return give_up(EPROTO, "the reply is no message");
  answer.code = Code{header.code};
  answer.error = errno_of(answer.code);
  answer.body.assign(rest.begin(), rest.end());
  if (answer.error != 0 && rest.size() >= sizeof(ErrorBody)) {
    ErrorBody error;
    std::memcpy(&error, rest.data(), sizeof error);
    if (error.error != 0) answer.error = static_cast<int>(error.error);
    answer.text.assign(rest.begin() + sizeof error, rest.end());
  }
  if (answer.error != 0) refused_ = answer.error, refused_why_ = answer.text;
  // The refusal of a whole connection belongs to no request.
  if (header.sequence == 0 && answer.code != Code::ok)
    return give_up(answer.error,
                   answer.text.empty() ? "the daemon takes no further client" : std::move(answer.text));
  if (header.sequence != sequence) return give_up(EPROTO, "the reply belongs to another request");
  return answer;
}

std::string DaemonClient::why(int error) {
  const std::lock_guard lock(mutex_);
  return error == refused_ ? refused_why_ : std::string();
}

HelloReply DaemonClient::hello() {
  const Answer answer = ask(Opcode::hello, Hello{});
  if (answer.code == Code::bad_request)
    throw Error("daemon", "it does not know doorbell's hello", "it is no doorbelld");
  if (answer.error != 0)
    throw Error("daemon", answer.text.empty() ? reason(answer.error) : answer.text, "",
                answer.error == EINTR ? ExitCode::interrupted : ExitCode::usage);
  HelloReply reply;
  if (body_of(answer, reply) != 0) throw Error("daemon", "its hello is of another size");
  return reply;
}

CardBuffer open_buffer(DaemonClient& client, const BufferOpenRequest& request) {
  return opened_buffer("buffer open", client.ask(Opcode::buffer_open, request), request);
}

CardBuffer open_raw_buffer(DaemonClient& client, const BufferOpenRawRequest& request) {
  return opened_buffer("raw buffer open", client.ask(Opcode::buffer_open_raw, request), request);
}

void close_buffer(DaemonClient& client, const CardBuffer& buffer) {
  const Answer answer = client.ask(Opcode::buffer_close, BufferCloseRequest{0, buffer.address, buffer.bytes});
  if (answer.error != 0)
    throw CardError("buffer close", answer.error, answer.text.empty() ? reason(answer.error) : answer.text);
}

HolderReply holder_of(DaemonClient& client, u64 base, u64 bytes) {
  const Answer answer = client.ask(Opcode::holder, HolderRequest{.base = base, .bytes = bytes});
  HolderReply reply;
  const int error = body_of(answer, reply);
  if (error != 0) throw CardError("doorbelld", error, answer.text.empty() ? reason(error) : answer.text);
  return reply;
}

bool names_daemon(const std::string& spec) {
  return spec == "daemon" || spec.starts_with("daemon:");
}

std::string socket_path(const std::string& spec) {
  return spec == "daemon" ? kDefaultSocket : spec.substr(std::string_view("daemon:").size());
}

CallResult control_call(DaemonClient& client, u32 number, std::span<u8> structure) {
  switch (number) {
    case kCallInfo: {
      Info call, reply;
      if (const int error = take_call(number, structure, call)) return failed_call(error);
      if (const int error = body_of(client.ask(Opcode::qdma_info, DeviceRequest{}), reply))
        return failed_call(error);
      give_call(number, call.size, reply, structure);
      return {};
    }
    case kCallQpairAdd:
    case kCallQpairAddOld: {
      QpairAdd call, reply;
      if (const int error = take_call(number, structure, call)) return failed_call(error);
      const u32 size = call.size;
      call.size = sizeof call;
      if (const int error = body_of(client.ask(Opcode::queue_pair_add, after_device(call)), reply))
        return failed_call(error);
      give_call(number, size, reply, structure);
      return {};
    }
    case kCallQpairOp: {
      QpairOp call;
      Zero zero;
      if (const int error = take_call(number, structure, call)) return failed_call(error);
      if (const int error = body_of(
              client.ask(Opcode::queue_pair_op, QueuePairRequest{.qid = call.qid, .argument = call.op}),
              zero))
        return failed_call(error);
      give_call(number, call.size, call, structure);
      return {};
    }
    case kCallQpairGetFd: {
      QpairGetFd call;
      Zero zero;
      if (const int error = take_call(number, structure, call)) return failed_call(error);
      DescriptorRequest request{.flags = call.flags, .count = call.qpair_count, .ids = call.qpair_ids};
      if (call.qpair_count == 0) request.count = 1, request.ids = {call.qid, 0};
      Answer answer = client.ask(Opcode::descriptor, request);
      if (const int error = body_of(answer, zero)) return failed_call(error);
      if (answer.descriptor.get() < 0) return failed_call(EPROTO);
      give_call(number, call.size, call, structure);
      return {answer.descriptor.release(), 0};
    }
    case kCallBufCreate: {
      BufCreate call, reply;
      if (const int error = take_call(number, structure, call)) return failed_call(error);
      const u32 size = call.size;
      call.size = sizeof call;
      Answer answer = client.ask(Opcode::host_buffer, after_device(call), seconds_for_buffer(call.length));
      if (const int error = body_of(answer, reply)) return failed_call(error);
      if (answer.descriptor.get() < 0) return failed_call(EPROTO);
      give_call(number, size, reply, structure);
      return {answer.descriptor.release(), 0};
    }
    default:
      return failed_call(ENOTTY);
  }
}

}  // namespace doorbell::qdma::daemon
