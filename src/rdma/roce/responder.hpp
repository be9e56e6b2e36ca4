// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// The receiving half of a queue pair: requests of a peer are checked and carried out, once each, and
// answered. Source: InfiniBand Architecture Specification, volume 1, 9.7 (RC), 9.8.2 (UC), 9.8.3 (UD),
// annex A14 (XRC); which duplicates are answered, also Linux's rdma_rxe. Used by whoever has the engine.
#pragma once

#include <array>

#include "rdma/roce/connection.hpp"
#include "rdma/roce/number_table.hpp"
#include "rdma/roce/receive_queue.hpp"

namespace doorbell::roce {

class Responder {
 public:
  static constexpr u32 kTurn = 64;
  static constexpr u32 kMostReads = 16;

  /// Whose receives, completion queue and memory requests are for: the queue pair's, or those of a shared
  /// receive queue of XRC that a packet names.
  struct Target {
    SharedReceives* shared = nullptr;
    CompletionRing* completions = nullptr;
    u32 protection_domain = 0;
  };

  Responder(Connection& connection, ReceiveQueue& own, const NumberTable<SharedReceives>& xrc)
      : c_(connection), own_(own), xrc_(xrc) {}
  void aim(const Target& target) { target_ = target; }
  /// XRC: `receives` ends.
  void forget(const SharedReceives& receives);

  /// Begins at the PSN of the attributes, and forgets all.
  void reset();
  /// A request packet from the peer: RC, UC, XRC.
  void arrived(const Decoded& packet);
  /// UD: one from anybody.
  void datagram(const Decoded& packet, const Endpoint& source);
  /// Sends answers that are due. True when anything was done.
  bool send();
  [[nodiscard]] bool unfinished() const { return waiting_jobs() > 0 || reply_ != Reply::none; }
  [[nodiscard]] bool blocked() const { return blocked_; }
  /// Completes the receive that a message had taken, and all of the own queue, as flushed.
  void flush();
  /// No more answers.
  void stop() {
    first_job_ = end_job_ = 0;
    reply_ = Reply::none;
  }

 private:
  enum class Message : u8 { none, send, write };
  enum class Reply : u8 { none, ack, rnr, nak };
  /// The answer to a request: the data of a READ, an old value, or nothing but that it was carried out.
  enum class Answer : u8 { data, value, none };
  /// A READ or an atomic that has been carried out, for its duplicates.
  struct Remembered {
    Answer answer = Answer::data;
    u32 psn = 0;
    u32 packets = 0;
    RemoteRange range;
    u64 original = 0;
    u32 protection_domain = 0;
  };
  /// An answer in several packets, or one of an atomic, that is being sent.
  struct Job {
    bool atomic = false;
    u32 psn = 0;
    u32 packets = 0;
    u32 sent = 0;
    u32 msn = 0;
    RemoteRange range;
    u64 original = 0;
    u32 protection_domain = 0;
  };

  void unreliable(const Decoded& packet);
  void duplicate(const Decoded& packet);
  void execute(const Decoded& packet);
  bool aim_at(u32 shared_receives);
  bool message_packet(const Decoded& packet);
  bool write_packet(const Decoded& packet);
  bool read_request(const Headers& headers);
  bool atomic_request(const Headers& headers);
  bool atomic_write(const Decoded& packet);
  /// Whether the packet may come now, and is as long as its place in the message says.
  [[nodiscard]] bool fits(const Decoded& packet, Message kind) const;
  bool take_receive();
  void complete_receive(const Decoded& packet, WcOpcode opcode, u64 bytes, u8 flags);
  void fail_receive(Status status);
  bool no_receive();
  bool refuse(NakCode code);
  void say(Reply reply, u8 value, u32 psn);
  Remembered& remember(Answer answer, const Headers& headers, u32 packets);
  bool send_job(Job& job);
  bool send_reply();
  [[nodiscard]] u32 waiting_jobs() const { return end_job_ - first_job_; }
  Job& push_job() { return jobs_[end_job_++ % jobs_.size()]; }

  Connection& c_;
  ReceiveQueue& own_;
  const NumberTable<SharedReceives>& xrc_;
  Target target_;

  u32 expected_ = 0;  ///< PSN
  u32 msn_ = 0;
  bool refused_ = false;   ///< a NAK has been sent for expected_; silence until it comes
  bool skipping_ = false;  ///< UC: until a message begins
  Message message_ = Message::none;
  u64 done_ = 0;  ///< bytes of the message
  RemoteRange write_;
  Receive receive_;

  Reply reply_ = Reply::none;
  u8 reply_value_ = 0;
  u32 reply_psn_ = 0;  ///< of an ACK: the newest that asked for one
  bool blocked_ = false;

  std::array<Remembered, kMostReads> remembered_;
  u32 remembered_count_ = 0;  ///< since reset()
  std::array<Job, 2 * kMostReads> jobs_;
  u32 first_job_ = 0, end_job_ = 0;  ///< indices modulo the array's size
};

}  // namespace doorbell::roce
