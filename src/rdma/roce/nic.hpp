// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// A RoCEv2 NIC in software: it reads and writes the memory of its own process alone, and meets other NICs by
// packets.
//
// Who drives it: any thread that calls progress(). One at a time has the engine (a try-lock), so no program's
// thread ever waits for another to get its packets moved. Posting and polling take short locks of one queue
// each. Set-up calls wait for the engine.
#pragma once

#include <doorbell/config.hpp>

#include <functional>
#include <memory>
#include <span>

#include "rdma/roce/carrier.hpp"
#include "rdma/roce/completion_faults.hpp"
#include "rdma/roce/requests.hpp"
#include "rdma/roce/wire.hpp"

namespace doorbell::roce {

class Nic;
class QueuePair;
class SharedReceiveQueue;
class CompletionQueue;

/// How calls of this file refuse: an errno value, 0 for success, as verbs do. Nothing is changed by a call
/// that refuses.
using Errno = int;

struct Limits {
  u32 queue_pairs = 1 << 16;
  u32 completion_queues = 1 << 16;
  u32 shared_receive_queues = 1 << 16;
  u32 requests = 1 << 15;  ///< of one queue
  u32 sges = 32;
  u32 inline_bytes = 1024;
  u32 completions = 1 << 22;  ///< of one completion queue
  u32 reads = 16;             ///< RDMA READs and atomics in flight on one queue pair, at either end
  u64 message_bytes = 1ULL << 31;
};

/// Counts of a NIC or one queue pair. Counted by the engine; read by any thread at any time (relaxed).
struct Counters {
  u64 packets_sent = 0, packets_received = 0;
  u64 bytes_sent[kWrOpcodes] = {};  ///< payload by WrOpcode, each byte once (retransmissions apart)
  u64 messages_sent[kWrOpcodes] = {};
  u64 bytes_received = 0;
  u64 retransmitted_packets = 0;
  u64 timeouts = 0;
  u64 probes = 0;  ///< the oldest packets sent again early, because an answer was overdue
  u64 naks_sent[5] = {}, naks_received[5] = {};  ///< by NakCode
  u64 rnr_sent = 0, rnr_received = 0;
  u64 duplicates = 0;  ///< requests that had been executed before
  u64 out_of_order = 0;
  u64 replayed_atomics = 0;
  u64 dropped = 0;             ///< packets for no queue pair, of another peer, in a wrong state, or malformed
  u64 dropped_no_receive = 0;  ///< UD and UC: no receive was posted
  u64 dropped_queue_key = 0;
  u64 completions = 0, error_completions = 0;
  u64 overruns = 0;                      ///< completions without room
  u64 injected[kCompletionFaults] = {};  ///< by CompletionFault
};

/// Receives what queues tell; called by whoever has the engine, or by a thread that polls, and must not call
/// the NIC.
struct Listener {
  std::function<void(CompletionQueue&)> completion;  ///< an armed queue has a completion
  std::function<void(QueuePair&, Event)> queue_pair;
  std::function<void(CompletionQueue&, Event)> completion_queue;
  std::function<void(SharedReceiveQueue&, Event)> shared_receive_queue;
};

class CompletionQueue {
 public:
  virtual ~CompletionQueue() = default;
  void* owner = nullptr;  ///< whatever its user keeps with it
  /// Takes up to into.size() completions. Any thread. It does not drive the NIC: a caller that gets 0 calls
  /// progress().
  virtual std::size_t poll(std::span<Completion> into) = 0;
  /// One report by Listener::completion, for the next completion that comes from now on (a solicited one or
  /// an error only, where `solicited` is set).
  virtual void arm(bool solicited) = 0;
  [[nodiscard]] virtual u32 entries() const = 0;
  /// `call`, where it is given, is made behind each completion from now on, by whoever has the engine: before
  /// the acknowledgement of what the completion reports leaves. It may poll this queue, and must not call the
  /// NIC. Waits for the engine.
  virtual void after_each(std::function<void()> call) = 0;
  /// Room for `entries`; EINVAL if more are in it, or past the limit.
  virtual Errno resize(u32 entries) = 0;
};

class SharedReceiveQueue {
 public:
  virtual ~SharedReceiveQueue() = default;
  void* owner = nullptr;
  [[nodiscard]] virtual u32 number() const = 0;
  virtual Errno post(u64 id, std::span<const Sge> sges) = 0;
  /// An srq_limit event when fewer than `limit` receives are left, once; 0: none. EINVAL past max_requests.
  virtual Errno set_limit(u32 limit) = 0;
  [[nodiscard]] virtual u32 limit() const = 0;
  [[nodiscard]] virtual u32 max_requests() const = 0;
  [[nodiscard]] virtual u32 max_sges() const = 0;
};

/// Receives of several queue pairs of one protection domain; or, with `completions`, of XRC: packets name
/// the queue, their data is of its protection domain, and `completions` gets their receives, whichever queue
/// pair of the same XRC domain they come by.
struct SharedReceiveOptions {
  u32 protection_domain = 0;
  u32 requests = 1, sges = 1, limit = 0;
  CompletionQueue* completions = nullptr;
  u32 xrc_domain = 0;  ///< a number that its user chooses
};

/// XRC: a queue pair is the requester of a connection, or its responder.
enum class Half : u8 { both, requester, responder };

/// XRC's requester has no receives and no completion queue for them; its responder has neither requests nor
/// completion queues nor a protection domain.
struct QueuePairOptions {
  Service service = Service::rc;
  Half half = Half::both;
  u32 xrc_domain = 0;  ///< of XRC's responder
  u32 protection_domain = 0;
  CompletionQueue* send_completions = nullptr;
  CompletionQueue* receive_completions = nullptr;
  SharedReceiveQueue* shared_receives = nullptr;
  u32 send_requests = 1, receive_requests = 1, send_sges = 1, receive_sges = 1, inline_bytes = 0;
  bool signal_all = false;
  bool management = false;  ///< queue pair 1, of which a NIC has one; UD
};

/// The values that modify() sets; as ibv_qp_attr, by the bits of ibv_qp_attr_mask.
struct QueuePairAttributes {
  State state = State::reset;
  State current = State::reset;
  u32 mtu = 1024;  ///< bytes
  u32 queue_key = 0;
  u32 receive_psn = 0;
  u32 send_psn = 0;
  u32 destination = 0;  ///< the peer's queue pair
  u32 access = 0;       ///< remote rights
  Endpoint peer;
  u8 reads_as_requester = 0;  ///< max_rd_atomic
  u8 reads_as_responder = 0;  ///< max_dest_rd_atomic
  u8 rnr_timer = 0;           ///< min_rnr_timer: code that this side's RNR NAKs carry
  u8 timeout = 0;             ///< code
  u8 retries = 0;             ///< retry_cnt
  u8 rnr_retries = 0;         ///< rnr_retry; 7: for ever
};
enum AttributeBit : u32 {  // of ibv_qp_attr_mask, as far as the NIC looks at them
  kSetState = 1 << 0,
  kSetCurrent = 1 << 1,
  kSetAccess = 1 << 3,
  kSetPartition = 1 << 4,
  kSetPort = 1 << 5,
  kSetQueueKey = 1 << 6,
  kSetPeer = 1 << 7,
  kSetMtu = 1 << 8,
  kSetTimeout = 1 << 9,
  kSetRetries = 1 << 10,
  kSetRnrRetries = 1 << 11,
  kSetReceivePsn = 1 << 12,
  kSetReadsAsRequester = 1 << 13,
  kSetRnrTimer = 1 << 15,
  kSetSendPsn = 1 << 16,
  kSetReadsAsResponder = 1 << 17,
  kSetCapabilities = 1 << 19,
  kSetDestination = 1 << 20,
};

class QueuePair {
 public:
  virtual ~QueuePair() = default;
  void* owner = nullptr;
  [[nodiscard]] virtual u32 number() const = 0;
  /// By the table of states (InfiniBand 10.3.1, and what verbs' ib_modify_qp_is_ok allows): EINVAL for a
  /// transition, a missing or a not allowed attribute. RESET forgets all requests, completions of this queue
  /// pair in its queues, PSNs and replay memory; ERROR flushes.
  virtual Errno modify(const QueuePairAttributes& attributes, u32 bits) = 0;
  [[nodiscard]] virtual QueuePairAttributes attributes() const = 0;
  [[nodiscard]] virtual State state() const = 0;
  /// Copies the request and, with kInline, the bytes at the SGEs. ENOMEM when the queue is full, EINVAL for
  /// what the state, the service or the limits refuse. It does not drive the NIC: a caller calls progress()
  /// after its last request.
  virtual Errno post(const SendRequest& request, std::span<const Sge> sges) = 0;
  /// How many requests post() takes now, unless another thread posts. Any thread.
  [[nodiscard]] virtual u32 room() const = 0;
  virtual Errno post_receive(u64 id, std::span<const Sge> sges) = 0;
  /// Ends the queue pair as a device does at a request that means nothing: `id` completes with `status`
  /// behind the requests posted before it, and the queue pair goes to the error state. For rings that a
  /// program writes itself. Any thread.
  virtual void fail(u64 id, Status status) = 0;
  [[nodiscard]] virtual Counters counters() const = 0;
};

struct RegisteredMemory {
  u32 local_key = 0, remote_key = 0;
};

class Nic {
 public:
  /// `carrier` outlives the NIC. `listener` is kept. Throws Error where the log of faults cannot be written.
  static std::unique_ptr<Nic> make(Carrier& carrier, Listener listener, const Limits& limits = {},
                                   const CompletionFaults& faults = {}, const std::string& fault_log = {});
  virtual ~Nic() = default;

  [[nodiscard]] virtual const Limits& limits() const = 0;

  /// One round: takes packets that have come, timers, requests; sends. True when it did anything; false also
  /// when another thread has the engine.
  virtual bool progress() = 0;
  /// The same, waiting for the engine: a thread calls it before it sleeps, so that nothing is left that it
  /// has not seen.
  virtual bool progress_waiting() = 0;
  /// Does `work` while no round runs. It must not call the NIC.
  virtual void between_rounds(const std::function<void()>& work) = 0;
  /// When the next timer or held-back packet is due (wall_ns), ~0 for never.
  [[nodiscard]] virtual u64 next_due_ns() const = 0;

  /// Protection domains are numbers that their user chooses.
  /// `iova` is the address that requests use for the first byte at `start` (0-based: 0). EINVAL for remote
  /// write or atomic without local write, or a wrapping range. The bytes stay the caller's, and must stay
  /// mapped.
  virtual Errno register_memory(u32 protection_domain, void* start, u64 bytes, u64 iova, u32 access,
                                RegisteredMemory& into) = 0;
  /// EBUSY while windows are bound to it.
  virtual Errno deregister_memory(u32 local_key) = 0;
  virtual Errno reregister_memory(u32 local_key, u32 bits, u32 protection_domain, void* start, u64 bytes,
                                  u64 iova, u32 access, RegisteredMemory& into) = 0;
  /// Memory windows of type 1 and 2.
  virtual Errno make_window(u32 protection_domain, u8 type, u32& remote_key) = 0;
  virtual Errno free_window(u32 remote_key) = 0;

  virtual Errno make_completion_queue(u32 entries, std::unique_ptr<CompletionQueue>& into) = 0;
  virtual Errno make_shared_receive_queue(const SharedReceiveOptions& options,
                                          std::unique_ptr<SharedReceiveQueue>& into) = 0;
  virtual Errno make_queue_pair(const QueuePairOptions& options, std::unique_ptr<QueuePair>& into) = 0;

  [[nodiscard]] virtual Counters counters() const = 0;
};

}  // namespace doorbell::roce
