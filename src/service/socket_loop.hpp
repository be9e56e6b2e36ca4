// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// One thread that waits for all sockets of a server at once, and for nothing else.
//
// No client holds it up: it neither closes what clients have sent nor has the kernel do it, it reads the
// sockets of one user in turn with those of others, and it reads nobody who does not read. Blocking calls run
// on WorkerPool.
#pragma once

#include <atomic>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "service/closers.hpp"
#include "service/fair_queue.hpp"
#include "service/file_room.hpp"
#include "service/outlet.hpp"
#include "service/spare_memory.hpp"
#include "service/worker_pool.hpp"

namespace doorbell::service {

/// How the messages of a byte stream (SOCK_STREAM) are told apart: each begins with its length.
struct Framing {
  std::size_t header = 0;  ///< bytes that have to be there to know the length, at most SocketLoop::kLongest
  /// The whole length of the message that begins so; 0, or more than `longest`, for what begins none: it is
  /// delivered as far as it goes, as truncated, and nothing is read behind it.
  std::size_t (*length)(std::span<const u8> header, std::size_t longest) = nullptr;
};

/// Limits of the sockets of a kind.
struct SocketKind {
  std::size_t longest = 1024;   ///< bytes of a message, at most SocketLoop::kLongest, except of a stream
  std::size_t most_unsent = 1;  ///< messages that wait for the other end to read, before it is not read
  std::optional<Framing> stream = {};  ///< none: sockets of sequential packets
};

struct LoopOptions {
  SocketKind clients = {};
  SocketKind pairs = {};  ///< what open_pair() gives
  u32 workers = 1;        ///< blocking calls at a time
  /// All clients are one user's: turns and closers are by process in place of by user.
  bool one_user = false;

  /// Whose turn and whose closer a client's are; nobody's where the kernel has not said who it is.
  [[nodiscard]] uid_t owner(const std::optional<Peer>& peer) const {
    return !peer ? kNobody : one_user ? static_cast<uid_t>(peer->pid) : peer->uid;
  }
};

/// Threads: one calls run(), and everything else but post() and stop().
class SocketLoop final : public Outlet, public Workers {
 public:
  static constexpr std::size_t kLongest = 4096;

  /// Throws Error.
  explicit SocketLoop(const LoopOptions& options);
  /// Closes what is left; Protocol is not called any more.
  ~SocketLoop() override;
  SocketLoop(const SocketLoop&) = delete;
  SocketLoop& operator=(const SocketLoop&) = delete;

  /// Before run(); `protocol` outlives the loop's last call of run().
  void serve(Protocol& protocol) { protocol_ = &protocol; }
  /// Takes clients from a listening socket of the clients' kind.
  void listen(Descriptor socket) { listen(std::move(socket), {protocol_, options_.clients}); }
  /// Sockets of another protocol than serve()'s, which outlives the loop's last call of run(), too. All
  /// protocols of a loop take the numbers of their sockets from one sequence.
  struct Front {
    Protocol* protocol = nullptr;
    SocketKind kind = {};
  };
  /// Takes clients of that protocol. Returns a number for stop_listening().
  u64 listen(Descriptor socket, const Front& front);
  /// Takes no more from that listening socket, or from any. Not while a client of it is being taken.
  void stop_listening(u64 listener);
  void stop_listening();
  /// A connected socket, as if it had been accepted.
  void take_client(Descriptor socket) { take_client(std::move(socket), {protocol_, options_.clients}); }
  /// Serves until stop() is called.
  void run();
  /// Any thread.
  void stop();
  /// The loop's thread calls `what`, soon. Any thread, also before run() and after it: then it is not called.
  void post(std::function<void()> what) { mail_->post(std::move(what)); }
  /// The way of post(), for those who may outlive the loop.
  class Mailbox {
   public:
    Mailbox();
    void post(std::function<void()> what);
    [[nodiscard]] int fd() const { return wake_.get(); }
    [[nodiscard]] std::vector<std::function<void()>> take();

   private:
    Descriptor wake_;  // an eventfd
    std::mutex mutex_;
    std::vector<std::function<void()>> letters_;
  };
  [[nodiscard]] std::shared_ptr<Mailbox> mailbox() const { return mail_; }
  /// Calls `ready` when there is something to read. Not to be undone; `fd` outlives the loop.
  void watch(int fd, std::function<void()> ready);

  // Outlet
  void send(SocketId to, std::vector<u8> message, Descriptor with) override;
  [[nodiscard]] Descriptor open_pair(SocketId id, uid_t user, int& error) override;
  void close(SocketId id) override;
  void pause(SocketId id) override;
  void resume(SocketId id) override;
  /// A pair of which one end is served by that protocol.
  [[nodiscard]] Descriptor open_pair(SocketId id, uid_t user, int& error, const Front& front);
  /// Closes it when what waits to be sent has been read; nothing is taken from it any more. closed() is
  /// called then, and not before the loop's next turn.
  void finish(SocketId id);
  // Workers
  void run(std::function<void()> work, std::function<void()> done) override;

  /// Files and sockets of clients that are not closed yet. Any thread.
  [[nodiscard]] u64 closing() const { return closers_->waiting(); }

 private:
  friend class Timer;
  struct Outgoing {
    std::vector<u8> bytes;
    Descriptor with;
    std::size_t sent = 0;  ///< of a stream, which takes parts
  };
  /// The turns of one user, whose sockets share it.
  struct Turn {
    uid_t user = 0;
    u64 round = 0;
    u32 taken = 0;  // messages, in this round
  };
  struct Socket {
    SocketId id = 0;
    Descriptor fd;
    SocketKind kind;
    Protocol* protocol = nullptr;
    std::shared_ptr<Turn> turn;
    std::deque<Outgoing> unsent;
    u32 events = 0;  ///< that the kernel is asked for
    bool paused = false;
    bool finishing = false;
    bool away = false;         ///< a closer takes a message from it
    bool full = false;         ///< not read: its user's files wait to be closed, or there is no memory
    bool half_closed = false;  ///< the other end sends no more, and messages are left
    // Of a stream: the message that has come in part, and whether it is one at all.
    std::vector<u8> partial;  ///< room for its header, then for all of it
    std::size_t have = 0;     ///< bytes of that
    bool sized = false;       ///< its length is known
    std::vector<ForeignFile> files;
    bool broken = false;
  };
  using Sockets = std::map<SocketId, Socket>;

  [[nodiscard]] Socket* find(SocketId id);
  [[nodiscard]] int add(Descriptor fd, SocketId id, uid_t user, const Front& front);
  void take_client(Descriptor socket, const Front& front);
  void remove(SocketId id);
  /// The other end has gone.
  void lose(SocketId id);
  void update(Socket& s);
  /// Whether the protocol takes messages of it, and whether they are read, too.
  [[nodiscard]] static bool is_taken(const Socket& s) {
    return !s.paused && !s.finishing && !s.broken && s.unsent.size() < s.kind.most_unsent;
  }
  [[nodiscard]] static bool is_read(const Socket& s) { return is_taken(s) && !s.full; }
  void handle(u64 id, u32 events);
  void readable(SocketId id);
  void look_whether_gone(SocketId id);
  enum class Next { more, none, gone };
  [[nodiscard]] Next take_one(Socket& s);
  [[nodiscard]] Next take_of_stream(Socket& s);
  void take_by_closer(Socket& s);
  void deliver(Socket& s, Message m);
  void flush(Socket& s);
  void accept_some(int listener, const Front& front);
  void refuse_without_descriptor(int listener, Protocol& protocol);
  void pause_listening();
  void set_listening(bool on);
  [[nodiscard]] std::shared_ptr<Turn> turn_of(uid_t user);
  /// So many of the user's files wait to be closed that he is not read, or there is no memory.
  [[nodiscard]] bool is_full(uid_t user) const { return closers_->full(user) || !SpareMemory::there(); }
  void close_for(uid_t user, Descriptor fd) { closers_->close(user, std::move(fd)); }
  [[nodiscard]] int wait_ms() const;
  void run_timers();
  void open_mail();

  const LoopOptions options_;
  Protocol* protocol_ = nullptr;
  std::shared_ptr<Mailbox> mail_ = std::make_shared<Mailbox>();
  std::shared_ptr<Closers> closers_ = std::make_shared<Closers>();
  FileRoom room_;
  Descriptor epoll_;
  Descriptor reserve_;  // closed for a moment when no descriptor is free, so that a client can be refused
  Sockets sockets_;
  std::map<uid_t, std::weak_ptr<Turn>> turns_;
  std::map<u64, std::function<void()>> watched_;
  std::vector<std::pair<u64, Descriptor>> listeners_;
  std::multimap<u64, class Timer*> timers_;  // by the time of wall_ns()
  u64 next_watch_;
  u64 round_ = 0;
  u64 look_again_ns_ = 0;  // at sockets that are not read; 0: there are none
  bool accepting_ = true;
  u64 accept_again_ns_ = 0;
  std::atomic<bool> stop_{false};
  WorkerPool workers_;  // last: they post
};

/// Calls a function of the loop's thread once, later. It goes before the loop.
class Timer {
 public:
  Timer(SocketLoop& loop, std::function<void()> what) : loop_(loop), what_(std::move(what)) {}
  ~Timer() { stop(); }
  Timer(const Timer&) = delete;
  Timer& operator=(const Timer&) = delete;
  /// From now; in place of an earlier time.
  void start(u64 in_ns);
  void stop();
  [[nodiscard]] bool running() const { return at_ns_ != 0; }

 private:
  friend class SocketLoop;
  SocketLoop& loop_;
  std::function<void()> what_;
  u64 at_ns_ = 0;  // 0: not running
};

}  // namespace doorbell::service
