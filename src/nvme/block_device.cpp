// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include <doorbell/error.hpp>
#include <doorbell/nvme/block_device.hpp>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include "nvme/jobs/job_queue.hpp"
#include "nvme/jobs/shared_controller.hpp"
#include "nvme/settings.hpp"

namespace doorbell::nvme {

namespace {

constexpr u64 kUsualIoBytes = 128u << 10;
constexpr u64 kBounceBytes = 8u << 20;
constexpr double kLongestWaitS = 86400;

u64 io_bytes_of(const BlockOptions& o, const ControllerInfo& c, const NamespaceInfo& ns) {
  const u64 most = c.max_transfer_bytes != 0 ? c.max_transfer_bytes : ~u64{0};
  const u64 bytes = o.io_bytes != 0 ? o.io_bytes : std::min(kUsualIoBytes, most);
  check_sizes(c, ns, ns.lba_bytes, std::max<u64>(bytes, ns.lba_bytes), ns.lba_bytes, 0);
  return std::max<u64>(bytes, ns.lba_bytes);
}

}  // namespace

struct BlockDevice::Parts {
  Parts(const std::string& name, const BlockOptions& o)
      : options(o),
        controller(std::make_shared<SharedController>(
            SharedOptions{.controller = name, .timeout_s = o.timeout_s, .gpu = o.gpu})),
        ns(controller->name_space(o.nsid)),
        io_bytes(io_bytes_of(o, controller->info(), ns)),
        queue(controller, std::min(o.in_flight, controller->largest_depth()), io_bytes) {}

  void require_open() const {
    if (ended) throw Error(controller->name(), "the device is closed");
  }

  /// `lba` and `count` lie in the namespace, and the bytes in the memory.
  void check(const char* what, u64 lba, u64 count, u64 room) const {
    require_open();
    if (lba > ns.blocks || count > ns.blocks - lba)
      throw Error(fmt::format("{} of {} blocks at {}", what, count, lba),
                  fmt::format("the namespace has {} blocks", ns.blocks));
    if (count > room / ns.lba_bytes)
      throw Error(
          fmt::format("{} of {} blocks at {}", what, count, lba),
          fmt::format("the memory has room for {} blocks of {} bytes", room / ns.lba_bytes, ns.lba_bytes));
  }

  void require_permission() {
    if (permitted) return;
    if (!options.allow_write) controller->require_scratch("allow writing when the device is opened");
    permitted = true;
  }

  /// Does I/Os for all blocks; the first that fails is thrown when none is in flight any more.
  void transfer(IoOpcode op, u64 lba, u64 count, const Mapped& memory, u64 offset) {
    const u64 bytes = count * ns.lba_bytes;
    const u64 step = io_bytes / ns.lba_bytes * ns.lba_bytes;
    u64 posted = 0;
    std::string failed;
    ExitCode code = ExitCode::data;
    std::array<IoOutcome, 64> outcomes;
    while (true) {
      while (posted < bytes && failed.empty()) {
        const u64 part = std::min(step, bytes - posted);
        const IoRequest r = {.op = op,
                             .offset = lba * ns.lba_bytes + posted,
                             .bytes = part,
                             .tag = reinterpret_cast<void*>(lba * ns.lba_bytes + posted + 1),
                             .memory = &memory,
                             .memory_offset = offset + posted};
        const JobQueue::Queued done = queue.queue(ns, r);
        if (done == JobQueue::Queued::full) break;
        if (done == JobQueue::Queued::yes) {
          posted += part;
        } else {
          failed = queue.refusal();
          if (queue.refusal_errno() == EINVAL) code = ExitCode::usage;
        }
      }
      if (queue.in_flight() == 0) break;
      const u32 n = queue.reap(outcomes, 1);
      for (u32 i = 0; i < n; ++i)
        if (const IoOutcome& o = outcomes[i]; o.end != IoEnd::ok && failed.empty())
          failed = fmt::format("at block {}: {}", (reinterpret_cast<u64>(o.tag) - 1) / ns.lba_bytes,
                               text_of(o.end, o.status));
    }
    if (failed.empty()) failed = queue.fault();
    if (!failed.empty())
      throw Error(fmt::format("{} of {} blocks at {}", op == IoOpcode::read ? "read" : "write", count, lba),
                  failed, {}, code);
  }

  const Mapped& bounce() {
    if (bounce_.region().bytes() == 0)
      bounce_ = controller->allocate(Place::pageable, std::max(kBounceBytes, io_bytes), Access::read_write);
    return bounce_;
  }
  [[nodiscard]] u64 bounce_blocks() { return bounce().region().bytes() / ns.lba_bytes; }

  BlockOptions options;
  std::shared_ptr<SharedController> controller;
  NamespaceInfo ns;
  u64 io_bytes;
  Mapped bounce_;
  bool permitted = false;
  bool ended = false;
  JobQueue queue;  // deleted first: afterwards the controller uses no memory
};

BlockDevice::BlockDevice(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}
BlockDevice::~BlockDevice() = default;

std::unique_ptr<BlockDevice> BlockDevice::open(const std::string& controller, const BlockOptions& options) {
  if (options.in_flight < 1 || options.in_flight > kMaxWindow)
    throw Error(setting::in_flight, fmt::format("{} is not in 1..{}", options.in_flight, kMaxWindow));
  if (!(options.timeout_s > 0 && options.timeout_s <= kLongestWaitS))
    throw Error("the time for an answer",
                fmt::format("{} s is not above 0 and at most {}", options.timeout_s, kLongestWaitS));
  return std::unique_ptr<BlockDevice>(new BlockDevice(std::make_unique<Parts>(controller, options)));
}

std::string BlockDevice::name() const {
  return parts_->controller->name();
}
u64 BlockDevice::blocks() const {
  return parts_->ns.blocks;
}
u32 BlockDevice::block_bytes() const {
  return parts_->ns.lba_bytes;
}

BlockMemory BlockDevice::allocate(u64 bytes, Place place) {
  if (place == Place::gpu && parts_->options.gpu == nullptr)
    throw Error("GPU memory", "the device was opened without a GPU", "give BlockOptions::gpu");
  parts_->require_open();
  Mapped memory = parts_->controller->allocate(place, bytes, Access::read_write);
  memory.region().populate();
  return BlockMemory(std::move(memory));
}

BlockMemory BlockDevice::map(void* pages, u64 bytes) {
  parts_->require_open();
  const auto page = static_cast<u64>(sysconf(_SC_PAGESIZE));
  if (bytes == 0 || bytes % page != 0 || reinterpret_cast<u64>(pages) % page != 0)
    throw Error(fmt::format("{} bytes at {}", bytes, pages),
                fmt::format("memory for a device is whole pages of {} bytes", page));
  return BlockMemory(parts_->controller->map(
      Region(Place::pageable, HostMemory{static_cast<u8*>(pages), bytes, [](u8*, u64) {}}),
      Access::read_write));
}

void BlockDevice::read(u64 lba, u64 count, BlockMemory& to, u64 offset) {
  parts_->check("read", lba, count, offset < to.bytes() ? to.bytes() - offset : 0);
  parts_->transfer(IoOpcode::read, lba, count, to.mapped(), offset);
}

void BlockDevice::write(u64 lba, u64 count, const BlockMemory& from, u64 offset) {
  parts_->check("write", lba, count, offset < from.bytes() ? from.bytes() - offset : 0);
  parts_->require_permission();
  parts_->transfer(IoOpcode::write, lba, count, from.mapped(), offset);
}

void BlockDevice::read(u64 lba, u64 count, void* to) {
  parts_->check("read", lba, count, ~u64{0});
  const u64 size = block_bytes();
  for (u64 done = 0; done < count;) {
    const u64 n = std::min(count - done, parts_->bounce_blocks());
    parts_->transfer(IoOpcode::read, lba + done, n, parts_->bounce(), 0);
    std::memcpy(static_cast<u8*>(to) + done * size, parts_->bounce().region().host(), n * size);
    done += n;
  }
}

void BlockDevice::write(u64 lba, u64 count, const void* from) {
  parts_->check("write", lba, count, ~u64{0});
  parts_->require_permission();
  const u64 size = block_bytes();
  for (u64 done = 0; done < count;) {
    const u64 n = std::min(count - done, parts_->bounce_blocks());
    std::memcpy(parts_->bounce().region().host(), static_cast<const u8*>(from) + done * size, n * size);
    parts_->transfer(IoOpcode::write, lba + done, n, parts_->bounce(), 0);
    done += n;
  }
}

void BlockDevice::flush() {
  parts_->require_open();
  std::array<IoOutcome, 1> outcome;
  if (parts_->queue.queue(parts_->ns, {.op = IoOpcode::flush}) != JobQueue::Queued::yes)
    throw Error("flush", parts_->queue.refusal(), {}, ExitCode::data);
  (void)parts_->queue.reap(outcome, 1);
  if (outcome[0].end != IoEnd::ok)
    throw Error("flush", text_of(outcome[0].end, outcome[0].status), {}, ExitCode::data);
}

void BlockDevice::end() {
  if (parts_->ended) return;
  parts_->ended = true;
  parts_->queue.end();
  if (const std::string& fault = parts_->queue.fault(); !fault.empty())
    throw Error(parts_->controller->name(), fault, {}, ExitCode::data);
}

}  // namespace doorbell::nvme
