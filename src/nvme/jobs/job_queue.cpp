// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "nvme/jobs/job_queue.hpp"

#include <doorbell/error.hpp>
#include <doorbell/nvme/wire.hpp>
#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <thread>
#include <utility>

namespace doorbell::nvme {

namespace {

constexpr u64 kPage = 4096;
constexpr double kLookS = 100e-6;      // between looks at deadlines and the device, as in all loops
constexpr double kAwayS = 10e-3;       // a thread that looks so rarely did not run
constexpr u32 kLooksPerRequest = 256;  // between looks at a request for the device
constexpr u64 kMostBlocks = 65536;     // of one command

constexpr u64 kMark = 0x5aa5'dead'0ff5'a55a;

void poison(void* data, u64 bytes) {
  for (u64 at = 0; at < bytes; at += 512) std::memcpy(static_cast<u8*>(data) + at, &kMark, sizeof kMark);
}

constexpr u64 whole_pages(u64 bytes) {
  return (bytes + kPage - 1) / kPage * kPage;
}

}  // namespace

std::string text_of(IoEnd end, u16 status) {
  switch (end) {
    case IoEnd::ok:
      return "no error";
    case IoEnd::refused:
      return fmt::format("NVMe status {} ({:#x})", status_name(status), status);
    case IoEnd::timeout:
      return "the controller did not answer in time";
    case IoEnd::gone:
      return "the controller is gone, or was reset";
  }
  return "an unknown end";
}

int errno_of(IoEnd end, u16 status) {
  if (end == IoEnd::ok) return 0;
  if (end == IoEnd::timeout) return ETIMEDOUT;
  if (end == IoEnd::gone) return ENODEV;
  if (status == status::invalid_opcode) return EOPNOTSUPP;
  if (status == status::invalid_field || status == status::lba_out_of_range) return EINVAL;
  if (status == status::capacity_exceeded) return ENOSPC;
  return EIO;
}

void check_sizes(const ControllerInfo& controller, const NamespaceInfo& ns, u64 least, u64 most, u64 step,
                 u64 at) {
  const u64 lba = ns.lba_bytes;
  const std::string blocks = fmt::format("the logical blocks of namespace {} have {} bytes", ns.nsid, lba);
  if (least == 0 || least % lba != 0 || most % lba != 0 || step % lba != 0)
    throw Error(fmt::format("I/Os of {} to {} bytes in steps of {}", least, most, step), blocks,
                fmt::format("use multiples of {} bytes", lba));
  if (at % lba != 0)
    throw Error(fmt::format("I/Os at multiples of {} bytes", at), blocks,
                fmt::format("use multiples of {} bytes", lba));
  const u64 limit = controller.max_transfer_bytes;
  if ((limit != 0 && most > limit) || most > kMostBlocks * lba)
    throw Error(fmt::format("I/Os of {} bytes", most),
                fmt::format("one command of this controller moves at most {}",
                            limit != 0 && limit < kMostBlocks * lba ? limit : kMostBlocks * lba));
}

JobQueue::JobQueue(std::shared_ptr<SharedController> controller, u32 depth, u64 io_bytes)
    : controller_(std::move(controller)),
      depth_(depth),
      io_bytes_(io_bytes),
      pair_(std::make_unique<IoQueuePair>(controller_->create_queue(depth))),
      queue_(pair_->memory(Initiator::cpu)),
      slots_(depth) {
  try {
    // The data may begin anywhere in a page.
    list_stride_ = whole_pages(prp_list_qwords(kPage - 4, io_bytes, kPage) * 8);
    if (list_stride_ > 0) lists_ = controller_->allocate(Place::pageable, list_stride_ * depth, Access::read);
    limits_.csts = controller_->status_register();
  } catch (...) {
    controller_->remove_queue(std::move(pair_));
    throw;
  }
  free_.reserve(depth);
  ended_.reserve(depth);
  for (u32 slot = depth; slot > 0; --slot) free_.push_back(static_cast<u16>(slot - 1));
  limits_.ns_per_tick_q24 = HostClock::ns_per_tick_q24();
  limits_.timeout_ticks = HostClock::ticks(controller_->options().timeout_s);
  limits_.check_ticks = HostClock::ticks(kLookS);
  limits_.away_ticks = HostClock::ticks(kAwayS);
  guard_.begin(OneLane());
}

JobQueue::~JobQueue() {
  end();
}

void* JobQueue::make_buffer(Place place, u64 bytes) {
  buffer_ = controller_->allocate(place, bytes, Access::read_write);
  buffer_.region().populate();
  return buffer_.region().host();
}

JobQueue::Queued JobQueue::refuse(int number, std::string why) {
  refusal_ = std::move(why);
  refusal_errno_ = number;
  return Queued::no;
}

/// Of the data in its memory; of data before it, a huge number.
u64 JobQueue::offset_of(const IoRequest& r) const {
  if (r.memory != nullptr) return r.memory_offset;
  return reinterpret_cast<u64>(r.data) - reinterpret_cast<u64>(buffer_.region().host());
}

bool JobQueue::check(const NamespaceInfo& ns, const IoRequest& r) {
  const u64 lba = ns.lba_bytes, size = ns.blocks * lba;
  const u64 at = offset_of(r), room = (r.memory != nullptr ? *r.memory : buffer_).region().bytes();
  std::string why;
  if (r.offset % lba != 0 || r.bytes % lba != 0 || r.bytes == 0)
    why = fmt::format("{} bytes at {}: the namespace has blocks of {} bytes", r.bytes, r.offset, lba);
  else if (r.bytes > io_bytes_)
    why = fmt::format("{} bytes at {}: this job's I/Os have at most {}", r.bytes, r.offset, io_bytes_);
  else if (r.offset > size || r.bytes > size - r.offset)
    why = fmt::format("{} bytes at {}: the namespace has {}", r.bytes, r.offset, size);
  else if (at > room || r.bytes > room - at)
    why = "the data does not lie in memory that the controller reaches";
  else if (at % 4 != 0) why = "the data is not aligned to 4 bytes";
  if (why.empty()) return true;
  (void)refuse(EINVAL, std::move(why));
  return false;
}

JobQueue::Queued JobQueue::queue(const NamespaceInfo& ns, const IoRequest& r) {
  if (!closed_.empty()) return refuse(closed_errno_, closed_);
  const bool moves = r.op == IoOpcode::read || r.op == IoOpcode::write;
  if (!moves && r.op != IoOpcode::flush) return refuse(EOPNOTSUPP, "only reads, writes and flushes are done");
  if (moves && !check(ns, r)) return Queued::no;
  if (free_.empty() || queue_.room() == 0) return Queued::full;
  const OneLane lane;
  // The controller may complete everything in flight before the next look: that many entries stay free.
  if (queue_.cq_room() < in_flight_ + 1) queue_.ring_cq(lane);

  const u16 slot = free_.back();
  free_.pop_back();
  Slot& s = slots_[slot];
  const u32 use = ((s.state >> slot_state::use_shift) + 1) & kUseMask;
  const auto cid = static_cast<u16>(use << kSlotBits | slot);
  Sqe e = flush_command(cid, ns.nsid);
  if (r.poison && r.op == IoOpcode::read) poison(r.data, r.bytes);
  if (moves) {
    const u64 iova = (r.memory != nullptr ? *r.memory : buffer_).iova() + offset_of(r);
    const u64 list_iova = list_stride_ > 0 ? lists_.iova() + slot * list_stride_ : 0;
    const PrpPair prp = prp_pair(iova, r.bytes, kPage, list_iova);
    if (prp.list_qwords > 0 && (s.list_iova != iova || s.list_bytes != r.bytes)) {
      write_prp_list(reinterpret_cast<u64*>(lists_.region().host() + slot * list_stride_), iova, r.bytes,
                     kPage, list_iova);
      s.list_iova = iova;
      s.list_bytes = r.bytes;
    }
    e = io_command(r.op, cid, ns.nsid, r.offset / ns.lba_bytes, static_cast<u32>(r.bytes / ns.lba_bytes),
                   prp.prp1, prp.prp2);
  }
  s.tag = r.tag;
  s.posted_at = guard_.read(lane);
  s.state = slot_state::in_flight | use << slot_state::use_shift;
  if (in_flight_ == 0) oldest_ = s.posted_at;
  queue_.post(lane, 1, [&](u32) { return e; });
  ++in_flight_;
  unrung_ = true;
  return Queued::yes;
}

void JobQueue::commit() {
  if (!unrung_) return;
  unrung_ = false;
  queue_.ring(OneLane());
}

u32 JobQueue::reap(std::span<IoOutcome> out, u32 least, u64 limit_ns) {
  commit();
  const OneLane lane;
  const u64 begin = limit_ns != 0 && limit_ns != ~u64{0} ? wall_ns() : 0;
  u32 n = hand_out(out);
  while (n < out.size() && in_flight_ > 0) {
    guard_.before_poll(lane);
    if (const auto polled = queue_.poll(lane); polled.count == 1) {
      guard_.found();
      complete(polled.mine, out, &n);
      continue;
    }
    guard_.missed();
    if (guard_.due(limits_)) {
      look();
      n += hand_out(out.subspan(n));
    }
    if (n >= least || limit_ns == 0) break;
    if (guard_.idle() % per_yield_ != per_yield_ - 1) continue;
    // Where device and initiator share a core, the device cannot answer while this thread spins.
    std::this_thread::yield();
    if (begin != 0 && wall_ns() - begin >= limit_ns) break;
  }
  return n;
}

u32 JobQueue::hand_out(std::span<IoOutcome> out) {
  u32 n = 0;
  while (n < out.size() && ended_taken_ < ended_.size()) out[n++] = ended_[ended_taken_++];
  return n;
}

void JobQueue::complete(const Cqe& e, std::span<IoOutcome> out, u32* n) {
  const u32 slot = e.cid & kSlotMask;
  const u32 use = u32{e.cid} >> kSlotBits << slot_state::use_shift;
  const Status status = status_of(e);
  const bool ours = slot < depth_ && e.sq_id == queue_.qid();
  if (ours && slots_[slot].state == (slot_state::in_flight | use)) {
    slots_[slot].state = slot_state::free | use;
    free_.push_back(static_cast<u16>(slot));
    --in_flight_;
    guard_.done_at(guard_.clock());
    out[(*n)++] = {slots_[slot].tag, status.ok() ? IoEnd::ok : IoEnd::refused, status.type_and_code()};
  } else if (ours && slots_[slot].state == (slot_state::lost | use)) {
    slots_[slot].state = slot_state::free | use;  // late; its timeout has been reported
  } else if (status.type_and_code() != status::sq_deleted) {
    note_fault(ours ? fmt::format("queue {}: a completion came twice", queue_.qid())
                    : fmt::format("queue {}: a completion came for no command", queue_.qid()));
  }
  if (queue_.bad_sq_heads() > 0)
    note_fault(fmt::format("queue {}: a completion names a head that never was", queue_.qid()));
  // Late and repeated completions took entries that those in flight need.
  if (queue_.cq_room() < in_flight_) queue_.ring_cq(OneLane());
}

void JobQueue::note_fault(std::string what) {
  if (fault_.empty()) fault_ = std::move(what);
  if (!closed_.empty()) return;
  closed_ = fault_;
  closed_errno_ = EPROTO;
}

void JobQueue::lose(u32 slot, IoEnd end) {
  slots_[slot].state = slot_state::lost | (slots_[slot].state & ~slot_state::kind_mask);
  ended_.push_back({slots_[slot].tag, end, 0});
  --in_flight_;
}

void JobQueue::look() {
  const OneLane lane;
  const StopReason found = guard_.look(lane, limits_);
  const bool lost = found == StopReason::removed || found == StopReason::reset;
  if (!lost && ++looks_ % kLooksPerRequest == 0 && closed_.empty() && controller_->leaving()) {
    closed_ = controller_->name() + ": the device is to be given back";
    closed_errno_ = ENODEV;
  }
  const u64 limit = limits_.timeout_ticks;
  if (!lost && !guard_.passed(oldest_, limit)) return;
  ended_.erase(ended_.begin(), ended_.begin() + ended_taken_);
  ended_taken_ = 0;
  u64 oldest = guard_.clock();
  bool late = false;
  for (u32 slot = 0; slot < depth_; ++slot) {
    Slot& s = slots_[slot];
    if ((s.state & slot_state::kind_mask) != slot_state::in_flight) continue;
    if (lost) {
      lose(slot, IoEnd::gone);
    } else if (guard_.clock() >= guard_.deadline(s.posted_at, limit)) {
      lose(slot, IoEnd::timeout);
      late = true;
    } else if (s.posted_at < oldest) {
      oldest = s.posted_at;
    }
  }
  oldest_ = oldest;
  if ((!lost && !late) || !closed_.empty()) return;
  closed_ = controller_->name() + ": " + text_of(lost ? IoEnd::gone : IoEnd::timeout, 0);
  closed_errno_ = lost ? ENODEV : ETIMEDOUT;
}

void JobQueue::take_rest() {
  const OneLane lane;
  for (auto polled = queue_.poll(lane); polled.count == 1; polled = queue_.poll(lane)) {
    IoOutcome nobodys;
    u32 n = 0;
    complete(polled.mine, {&nobodys, 1}, &n);
  }
}

void JobQueue::end() noexcept {
  if (pair_ == nullptr) return;
  try {
    // A completion that comes twice may come last: there is room for it, and it is looked for.
    take_rest();
    queue_.ring_cq(OneLane());
    controller_->end_submissions(*pair_);
    take_rest();
  } catch (const std::exception& e) {
    note_fault(e.what());
  }
  controller_->remove_queue(std::move(pair_));
  in_flight_ = 0;
  buffer_ = Mapped();
  lists_ = Mapped();
  if (closed_.empty()) {
    closed_ = "the queue has been deleted";
    closed_errno_ = EBADF;
  }
}

}  // namespace doorbell::nvme
