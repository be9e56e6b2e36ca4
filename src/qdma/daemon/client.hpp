// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// The daemon from a client's side: its requests, and the back end "daemon[:PATH]".
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "qdma/daemon/protocol.hpp"
#include "qdma/driver.hpp"
#include "service/patience.hpp"
#include "system/descriptor.hpp"

namespace doorbell::qdma::daemon {

/// The daemon's answer. `error` is an errno, exact if this client has said hello.
struct Answer {
  int error = 0;
  Code code = Code::ok;
  std::string text = {};  ///< why it was refused, if the daemon says so
  std::vector<u8> body = {};
  Descriptor descriptor = {};
};

/// One connection. Any thread; one request at a time is under way. When a reply is late or is not this
/// request's, the connection is given up: every later request fails with ENODEV.
class DaemonClient {
 public:
  /// Connects to the daemon at `path`. Throws Error.
  explicit DaemonClient(const std::string& path, const service::Patience& patience = {});
  /// Over a socket that is connected already.
  explicit DaemonClient(Descriptor socket, const service::Patience& patience = {})
      : patience_(patience), socket_(std::move(socket)) {}

  /// Sends the version. Throws Error if the daemon speaks another one or refuses this client.
  HelloReply hello();
  /// Sends a request and waits for its reply, `more_s` longer than for others. ETIMEDOUT if none has come,
  /// EINTR if a stop has ended the wait.
  [[nodiscard]] Answer ask(Opcode o, std::span<const u8> body, double more_s = 0);
  template <class T>
  requires std::is_trivially_copyable_v<T>
  [[nodiscard]] Answer ask(Opcode o, const T& body) { return ask(o, bytes_of(body)); }
  [[nodiscard]] int fd() const { return socket_.get(); }
  /// The text of the last refusal, if it was with this errno.
  [[nodiscard]] std::string why(int error);

 private:
  [[nodiscard]] Answer give_up(int error, std::string why);
  const service::Patience patience_;
  std::mutex mutex_;
  Descriptor socket_;
  u32 sequence_ = 0;
  bool dead_ = false;
  int refused_ = 0;
  std::string refused_why_;
};

/// A buffer in card memory that the daemon has handed out.
struct CardBuffer {
  u64 address = 0;
  u64 bytes = 0;  ///< to be named when it is closed
  u32 queue_pairs = 0;
  Descriptor descriptor;  ///< a transfer descriptor of its queue pairs; with two, index 0 is channel 0
};
/// Throw CardError.
[[nodiscard]] CardBuffer open_buffer(DaemonClient& client, const BufferOpenRequest& request);
[[nodiscard]] CardBuffer open_raw_buffer(DaemonClient& client, const BufferOpenRawRequest& request);
void close_buffer(DaemonClient& client, const CardBuffer& buffer);
/// Which buffers of other connections have bytes of this range.
[[nodiscard]] HolderReply holder_of(DaemonClient& client, u64 base, u64 bytes);

/// True for "daemon" and "daemon:PATH".
[[nodiscard]] bool names_daemon(const std::string& spec);
/// The socket's path in such a name.
[[nodiscard]] std::string socket_path(const std::string& spec);

/// Issues a call of the control node as a request. `structure` is written back; the descriptor that a call
/// returns is its result.
[[nodiscard]] CallResult control_call(DaemonClient& client, u32 number, std::span<u8> structure);

}  // namespace doorbell::qdma::daemon
