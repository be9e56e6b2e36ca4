// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Requests and replies of wire.hpp on one socket, from the client's side. Any number of threads send; one at
// a time reads and hands the others their replies.
#pragma once

#include <doorbell/config.hpp>

#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "qdma/driver.hpp"
#include "qdma/peer/wire.hpp"
#include "system/descriptor.hpp"

namespace doorbell::qdma {

class SocketRing;
struct Incoming;

/// Whether this process can have an io_uring with all that SocketRing needs.
[[nodiscard]] bool socket_rings_work();

class SocketChannel {
 public:
  /// A request that has no reply yet. It stays at its address until it has ended.
  struct Request {
    u32 number = 0;
    u64 deadline_ns = 0;
    std::span<u8> structure = {};  ///< what is sent, and written back
    std::span<SubResult> parts = {};
    u64 tag = 0;                 ///< for cancel()
    CallResult result = {};      ///< when it has ended
    Descriptor descriptor = {};  ///< that came with the reply
    /// Called when it has ended, by the thread that reads and without a lock; null for wait().
    void (*ended)(Request&) = nullptr;
    u64 sequence = 0;
    bool done = false;
  };

  /// `socket` belongs to the caller and stays open.
  explicit SocketChannel(int socket);
  ~SocketChannel();
  SocketChannel(const SocketChannel&) = delete;
  SocketChannel& operator=(const SocketChannel&) = delete;

  /// Sends. 0, or an errno: then the request has not begun. Waits until `until_ns` at most.
  [[nodiscard]] int begin(Request& request, u64 until_ns);
  /// Waits for a reply; false if it has not come until `until_ns`. The request then still waits for one.
  [[nodiscard]] bool wait(Request& request, u64 until_ns);
  /// Waits until some thread has taken a message, or until `until_ns`.
  void drive(u64 until_ns);
  /// Asks for the cancellation of the transfer with this tag.
  void cancel(u64 tag);
  /// Asks for the cancellation of this transfer.
  void cancel(const Request& request) { cancel_sequence(request.sequence); }
  /// True if the request had not ended; it does not end any more. A request for wait() has ended afterwards
  /// or is forgotten: no thread writes to it.
  bool forget(Request& request);
  /// Sends and receives through an io_uring from now on, as soon as no thread reads.
  void want_ring();
  /// Whether the descriptor is still the socket that it was.
  [[nodiscard]] bool is_same_file() const;

 private:
  using Lock = std::unique_lock<std::mutex>;
  [[nodiscard]] int send(std::span<const u8> bytes, std::span<const int> descriptors, u64 until_ns);
  void cancel_sequence(u64 sequence);
  void try_ring();
  /// Takes one message or none. The caller has `reading_`.
  void lead(Lock& lock, u64 until_ns);
  void take(Incoming& message, Lock& lock);
  void end_all(Lock& lock);
  /// Ends the requests that the ring could not send.
  void end_unsent(Lock& lock);
  static void fill(Request& r, Incoming& message);

  const int socket_;
  u64 device_ = 0, inode_ = 0;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<u64, Request*> waiting_;  // by sequence
  u64 next_ = 1;
  u64 taken_ = 0;  // messages
  bool reading_ = false;
  bool dead_ = false;
  bool ring_wanted_ = false;
  std::unique_ptr<SocketRing> ring_;
};

}  // namespace doorbell::qdma
