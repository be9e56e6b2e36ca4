// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "vfio_user/server_loop.hpp"

#include <doorbell/error.hpp>
#include <fmt/format.h>
#include <pthread.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <future>

#include "system/clock.hpp"
#include "system/sysfs.hpp"
#include "system/thread.hpp"

namespace doorbell::vfio_user {

namespace {

/// Commands of a client that wait for the one before them, and their bytes: more come from none that is
/// right.
constexpr std::size_t kMostQueued = 4096, kMostQueuedBytes = std::size_t{16} << 20;
/// Clients that wait for the one before them to be gone; and until they are looked at again.
constexpr std::size_t kMostWaiting = 8;
constexpr u64 kAgainNs = 20'000'000;
constexpr service::SocketKind kClients = {
    .longest = kLongest, .most_unsent = 64, .stream = service::Framing{kHeaderBytes, length_of}};

}  // namespace

Server::Loop::Loop(Device& device, const ServerOptions& options)
    : device_(device),
      options_(options),
      interrupts_(device.vectors()),
      config_(device.identity(), device.bar0().bytes, device.vectors()),
      loop_({.clients = kClients, .pairs = {}, .workers = 1, .one_user = true}),
      dma_(
          [this, mail = loop_.mailbox()](u64 session, std::vector<u8> m) {
            mail->post([this, session, m = std::make_shared<std::vector<u8>>(std::move(m))] {
              loop_.send(session, std::move(*m), {});
            });
          },
          [this, mail = loop_.mailbox()](u64 session) {
            mail->post([this, session] {
              if (find(session) == nullptr) return;
              ++unanswered_;
              loop_.close(session);  // he may not read what he still gets
              closed(session);
            });
          },
          options.answer_limit_ns),
      maps_(device.space(), dma_) {
  if (!interrupts_.never_wait())
    log(service::Priority::warning,
        "the kernel gives no aio: a client can hold the device up by an eventfd that is full", {});
  loop_.serve(*this);
  device_.interrupt_by(&interrupts_);
  thread_ = make_thread("vfio-user server", [this] {
    pthread_setname_np(pthread_self(), "vfio-user");
    loop_.run();
  });
}

Server::Loop::~Loop() {
  dma_.close();
  loop_.stop();
  thread_.join();
  dma_.close();
  // The worker takes its jobs in order: behind this one it has none.
  std::promise<void> idle;
  loop_.run([&] { idle.set_value(); }, [] {});
  idle.get_future().wait();
  device_.reset();
  device_.interrupt_by(nullptr);
  device_.change_memory([this] { maps_.forget_all(); });
}

Descriptor Server::Loop::connect_pair() {
  int ends[2] = {-1, -1};
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
    throw Error("vfio-user server", fmt::format("a new connection: {}", reason(errno)));
  Descriptor theirs(ends[1]);
  loop_.post([this, ours = std::make_shared<Descriptor>(ends[0])] { loop_.take_client(std::move(*ours)); });
  return theirs;
}

void Server::Loop::listen(const std::string& path) {
  auto fd = std::make_shared<Descriptor>(
      service::listen_at(path, fmt::format("listen at {}", path), {.mode = 0600, .type = SOCK_STREAM}));
  {
    const std::lock_guard lock(files_mutex_);
    files_.emplace_back(path);
  }
  loop_.post([this, fd] { loop_.listen(std::move(*fd)); });
}

ServerCounts Server::Loop::counts() const {
  return {.clients = clients_,
          .messages = messages_,
          .refused = refused_,
          .malformed = malformed_,
          .turned_away = turned_away_,
          .stray_replies = stray_,
          .unexpected_files = unexpected_,
          .unanswered = unanswered_,
          .dma_reads = dma_.reads(),
          .dma_writes = dma_.writes(),
          .dma_refused = dma_.refused(),
          .interrupts_raised = interrupts_.raised(),
          .interrupts_delivered = interrupts_.delivered(),
          .files_lost = lost_,
          .resets = resets_,
          .connected = connected_,
          .ranges = ranges_,
          .remote_ranges = remote_,
          .files = mapped_files_,
          .vectors = vectors_,
          .closing = loop_.closing()};
}

void Server::Loop::count_now() {
  ranges_ = maps_.ranges();
  remote_ = maps_.remote_ranges();
  mapped_files_ = maps_.files();
  lost_ = maps_.files_lost();
  vectors_ = interrupts_.connected();
}

void Server::Loop::log(service::Priority priority, std::string text, const service::Peer& who) const {
  if (options_.log == nullptr) return;
  options_.log->write({.priority = priority,
                       .text = fmt::format("{} (process {}, user {})", text, who.pid, who.uid),
                       .fields = {},
                       .user = who.uid});
}

int Server::Loop::connect(service::SocketId id, service::Peer peer) {
  Session s{.id = id, .peer = std::move(peer), .came_ns = wall_ns(), .queue = {}};
  if (!current_ && !busy_ && waiting_.empty()) {
    current_ = std::move(s);
    connected_ = true;
    return 0;
  }
  // The first one may be gone already, and be taken down.
  if (waiting_.size() < kMostWaiting) {
    waiting_.push_back(std::move(s));
    if (!second_.running()) second_.start(options_.second_client_ns);
    return 0;
  }
  ++turned_away_;
  return EBUSY;
}

Server::Loop::Session* Server::Loop::find(service::SocketId id) {
  if (current_ && current_->id == id) return &*current_;
  const auto at = std::ranges::find(waiting_, id, &Session::id);
  return at == waiting_.end() ? nullptr : &*at;
}

void Server::Loop::give_up_waiting() {
  const u64 now = wall_ns();
  while (current_ && !waiting_.empty() && now - waiting_.front().came_ns >= options_.second_client_ns) {
    ++turned_away_;
    const Session s = std::move(waiting_.front());
    waiting_.pop_front();
    log(service::Priority::notice, "a second client was turned away", s.peer);
    if (!s.queue.empty())
      if (const auto header = first_of<Header>(s.queue.front().bytes); header && !header->no_reply())
        loop_.send(s.id, reply(*header, EBUSY), {});
    loop_.close(s.id);
  }
  if (waiting_.empty()) return;
  const u64 waited = now - waiting_.front().came_ns;
  second_.start(waited < options_.second_client_ns ? options_.second_client_ns - waited : kAgainNs);
}

void Server::Loop::refused(std::string_view reason) {
  ++turned_away_;
  log(service::Priority::warning, fmt::format("a client was turned away for want of {}", reason), {});
}

void Server::Loop::closed(service::SocketId id) {
  std::erase_if(waiting_, [&](const Session& s) { return s.id == id; });
  if (!current_ || current_->id != id) return;
  if (current_->greeted) log(service::Priority::info, "the client has gone", current_->peer);
  current_.reset();
  connected_ = false;
  dma_.close();
  tear_down();
}

void Server::Loop::tear_down() {
  // Whatever the worker is doing ends first: it has one job at a time, in their order.
  busy_ = true;
  loop_.run(
      [this] {
        const MessageDma::Pause pause(dma_);
        device_.reset();
        config_.reset();
        interrupts_.reset();
        table_ = {};
        device_.change_memory([this] {
          maps_.forget_all();
          interrupts_.close_replaced();
        });
      },
      [this] {
        count_now();
        busy_ = false;
        promote();
      });
}

void Server::Loop::promote() {
  if (waiting_.empty() || current_) return;
  current_ = std::move(waiting_.front());
  waiting_.pop_front();
  connected_ = true;
  run_next();
}

void Server::Loop::malformed(service::SocketId id, const service::Message& m) {
  ++malformed_;
  log(service::Priority::notice, m.lost ? "descriptors of a message were lost" : "bytes that are no message",
      find(id)->peer);
  if (const auto header = first_of<Header>(m.bytes); header && header->is_command() && !header->no_reply())
    loop_.send(id, reply(*header, m.lost ? EMFILE : EINVAL), {});
  loop_.finish(id);
}

void Server::Loop::message(service::SocketId id, service::Message m) {
  ++messages_;
  Session* const found = find(id);
  if (found == nullptr) return;
  Session& s = *found;
  const bool is_waiting = !current_ || current_->id != id;
  if (m.truncated || m.lost) return malformed(id, m);
  const Header header = *first_of<Header>(m.bytes);
  if (header.is_reply()) {
    if (is_waiting || !dma_.answer(id, header, m.bytes.subspan(kHeaderBytes))) ++stray_;
    return;
  }
  if (!busy_ && !is_waiting && s.queue.empty()) return handle(m.bytes, m.files);
  s.queued_bytes += m.bytes.size();
  if (s.queue.size() >= kMostQueued || s.queued_bytes > kMostQueuedBytes) return malformed(id, m);
  s.queue.push_back({{m.bytes.begin(), m.bytes.end()}, std::move(m.files)});
}

void Server::Loop::run_next() {
  while (!busy_ && current_ && !current_->queue.empty()) {
    Queued next = std::move(current_->queue.front());
    current_->queue.pop_front();
    current_->queued_bytes -= next.bytes.size();
    handle(next.bytes, next.files);
  }
}

void Server::Loop::handle(std::span<const u8> bytes, Files& files) {
  const Header header = *first_of<Header>(bytes);
  const service::SocketId id = current_->id;
  auto answer = std::make_shared<Answer>(execute(header, bytes.subspan(kHeaderBytes), files));
  const auto c = static_cast<Command>(header.command);
  if (c != Command::region_read && c != Command::region_write) count_now();
  if (!answer->wait) return finish(id, header, std::move(*answer));
  busy_ = true;
  answer->error = ENOMEM;  // where the worker has none even for the call
  loop_.run([answer] { answer->error = answer->wait(); },
            [this, id, header, answer] {
              if (!current_ || current_->id != id) return;  // it has gone meanwhile, and is taken down
              count_now();
              busy_ = false;
              finish(id, header, std::move(*answer));
              run_next();
            });
}

void Server::Loop::finish(service::SocketId id, const Header& header, Answer a) {
  if (a.error != 0) ++refused_;
  // No_reply holds for what is refused, too.
  if (!header.no_reply()) loop_.send(id, reply(header, a.error, a.payload), std::move(a.file));
  if (a.close) loop_.finish(id);
}

}  // namespace doorbell::vfio_user
