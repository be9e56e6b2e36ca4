// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// One end of a connection as communication management has it: which message is sent and awaited, sent again,
// given up. It knows neither queue pairs nor threads.
// Source: InfiniBand Architecture Specification 1.3, 12.9.
#pragma once

#include "rdma/dropin/cm/messages.hpp"

namespace doorbell::cm {

class Connection;

/// The events of a connection for its user.
enum class Happening : u8 {
  replied,  ///< REP; the program, or who acts for it, calls ready()
  established,
  rejected,     ///< status: the reason of REJ
  unreachable,  ///< status: -ETIMEDOUT, or that of SIDR_REP
  disconnected,
};

class Surroundings {
 public:
  virtual ~Surroundings() = default;
  virtual void send(Connection& connection, const Message& message) = 0;
  /// `message` is the one that has come, nullptr where none has.
  virtual void happened(Connection& connection, Happening what, int status, const Message* message) = 0;
};

/// Times are nanoseconds of one clock. Calls of the program return false where the state gives them no
/// meaning. Not thread safe.
class Connection {
 public:
  enum class State : u8 {
    idle,
    calling,    ///< REQ or SIDR_REQ sent
    answered,   ///< REP has come
    called,     ///< REQ or SIDR_REQ has come
    accepting,  ///< REP sent
    established,
    leaving,  ///< DREQ sent
    closed,   ///< for some seconds it answers what is sent again
    forgotten,
  };
  /// A message is sent at most that often. The waits between double, from the first to the longest, and a
  /// peer that says nothing is given up after 7.75 s.
  static constexpr int kTries = 5;
  static constexpr u64 kFirstWaitNs = 250'000'000, kLongestWaitNs = 4'000'000'000;
  /// A program that is slow to accept is waited for while its library says MRA, for so long after each.
  static constexpr u8 kServiceTimeout = 21;  // 8.6 s
  static constexpr u64 kLongestPatienceNs = 70'000'000'000;
  static constexpr u64 kClosedNs = 10'000'000'000;
  /// After a peer's process has gone, its last messages may still be on their way.
  static constexpr u64 kLastWordsNs = 300'000'000;

  Connection(Surroundings& surroundings, u32 local_id) : surroundings_(surroundings), local_id_(local_id) {}
  void* owner = nullptr;
  u32 device = 0;  ///< which of this process; its user's to set, as the peer's address
  u32 peer = 0;

  [[nodiscard]] State state() const { return state_; }
  [[nodiscard]] u32 local_id() const { return local_id_; }
  [[nodiscard]] u32 remote_id() const { return remote_id_; }
  [[nodiscard]] bool active() const { return active_; }
  [[nodiscard]] bool datagram() const { return datagram_; }
  /// 0: no timer runs.
  [[nodiscard]] u64 deadline() const { return deadline_; }

  /// REQ, or SIDR_REQ.
  bool call(Message request, u64 now);
  /// Of the passive end: REQ has come, or SIDR_REQ.
  void called(const Message& request);
  /// REP, or SIDR_REP.
  bool accept(Message reply, u64 now);
  /// REJ, or SIDR_REP; `data` is the program's.
  bool reject(u16 reason, std::span<const u8> data, u64 now);
  /// REJ with more about the reason.
  bool reject(Message rejection, u64 now);
  /// RTU.
  bool ready(u64 now);
  /// Data have come before RTU.
  bool established_by_data();
  bool disconnect(u64 now);
  /// The program has no more interest; nothing happens any more that is told.
  void leave(u64 now);
  void peer_has_gone(u64 now);
  void arrived(const Message& message, u64 now);
  void expire(u64 now);

 private:
  void send(Message message);
  void send_and_wait(const Message& message, u64 now);
  /// 0: without end. After the peer's process has gone, no longer than its last messages may take.
  void wait_until(u64 deadline);
  void enter(State state, u64 now);
  void close(u64 now, Happening what, int status, const Message* message = nullptr);
  void give_up(u64 now);
  void say(Happening what, int status, const Message* message);
  [[nodiscard]] Message about(Kind kind) const;

  Surroundings& surroundings_;
  const u32 local_id_;
  u32 remote_id_ = 0;
  u32 remote_queue_pair_ = 0;
  u64 transaction_ = 0;
  State state_ = State::idle;
  bool active_ = false, datagram_ = false, told_ = true;
  u64 gone_until_ = 0;  ///< after the peer has gone: when nothing more can come
  Message last_{};      ///< the one that is sent again
  int tries_ = 0;
  u64 deadline_ = 0;
};

}  // namespace doorbell::cm
