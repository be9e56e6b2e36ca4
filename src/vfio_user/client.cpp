// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "vfio_user/client.hpp"

#include <doorbell/error.hpp>
#include <fmt/format.h>
#include <pthread.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>

#include "service/local_socket.hpp"
#include "system/sysfs.hpp"
#include "system/thread.hpp"

namespace doorbell::vfio_user {

namespace {

/// Of registers and doorbells: data goes by shared memory or the server's own limit.
constexpr u64 kLargestAccess = 4096;

Descriptor connect(const std::string& path, const std::string& subject, double timeout_s) {
  int error = 0;
  Descriptor fd = service::connect_local(service::local_address(path, subject), {.limit_s = timeout_s}, error,
                                         SOCK_STREAM);
  if (fd.get() >= 0) return fd;
  const bool absent = error == ENOENT || error == ECONNREFUSED;
  throw Error(subject, absent ? fmt::format("no server listens at {}", path) : reason(error),
              absent ? "start one, for example: doorbell serve nvme --socket PATH" : "",
              absent ? ExitCode::absent : ExitCode::usage);
}

}  // namespace

Client::Client(const std::string& path, const std::string& subject, double timeout_s, DmaTarget* target)
    : timeout_ns_(static_cast<u64>(timeout_s * 1e9)),
      target_(target),
      endpoint_(std::make_unique<Endpoint>(connect(path, subject, timeout_s), timeout_ns_)) {
  thread_ = make_thread(subject, [this] {
    pthread_setname_np(pthread_self(), "vfio-user");
    receive_all();
  });
  const Capabilities ours{.max_msg_fds = kMostFiles};
  Incoming answer;
  const int error = call(Command::version, encode_version(0, 1, &ours), {}, {}, answer);
  std::string why;
  if (error == ENODEV) why = why_.empty() ? "it does not answer" : why_;
  else if (error != 0) why = fmt::format("it refuses version 0.1: {}", reason(error));
  else if (const auto v = decode_version(answer.payload, why); v) version_ = *v;
  if (why.empty() && version_.major != 0) why = fmt::format("it speaks version {}", version_.major);
  if (why.empty()) return;
  endpoint_->shut();
  thread_.join();
  throw Error(subject, why, "does a vfio-user server listen there, and has it no other client?");
}

Client::~Client() {
  endpoint_->shut();
  thread_.join();
}

bool Client::gone() const {
  const std::lock_guard lock(mutex_);
  return gone_;
}

u64 Client::messages() const {
  const std::lock_guard lock(mutex_);
  return messages_;
}

void Client::lose(const std::string& why) {
  {
    const std::lock_guard lock(mutex_);
    if (!gone_) why_ = why;
    gone_ = true;
  }
  answered_.notify_all();
  endpoint_->shut();
}

void Client::receive_all() {
  for (;;) {
    Incoming in;
    if (const int error = endpoint_->receive(in); error != 0)
      return lose(error == ECONNRESET ? "it has closed the connection"
                                      : fmt::format("what it sends is no message: {}", reason(error)));
    if (in.header.is_command()) {
      serve_dma(in);
      continue;
    }
    std::unique_lock lock(mutex_);
    if (waiting_.empty() || waiting_.front()->id != in.header.id ||
        static_cast<u16>(waiting_.front()->command) != in.header.command) {
      lock.unlock();
      return lose(fmt::format("it answers {}, which was not asked", name(in.header.command)));
    }
    waiting_.front()->answer = std::move(in);
    waiting_.front()->done = true;
    waiting_.pop_front();
    lock.unlock();
    answered_.notify_all();
  }
}

void Client::serve_dma(const Incoming& in) {
  const bool write = in.header.command == static_cast<u16>(Command::dma_write);
  u32 error = 0;
  const auto access = first_of<DmaAccess>(in.payload);
  u8* place = nullptr;
  if (!write && in.header.command != static_cast<u16>(Command::dma_read)) error = ENOSYS;
  else if (!access || !in.files.empty()) error = EINVAL;
  else if (access->count > kMostData) error = E2BIG;
  else if (write && in.payload.size() - sizeof *access != access->count) error = EINVAL;
  else if (target_ == nullptr || (place = target_->dma(access->address, access->count, write)) == nullptr)
    error = EFAULT;
  std::span<const u8> data;
  if (error == 0 && write) std::memcpy(place, in.payload.data() + sizeof *access, access->count);
  if (error == 0 && !write) data = {place, access->count};
  if (in.header.no_reply()) return;
  const auto answer = error != 0 ? reply(in.header, error) : reply(in.header, 0, bytes_of(*access), data);
  if (endpoint_->send(answer) != 0) lose("it takes no answers");
}

int Client::call(Command c, std::span<const u8> payload, std::span<const u8> data, std::span<const int> files,
                 Incoming& answer) {
  Waiting mine{.command = c};
  std::unique_lock order(ordering_);
  {
    const std::lock_guard lock(mutex_);
    if (gone_) return ENODEV;
    mine.id = next_id_++;
    waiting_.push_back(&mine);
    ++messages_;
  }
  const int sent = endpoint_->send(command(mine.id, c, payload, data), files);
  order.unlock();
  if (sent != 0) lose("it takes no messages");
  std::unique_lock lock(mutex_);
  const auto over = [&] { return mine.done || gone_; };
  const bool in_time = answered_.wait_for(lock, std::chrono::nanoseconds(timeout_ns_), over);
  if (!mine.done) {
    std::erase(waiting_, &mine);
    lock.unlock();
    if (!in_time) lose(fmt::format("{} was not answered", name(static_cast<u16>(c))));
    return ENODEV;
  }
  answer = std::move(mine.answer);
  if (!answer.header.failed()) return 0;
  return answer.header.error == 0 ? EIO : static_cast<int>(std::min<u32>(answer.header.error, 4095));
}

int Client::info(DeviceInfo& out) {
  Incoming answer;
  const DeviceInfo asked;
  if (const int error = call(Command::device_get_info, bytes_of(asked), {}, {}, answer); error != 0)
    return error;
  const auto got = first_of<DeviceInfo>(answer.payload);
  if (!got) return EPROTO;
  out = *got;
  return 0;
}

int Client::region(u32 index, RemoteRegion& out) {
  RegionInfo asked{.index = index};
  Incoming answer;
  for (int i = 0; i < 2; ++i) {
    // The room is as the server's first answer says it needs.
    if (const int error = call(Command::get_region_info, bytes_of(asked), {}, {}, answer); error != 0)
      return error;
    const auto got = first_of<RegionInfo>(answer.payload);
    if (!got || got->index != index) return EPROTO;
    out.info = *got;
    if (got->argsz <= asked.argsz) break;
    asked.argsz = std::min<u32>(got->argsz, kLargestAccess);
  }
  std::string why;
  auto areas = decode_areas(answer.payload, why);
  if (!areas) return EPROTO;
  out.areas.clear();
  out.file.reset();
  if (answer.files.empty()) return 0;
  out.areas = std::move(*areas);
  out.file = std::move(answer.files.front());
  return 0;
}

int Client::irq(u32 index, IrqInfo& out) {
  Incoming answer;
  const IrqInfo asked{.index = index};
  if (const int error = call(Command::get_irq_info, bytes_of(asked), {}, {}, answer); error != 0)
    return error;
  const auto got = first_of<IrqInfo>(answer.payload);
  if (!got || got->index != index) return EPROTO;
  out = *got;
  return 0;
}

int Client::set_irqs(const IrqSet& set, std::span<const int> files) {
  Incoming answer;
  return call(Command::set_irqs, bytes_of(set), {}, files, answer);
}

int Client::map(const DmaMap& what, int file) {
  Incoming answer;
  return call(Command::dma_map, bytes_of(what), {}, std::span(&file, file >= 0 ? 1 : 0), answer);
}

int Client::unmap(u64 address, u64 bytes) {
  Incoming answer;
  const DmaUnmap what{.address = address, .size = bytes};
  return call(Command::dma_unmap, bytes_of(what), {}, {}, answer);
}

int Client::read(u32 region, u64 offset, std::span<u8> to) {
  Incoming answer;
  const RegionAccess asked{.offset = offset, .region = region, .count = static_cast<u32>(to.size())};
  if (const int error = call(Command::region_read, bytes_of(asked), {}, {}, answer); error != 0) return error;
  const auto got = first_of<RegionAccess>(answer.payload);
  if (!got || got->count != to.size() || answer.payload.size() - sizeof *got < to.size()) return EPROTO;
  std::memcpy(to.data(), answer.payload.data() + sizeof *got, to.size());
  return 0;
}

int Client::write(u32 region, u64 offset, std::span<const u8> from) {
  Incoming answer;
  const RegionAccess asked{.offset = offset, .region = region, .count = static_cast<u32>(from.size())};
  return call(Command::region_write, bytes_of(asked), from, {}, answer);
}

void Client::post_write(u32 region, u64 offset, std::span<const u8> from) {
  const RegionAccess asked{.offset = offset, .region = region, .count = static_cast<u32>(from.size())};
  u16 id = 0;
  {
    const std::lock_guard lock(mutex_);
    if (gone_) return;
    id = next_id_++;
    ++messages_;
  }
  if (endpoint_->send(command(id, Command::region_write, bytes_of(asked), from, true)) != 0)
    lose("it takes no messages");
}

int Client::reset() {
  Incoming answer;
  return call(Command::device_reset, {}, {}, {}, answer);
}

}  // namespace doorbell::vfio_user
