// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Rings between the NICs of one host and user, and the sockets that go with them. A NIC listens at a local
// socket whose abstract name has its address; a writer connects, and sends one message with the memory of its
// ring and an eventfd by which it wakes the reader. From then on the socket carries single bytes that wake
// the writer, and its end says that the other side has gone.
#pragma once

#include <doorbell/config.hpp>

#include <array>
#include <atomic>
#include <memory>
#include <span>
#include <vector>

#include "rdma/roce/counted.hpp"
#include "rdma/roce/ring.hpp"
#include "system/descriptor.hpp"

namespace doorbell::roce {

/// The first message. All fields in the order of the machine: both ends are on it.
struct RingHello {
  static constexpr u64 kMagic = 0x474E'4952'4245'4F52;  // "ROEBRING"
  u64 magic = kMagic;
  u32 version = 1;
  u32 icrc = 0;  ///< 1: the records have one
  u64 ring_bytes = 0;
  u32 source_address = 0, destination_address = 0;
  u16 source_port = 0, destination_port = 0;
  u32 reserved = 0;
};

/// Descriptors that a child of fork() closes. Their number is bounded, so that a fork handler can read it at
/// any time.
class OpenDescriptors {
 public:
  /// False when there is no place.
  bool add(int fd);
  void remove(int fd);
  void close_all();

 private:
  std::array<std::atomic<int>, 4096> plus_one_{};
};

/// A descriptor that is in OpenDescriptors, and perhaps in an epoll. It leaves both before it is closed:
/// epoll knows files, which live on where another process has them too.
class ListedDescriptor {
 public:
  ListedDescriptor() = default;
  ListedDescriptor(Descriptor fd, OpenDescriptors& list);
  ~ListedDescriptor() { reset(); }
  ListedDescriptor(ListedDescriptor&& other) noexcept;
  ListedDescriptor& operator=(ListedDescriptor&& other) noexcept;
  [[nodiscard]] int get() const { return fd_.get(); }
  /// False where the system has no memory for it. `epoll` outlives this.
  bool watch(int epoll, u64 id, u32 events);
  void reset();

 private:
  Descriptor fd_;
  int epoll_ = -1;
  OpenDescriptors* list_ = nullptr;
};

struct RingCounts {
  Counted opened, accepted, refused, closed, wakes;
};

class RingLinks {
 public:
  static constexpr std::size_t kMostIncoming = 512;
  static constexpr std::size_t kMostPending = 32;
  static constexpr u64 kHelloNs = 1'000'000'000;  ///< a connection without a hello ends then

  struct Options {
    Endpoint self;
    u64 ring_bytes = 1 << 20;
    bool icrc = false;
    bool listen = true;  ///< false: no rings, only watch()
  };

  struct Incoming {
    u64 id = 0;
    ListedDescriptor socket;  ///< closed when the writer has gone; its ring is read to the end
    ListedDescriptor wakes;   ///< in epoll alone: whoever gave it may do anything to it
    Endpoint source;
    bool icrc = false;
    RingReader reader;
    bool read_to_end = false;  ///< of a ring whose socket is closed
    [[nodiscard]] bool closed() const { return socket.get() < 0; }
  };
  struct Outgoing {
    u64 id = 0;
    ListedDescriptor socket;
    ListedDescriptor wakes;
    RingWriter writer;
    bool gone = false;  ///< the reader has closed its end
  };

  /// Listens. Throws Error where the name is taken.
  RingLinks(const Options& options, OpenDescriptors& descriptors);

  /// Readable when look() would find something.
  [[nodiscard]] int descriptor() const { return epoll_.get(); }
  /// Has descriptor() report another one, too; it is readable() after a look().
  void watch(int fd);
  /// Has descriptor() report each write to the eventfd `fd`.
  void watch_also(int fd);
  /// Watches for room to write, too.
  void watch_writable(int fd, bool on);
  [[nodiscard]] bool watched_is_readable() const { return watched_readable_; }

  /// Takes new connections, hellos, wakes and ends. It does not block. Writers of rings whose wakes it has
  /// taken are asked to wake again where `asleep`: somebody else sleeps on descriptor(), and may have missed
  /// them.
  void look(bool asleep);
  /// A ring to `peer`; nullptr when nobody of this user listens there, or not now. It does not block. It
  /// lives until disconnect().
  Outgoing* connect(Endpoint peer);
  void disconnect(Outgoing& ring);
  void wake_reader(const Outgoing& ring);
  void wake_writer(const Incoming& ring);

  /// Rings from others. An entry lives until forget() finds it closed and read to its end.
  [[nodiscard]] std::span<const std::unique_ptr<Incoming>> incoming() const { return incoming_; }
  void close(Incoming& ring, bool read_to_end);
  void forget();

  [[nodiscard]] const RingCounts& counts() const { return counts_; }

 private:
  struct Pending {
    u64 id;
    ListedDescriptor socket;
    u64 since_ns;
  };
  void accept_all();
  enum class Hello : u8 { not_yet, taken, refused };
  Hello take_hello(Pending& pending);
  /// False when the other end has closed, or sent what it should not.
  bool drain(const ListedDescriptor& socket);

  Options options_;
  OpenDescriptors& descriptors_;
  ListedDescriptor epoll_, listener_, spare_;
  std::vector<Pending> pending_;
  std::vector<std::unique_ptr<Incoming>> incoming_;
  std::vector<std::unique_ptr<Outgoing>> outgoing_;
  u64 next_id_ = 4;  ///< even; the next odd one is the eventfd's
  bool watched_readable_ = false;
  bool any_closed_ = false;
  RingCounts counts_;
};

}  // namespace doorbell::roce
