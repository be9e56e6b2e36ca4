// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "qdma/peer/socket_driver.hpp"

#include <doorbell/error.hpp>
#include <fcntl.h>
#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <condition_variable>
#include <cstring>

#include "qdma/flow/call_engine.hpp"
#include "qdma/model/card.hpp"
#include "qdma/peer/buffer_time.hpp"
#include "qdma/server/card_server.hpp"
#include "service/local_socket.hpp"
#include "system/clock.hpp"
#include "system/sysfs.hpp"

namespace doorbell::qdma {

namespace {

/// The time that a server may take for saying that a transfer's time is over.
constexpr double kSayS = 1;
/// The time that a server may take for giving up a transfer that has not ended in time, or less where
/// patience is less.
constexpr double kGiveUpS = static_cast<double>(wire::kDriverLimitNs) * 1e-9;

/// The word of a structure at `offset`; 0 if it is shorter.
u32 word_at(std::span<const u8> structure, std::size_t offset) {
  u32 word = 0;
  if (offset + sizeof word <= structure.size()) std::memcpy(&word, &structure[offset], sizeof word);
  return word;
}

/// The length in a BUF_CREATE, which may be shorter than it should.
u64 length_of_buffer(std::span<const u8> structure) {
  BufCreate b{};
  std::memcpy(static_cast<void*>(&b), structure.data(), std::min(structure.size(), sizeof b));
  return b.length;
}

/// 0, or an errno: then the request has not begun.
int begin(SocketChannel& channel, SocketChannel::Request& r, service::Waiting& waiting) {
  for (;;) {
    const int error = channel.begin(r, waiting.slice_ns());
    if (error != ETIMEDOUT) return error;
    if (const int over = waiting.over(); over != 0) return over;
  }
}

/// 0 when the request has ended, or why the wait has.
int wait_for(SocketChannel& channel, SocketChannel::Request& r, service::Waiting& waiting) {
  for (;;) {
    if (channel.wait(r, waiting.slice_ns())) return 0;
    if (const int over = waiting.over(); over != 0) return over;
  }
}

/// Transfers on one socket, through whatever the channel sends and receives with.
class SocketEngine : public CallEngine {
 public:
  explicit SocketEngine(std::shared_ptr<SocketChannel> channel) : channel_(std::move(channel)) {
    channel_->want_ring();
  }
  [[nodiscard]] std::string name() const override { return "io_uring"; }
  [[nodiscard]] bool driven() const override { return true; }
  void drive(u64 until_ns) override { channel_->drive(until_ns); }
  void cancel(PendingCall& call) override { channel_->cancel(call.tag); }

  [[nodiscard]] int begin(std::shared_ptr<PendingCall> call) override {
    PendingCall& c = *call;
    auto slot = std::make_unique<Slot>();
    slot->engine = this;
    slot->number = kCallTransfer;
    slot->deadline_ns = c.deadline_ns;
    slot->structure = std::span(reinterpret_cast<u8*>(&c.structure), sizeof c.structure);
    slot->parts = c.parts;
    slot->tag = c.tag;
    slot->ended = [](SocketChannel::Request& r) {
      auto& s = static_cast<Slot&>(r);
      s.engine->end(s);
    };
    slot->call = std::move(call);
    Slot& s = *slot;
    {
      const std::lock_guard lock(mutex_);
      slots_.emplace(&s, std::move(slot));
    }
    const int error = channel_->begin(s, wall_ns() + static_cast<u64>(kSayS * 1e9));
    if (error != 0) {
      const std::lock_guard lock(mutex_);
      slots_.erase(&s);
    }
    return error;
  }

  void abandon() override {
    std::unique_lock lock(mutex_);
    for (auto it = slots_.begin(); it != slots_.end();) {
      if (channel_->forget(*it->first)) it = slots_.erase(it);
      else ++it;
    }
    quiet_.wait(lock, [&] { return slots_.empty(); });  // these are ending now
  }

 private:
  struct Slot : SocketChannel::Request {
    SocketEngine* engine = nullptr;
    std::shared_ptr<PendingCall> call;
  };

  void end(Slot& s) {
    const std::shared_ptr<PendingCall> call = s.call;
    call->result = s.result;
    ended_(call);
    const std::lock_guard lock(mutex_);
    slots_.erase(&s);
    quiet_.notify_all();
  }

  std::shared_ptr<SocketChannel> channel_;
  std::mutex mutex_;
  std::condition_variable quiet_;
  std::map<Slot*, std::unique_ptr<Slot>> slots_;
};

}  // namespace

Descriptor connect_to(const std::string& path, const Patience& patience) {
  const std::string what = fmt::format("card server:{}", path);
  int error = 0;
  Descriptor s = service::connect_local(service::local_address(path, what), patience, error);
  if (error == 0) return s;
  if (error == EINTR) throw Error(what, service::why_over(error, "it", 0), "", ExitCode::interrupted);
  if (error == ETIMEDOUT) throw Error(what, "it is there and takes no clients", "", ExitCode::absent);
  const bool absent = error == ENOENT || error == ECONNREFUSED;
  throw Error(what, reason(error),
              absent ? fmt::format("start one: doorbell card serve --listen {}", path) : "",
              absent ? ExitCode::absent : ExitCode::usage);
}

SocketDriver::SocketDriver(Descriptor control, std::string name, std::shared_ptr<CardServer> server,
                           const Patience& patience)
    : patience_(patience),
      name_(std::move(name)),
      server_(std::move(server)),
      control_(std::move(control)),
      control_channel_(std::make_shared<SocketChannel>(control_.get())) {
  wire::Hello hello;
  const CallResult r = Driver::call(-1, wire::kHello, std::span(reinterpret_cast<u8*>(&hello), sizeof hello));
  if (r.result == 0 && hello.version == wire::kVersion) return;
  if (const int over = over_; over != 0)
    throw Error(fmt::format("card {}", name_), why(over), "",
                over == EINTR ? ExitCode::interrupted : ExitCode::usage);
  if (hello.version != wire::kVersion)
    throw Error(fmt::format("card {}", name_),
                fmt::format("it speaks version {} of the messages, not {}", hello.version, wire::kVersion));
  if (r.result == -EDQUOT)
    throw Error(fmt::format("card {}", name_), "it takes no further client",
                "its server has as many as doorbell card serve --max-connections lets it have");
  throw Error(fmt::format("card {}", name_),
              fmt::format("its hello failed: {}", reason(static_cast<int>(-r.result))));
}

SocketDriver::SocketDriver(std::string name, std::string who, const Patience& patience)
    : patience_(patience), name_(std::move(name)), who_(std::move(who)) {}

int SocketDriver::note_over(int over) {
  int none = 0;
  over_.compare_exchange_strong(none, over);
  return over;
}

int SocketDriver::given_up() const {
  return patience_.gives_up ? over_.load() : 0;
}

std::string SocketDriver::why(int error) const {
  return error != 0 && error == over_ ? service::why_over(error, who_, patience_.limit_s)
                                      : Driver::why(error);
}

SocketDriver::~SocketDriver() = default;

std::shared_ptr<SocketChannel> SocketDriver::channel_of(int fd) {
  if (fd < 0) return control_channel_;
  const std::lock_guard lock(mutex_);
  const auto it = channels_.find(fd);
  // A program may have closed the descriptor, and another file may have its number now.
  return it == channels_.end() || !it->second->is_same_file() ? nullptr : it->second;
}

void SocketDriver::adopt(int fd) {
  auto channel = std::make_shared<SocketChannel>(fd);
  const std::lock_guard lock(mutex_);
  channels_[fd] = std::move(channel);
}

void SocketDriver::close(int fd) {
  {
    const std::lock_guard lock(mutex_);
    channels_.erase(fd);
  }
  ::close(fd);
}

CallResult SocketDriver::call(int fd, u32 number, std::span<u8> structure, const CallOptions& o) {
  const auto channel = channel_of(fd);
  if (!channel) return {.result = -EBADF};
  if (structure.size() > wire::kMaxMessage - sizeof(wire::RequestHeader)) return {.result = -E2BIG};
  // The flags are read before the call: the driver writes back what it likes.
  const u32 flags = word_at(structure, number == kCallQpairGetFd ? 8 : 4);
  const bool transfer = number == kCallTransfer;
  if (const int over = given_up(); over != 0 && !transfer) return {.result = -over};
  double limit_s = patience_.limit_s;
  if (transfer)
    limit_s = static_cast<double>(o.deadline_ns == 0 ? wire::kDriverLimitNs : o.deadline_ns) * 1e-9 + kSayS;
  else if (number == kCallBufCreate)
    // This process's own server does not hang, but may have many buffers to make.
    limit_s += server_ ? kMostForBufferS : seconds_for_buffer(length_of_buffer(structure));
  // A transfer ends at its deadline, and what is in flight is awaited after a stop.
  service::Waiting waiting(transfer ? Patience{} : patience_, limit_s);
  SocketChannel::Request r;
  r.number = number;
  r.deadline_ns = o.deadline_ns;
  r.structure = structure;
  r.parts = o.parts;
  r.tag = o.tag;
  if (const int error = begin(*channel, r, waiting); error != 0) return {.result = -error};
  if (o.cancelled != nullptr && *o.cancelled) channel->cancel(o.tag);
  int over = wait_for(*channel, r, waiting);
  if (over != 0 && transfer) {
    // The card may still use the buffers, which are the caller's again when this returns.
    channel->cancel(r);
    service::Waiting given_up(patience_, std::min(kGiveUpS, patience_.limit_s));
    over = wait_for(*channel, r, given_up);
    if (over != 0) over = ETIMEDOUT;
  }
  // A server that does not even give up a transfer answers nothing else either.
  if (over != 0 && channel->forget(r)) return {.result = -note_over(over)};
  if (r.result.result >= 0 && r.descriptor.get() >= 0) {
    if ((flags & kFlagCloseOnExec) == 0) fcntl(r.descriptor.get(), F_SETFD, 0);
    r.result.result = r.descriptor.release();
    if (number == kCallQpairGetFd) adopt(static_cast<int>(r.result.result));
  }
  return r.result;
}

void SocketDriver::cancel(int fd, u64 tag) {
  if (const auto channel = channel_of(fd)) channel->cancel(tag);
}

std::optional<bool> SocketDriver::still_held(const wire::HostBufferName& buffer) {
  wire::HostBufferName asked = buffer;
  const i64 result = call(-1, wire::kHeld, {reinterpret_cast<u8*>(&asked), sizeof asked}, {}).result;
  // A card that has gone takes its buffers with it.
  if (result == -ENODEV) return false;
  return result < 0 ? std::nullopt : std::optional(result != 0);
}

std::unique_ptr<CallEngine> SocketDriver::uring_engine(int fd) {
  const auto channel = channel_of(fd);
  if (!channel || !socket_rings_work()) return nullptr;
  return std::make_unique<SocketEngine>(channel);
}

nlohmann::ordered_json SocketDriver::counters() {
  return server_ ? counters_of(server_->card()) : nlohmann::ordered_json(nullptr);
}

}  // namespace doorbell::qdma
