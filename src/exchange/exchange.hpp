// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// How the two processes of a run (`--listen`, `--connect`) exchange what a connection needs: JSON messages
// over TCP, each with a deadline. What the other end sends is checked before it is used.
#pragma once

#include <doorbell/config.hpp>
#include <doorbell/error.hpp>

#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "exchange/socket.hpp"
#include "measure/run_options.hpp"
#include "system/descriptor.hpp"

namespace doorbell::exchange {

/// A number that no other end chooses too.
[[nodiscard]] u64 new_nonce();

/// The kind of a run of two processes: both ends must agree about it.
struct RunKind {
  std::string_view path;  ///< as in the command `doorbell PATH`; a constant
  u16 default_port = 0;   ///< of an address without one
};

/// One connection to the other process. Throws doorbell::Error for every failure: refusal, time-out, an early
/// end, another version, a run of another path, an invalid message. One thread at a time.
class Exchange {
 public:
  static constexpr u32 kVersion = 10;
  static constexpr u32 kMaxMessageBytes = 4u << 20;

  /// Connects and sends the first message (hello). `limit_s` bounds this and every later message that has no
  /// limit of its own. `stop`, if given, ends every wait with an Error. `setting`: what errors call the
  /// address, which may be an option of a command.
  static Exchange connect(const RunKind& kind, const SocketName& to, double limit_s,
                          const measure::StopFlag* stop = nullptr, const std::string& setting = kConnecting);

  [[nodiscard]] bool server() const { return server_; }
  /// The other end's address.
  [[nodiscard]] const std::string& peer() const { return peer_; }
  /// The address of this end.
  [[nodiscard]] SocketName own() const { return own_name(socket_.get()); }

  /// From now on `stop` ends a wait only after so many seconds: what has been measured is on its way, and the
  /// other end has yet to say what arrived.
  void wait_on_stop(double grace_s) { grace_s_ = grace_s; }

  void send(std::string_view type, const nlohmann::ordered_json& body);
  /// Returns the body of the next message, which must be of this type. `limit_s` 0: the usual limit.
  [[nodiscard]] nlohmann::ordered_json receive(std::string_view type, double limit_s = 0);
  struct Message {
    std::string type;
    nlohmann::ordered_json body;
  };
  /// Returns the next message, which must be of one of these types.
  [[nodiscard]] Message receive_any(const std::vector<std::string>& types, double limit_s = 0);
  /// True once there is something to receive, a message or the connection's end; waits for that for at most
  /// `limit_s`.
  [[nodiscard]] bool pending(double limit_s = 0) const;
  /// Returns when the other end has reached the barrier of this name.
  void barrier(const std::string& name, double limit_s = 0);
  /// Sends the reason why no more messages will come: the other end's next receive() throws an Error with
  /// that reason.
  void fail(const std::string& why) noexcept;

 private:
  friend class Listener;
  Exchange(Descriptor socket, std::string peer, bool server, double limit_s, const measure::StopFlag* stop,
           const RunKind& kind);
  void hello(const RunKind& kind);
  void check_hello(const nlohmann::ordered_json& theirs, const RunKind& kind, u64 nonce) const;
  [[nodiscard]] nlohmann::ordered_json read_message(std::string_view type, u64 until);
  [[nodiscard]] std::string read_exactly(std::string_view type, std::size_t bytes, u64 until);
  /// As wait_for(), with the grace of wait_on_stop().
  [[nodiscard]] Waited wait(short events, u64 until_ns) const;
  [[noreturn]] void reject(const std::string& why, const std::string& hint = {}) const;
  /// Of a wait that was interrupted, or came to nothing: `late`.
  [[noreturn]] void reject(Waited waited, const std::string& late) const;

  Descriptor socket_;
  std::string peer_;
  bool server_;
  double limit_s_;
  const measure::StopFlag* stop_;
  double grace_s_ = 0;
};

/// The server's side before a client has connected.
class Listener {
 public:
  /// `setting` as in Exchange::connect().
  Listener(const RunKind& kind, const SocketName& at, std::string setting = kListening);
  /// The listening address; a port of 0 is replaced by the real one.
  [[nodiscard]] const SocketName& at() const { return at_; }
  using TurnedAway = std::function<void(const Error&)>;
  /// Waits at most `limit_s` for a client and answers its hello; `message_limit_s` as `limit_s` in
  /// Exchange::connect(). With `turned_away` it goes on after a connection whose hello is none, and says so;
  /// connections that say nothing do not keep it from others.
  [[nodiscard]] Exchange accept(double limit_s, double message_limit_s,
                                const measure::StopFlag* stop = nullptr,
                                const TurnedAway& turned_away = nullptr);

 private:
  /// The first connection that has sent a whole message, or what is none, of those in `silent_` and of new
  /// ones.
  [[nodiscard]] Connected first_that_speaks(const Wait& wait, const TurnedAway& turned_away);

  RunKind kind_;
  std::string setting_;
  Descriptor socket_;
  SocketName at_;
  std::vector<Connected> silent_;  ///< accepted, and no message has come from them yet
};

struct Client {
  Exchange exchange;
  Exchange::Message first;
};
/// Listens at `at` until a client has sent its first message, which is one of `types`, for at most `limit_s`;
/// then no other client can connect. Whoever connects and does not come so far is turned away; progress says
/// so, and the address first. Throws Error.
[[nodiscard]] Client wait_for_client(const RunKind& kind, const SocketName& at, const std::string& setting,
                                     const std::vector<std::string>& types, double limit_s,
                                     double message_limit_s, const measure::RunWatch& watch);

}  // namespace doorbell::exchange
