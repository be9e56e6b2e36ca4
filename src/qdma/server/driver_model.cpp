// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "qdma/server/driver_model.hpp"

#include <algorithm>
#include <atomic>
#include <bit>
#include <cerrno>
#include <cstring>

namespace doorbell::qdma {

namespace {

constexpr u32 kGenerationShift = 8;
constexpr u32 kLastGeneration = 0xffffff;
static_assert(kMaxQueuePairs == 1u << kGenerationShift);

/// Reads the structure that the caller gives as `bytes`, by the rule of versions: it begins with its size;
/// what the driver does not know must be 0, what the caller does not know is 0. Returns 0 or an errno.
int read_structure(std::span<const u8> bytes, u32 smallest, std::span<u8> out, u32& size) {
  if (bytes.size() < sizeof size) return EFAULT;
  std::memcpy(&size, bytes.data(), sizeof size);
  if (size < smallest) return EINVAL;
  if (size > bytes.size()) return EFAULT;
  const auto known = std::min<std::size_t>(size, out.size());
  const auto unknown = bytes.subspan(known, size - known);
  if (std::any_of(unknown.begin(), unknown.end(), [](u8 b) { return b != 0; })) return E2BIG;
  std::memset(out.data(), 0, out.size());
  std::memcpy(out.data(), bytes.data(), known);
  return 0;
}

template <class T>
int read_structure(std::span<const u8> bytes, u32 number, T& out, u32& size) {
  return read_structure(bytes, smallest_size(number),
                        std::span(reinterpret_cast<u8*>(&out), structure_size(number)), size);
}

/// The structure as it goes back to a caller that knows `size` bytes of it, the driver `known`.
template <class T>
std::vector<u8> write_back(T value, u32 size, u32 known = sizeof(T)) {
  value.size = known;
  std::vector<u8> out(size);
  std::memcpy(out.data(), &value, std::min(size, known));
  return out;
}

DriverModel::Reply failed(int error) {
  DriverModel::Reply r;
  r.result = -error;
  return r;
}

}  // namespace

struct DriverModel::QueuePair {
  u32 id = 0;
  u32 directions = 0;
  bool started = false;
  bool deleted = false;
  const Node* owner = nullptr;
  std::shared_ptr<CardQueue> queue;
};

class DriverModel::Node {
 public:
  bool control = false;
  std::atomic<bool> closed{false};
  std::vector<std::shared_ptr<QueuePair>> pairs;  // of a transfer descriptor
};

class DriverModel::InFlight {
 public:
  struct Part : CardRequest {
    InFlight* call = nullptr;
    std::shared_ptr<HostBuffer> buffer;
  };
  std::array<Part, kMaxSubTransfers> parts;
  u32 count = 0;
  std::atomic<u32> left{0};
  Done done;
  std::shared_ptr<InFlight> self;  // while the card has a part of it
  std::atomic<bool> cancelled{false};

  static void part_ended(CardRequest& request) {
    InFlight& call = *static_cast<Part&>(request).call;
    if (call.left.fetch_sub(1) != 1) return;
    const std::shared_ptr<InFlight> keep = std::move(call.self);
    call.finish();
  }

 private:
  void finish() {
    Reply r;
    r.part_count = count;
    u64 total = 0;
    int error = 0;
    for (u32 i = 0; i < count; ++i) {
      const Part& p = parts[i];
      r.parts[i] = {static_cast<u32>(p.error), 0, p.moved, p.ns};
      total += p.moved;
      if (error == 0) error = p.error;
    }
    r.result = error != 0 ? -error : static_cast<i64>(total);
    for (Part& p : parts) {
      p.buffer.reset();
      p.queue.reset();
    }
    std::exchange(done, {})(std::move(r));
  }
};

/// A buffer that is being made.
struct DriverModel::BufferCall {
  std::shared_ptr<Node> node;
  BufCreate request;
  u32 size = 0;
  Done done;
  std::shared_ptr<HostBuffers::Making> making;
  std::shared_ptr<InFlight> in_flight = std::make_shared<InFlight>();  // which has no parts
};

DriverModel::DriverModel(std::shared_ptr<ModelCard> card, const DriverLimits& limits, Later later)
    : card_(std::move(card)),
      limits_(limits),
      later_(later ? std::move(later) : [](const std::function<void()>& work) { work(); }),
      buffers_(limits.buffers) {}

DriverModel::~DriverModel() {
  for (const auto& pair : QueuePairs(pairs_))
    if (pair) remove(pair, {});
}

std::shared_ptr<DriverModel::Node> DriverModel::open() {
  auto node = std::make_shared<Node>();
  node->control = true;
  return node;
}

void DriverModel::close(Node& node) {
  node.closed = true;
  if (!node.control) return;
  QueuePairs all;
  {
    const std::lock_guard lock(mutex_);
    all = pairs_;
  }
  for (const auto& pair : all)
    if (pair && pair->owner == &node) remove(pair, {});
}

u32 DriverModel::queue_pairs() const {
  const std::lock_guard lock(mutex_);
  return added_;
}

int DriverModel::find(u32 id, std::shared_ptr<QueuePair>& out) const {
  const u32 index = id % kMaxQueuePairs, generation = id >> kGenerationShift;
  if (generation < generations_[index]) return ESTALE;
  if (generation > generations_[index] || !pairs_[index]) return ENOENT;
  out = pairs_[index];
  return 0;
}

std::shared_ptr<DriverModel::InFlight> DriverModel::call(const std::shared_ptr<Node>& node, const Request& r,
                                                         Done done) {
  u32 size = 0;
  int error = 0;
  const auto refuse = [&](int with) { done(failed(with)); };
  const auto read = [&](auto& structure) {
    error = read_structure(r.structure, r.number, structure, size);
    if (error != 0) refuse(error);
    return error == 0;
  };
  if (card_->gone()) {
    refuse(ENODEV);
    return nullptr;
  }
  // Which calls a node has.
  if (r.number == kCallTransfer ? node->control : !node->control && r.number != kCallBufCreate) {
    refuse(ENOTTY);
    return nullptr;
  }
  switch (r.number) {
    case kCallInfo:
      if (Info i; read(i)) done(info(size));
      break;
    case kCallQpairAdd:
    case kCallQpairAddOld:
      if (QpairAdd a; read(a)) done(add(*node, a, structure_size(r.number), size));
      break;
    case kCallQpairOp:
      if (QpairOp op; read(op)) operate(op, size, std::move(done));
      break;
    case kCallQpairGetFd:
      if (QpairGetFd g; read(g)) done(get_fd(g, size));
      break;
    case kCallBufCreate:
      if (BufCreate b; read(b)) return create_buffer(node, b, size, std::move(done));
      break;
    case kCallTransfer:
      if (Transfer t; read(t)) {
        auto begun = transfer(*node, t, r, done, error);
        if (!begun) refuse(error);
        return begun;
      }
      break;
    default:
      refuse(ENOTTY);
  }
  return nullptr;
}

DriverModel::Reply DriverModel::info(u32 size) {
  Info i;
  auto end = std::ranges::copy(kCardPlace, i.bdf.begin()).out;
  *end++ = '.';
  *end = '1';
  Reply r;
  r.structure = write_back(i, size);
  return r;
}

DriverModel::Reply DriverModel::add(Node& node, const QpairAdd& a, u32 known, u32 size) {
  constexpr u32 kDirections = kDirH2C | kDirC2H | kDirCompletion;
  if (a.mode > kModeStream || a.dir_mask == 0 || (a.dir_mask & ~kDirections) != 0 ||
      a.mm_channel > kChannel1 || std::max({a.h2c_ring, a.c2h_ring, a.cmpt_ring}) > kMaxRingIndex ||
      (a.aperture_size != 0 && !std::has_single_bit(a.aperture_size)))
    return failed(EINVAL);
  if (a.mode == kModeStream || (a.dir_mask & kDirCompletion) != 0) return failed(EOPNOTSUPP);
  const std::lock_guard lock(mutex_);
  u32 index = 0;
  while (index < kMaxQueuePairs && (pairs_[index] || generations_[index] > kLastGeneration)) ++index;
  if (index == kMaxQueuePairs) return failed(EBUSY);
  if (added_ >= limits_.queue_pairs) return failed(EDQUOT);
  auto pair = std::make_shared<QueuePair>();
  pair->id = index | generations_[index] << kGenerationShift;
  pair->directions = a.dir_mask;
  pair->owner = &node;
  pair->queue = std::make_shared<CardQueue>(
      CardQueueShape{.index = index,
                     .channel = a.mm_channel == kChannelAuto ? index & 1 : a.mm_channel - kChannel0,
                     .h2c_ring = a.h2c_ring,
                     .c2h_ring = a.c2h_ring,
                     .aperture = a.aperture_size});
  QpairAdd out = a;
  out.qid = pair->id;
  pairs_[index] = std::move(pair);
  ++added_;
  Reply r;
  r.structure = write_back(out, size, known);
  return r;
}

void DriverModel::remove(const std::shared_ptr<QueuePair>& pair, std::function<void()> quiet) {
  {
    const std::lock_guard lock(mutex_);
    if (pair->deleted) {
      // Another request is deleting it; the card notifies both when it is idle.
    } else {
      const u32 index = pair->id % kMaxQueuePairs;
      pair->deleted = true;
      pair->started = false;
      pairs_[index].reset();
      ++generations_[index];  // the old id is stale from now on
      --added_;
    }
  }
  card_->stop(*pair->queue, std::move(quiet));
}

void DriverModel::operate(const QpairOp& op, u32 size, Done done) {
  std::shared_ptr<QueuePair> pair;
  const auto refuse_or_start = [&]() -> int {
    if (op.op > static_cast<u32>(QueueOp::del)) return EINVAL;
    const std::lock_guard lock(mutex_);
    if (const int error = find(op.qid, pair); error != 0) return error;
    const bool start = op.op == static_cast<u32>(QueueOp::start);
    if (op.op == static_cast<u32>(QueueOp::del)) return 0;
    if (pair->started == start) return EINVAL;
    pair->started = start;
    if (start) card_->start(*pair->queue);
    return 0;
  };
  if (const int error = refuse_or_start(); error != 0) {
    done(failed(error));
    return;
  }
  auto reply = [done = std::move(done), op, size] {
    Reply r;
    r.structure = write_back(op, size);
    done(std::move(r));
  };
  switch (static_cast<QueueOp>(op.op)) {
    case QueueOp::start:
      reply();
      break;
    case QueueOp::stop:
      card_->stop(*pair->queue, std::move(reply));
      break;
    case QueueOp::del:
      remove(pair, std::move(reply));
      break;
  }
}

DriverModel::Reply DriverModel::get_fd(const QpairGetFd& g, u32 size) {
  if ((g.flags & ~kFlagCloseOnExec) != 0 || g.qpair_count > kMaxDescriptorQueuePairs) return failed(EINVAL);
  std::array<u32, kMaxDescriptorQueuePairs> ids = g.qpair_ids;
  if (g.qpair_count == 0) ids[0] = g.qid;
  auto node = std::make_shared<Node>();
  const std::lock_guard lock(mutex_);
  for (u32 i = 0; i < std::max(g.qpair_count, 1u); ++i) {
    std::shared_ptr<QueuePair> pair;
    if (const int error = find(ids[i], pair); error != 0) return failed(error);
    if (!node->pairs.empty() && node->pairs.front() == pair) return failed(EINVAL);
    node->pairs.push_back(std::move(pair));
  }
  Reply r;
  r.node = std::move(node);
  r.structure = write_back(g, size);
  return r;
}

std::shared_ptr<DriverModel::InFlight> DriverModel::create_buffer(const std::shared_ptr<Node>& node,
                                                                  const BufCreate& b, u32 size, Done done) {
  if ((b.flags & ~kFlagCloseOnExec) != 0 || b.length == 0 || b.length % kGranule != 0 ||
      b.length > u64{1} << 62) {
    done(failed(EINVAL));
    return nullptr;
  }
  auto call = std::make_shared<BufferCall>();
  call->node = node;
  call->request = b;
  call->size = size;
  call->done = std::move(done);
  make_part(call);
  return call->in_flight;
}

void DriverModel::make_part(const std::shared_ptr<BufferCall>& call) {
  later_([this, call] {
    const BufCreate& b = call->request;
    const auto end = [&](Reply r) {
      call->making.reset();  // what was not finished is given back before its end is reported
      std::exchange(call->done, {})(std::move(r));
    };
    if (call->node->closed || call->in_flight->cancelled) return end(failed(ECANCELED));
    int error = 0;
    if (!call->making) error = buffers_.begin(b.length, (b.flags & kFlagCloseOnExec) != 0, call->making);
    Reply r;
    if (error == 0) error = call->making->go_on(r.descriptor);
    if (error == EINPROGRESS) return make_part(call);
    if (error != 0) return end(failed(error));
    BufCreate out = b;
    out.granule = kGranule;
    out.transfer_hint = 2;
    r.structure = write_back(out, call->size);
    end(std::move(r));
  });
}

int DriverModel::prepare(const Node& node, const SubXfer& x, const Request& request, InFlight& call,
                         u32 part) {
  constexpr u64 kLongest = 0xffffffff;
  if (x.qpair_index >= node.pairs.size()) return EINVAL;
  if (x.direction != static_cast<u32>(Direction::host_to_card) &&
      x.direction != static_cast<u32>(Direction::card_to_host))
    return EINVAL;
  if (x.length == 0 || x.length > kLongest) return EINVAL;
  if (x.buf_fd < 0 || static_cast<u64>(x.buf_fd) >= request.descriptors.size()) return EBADF;
  InFlight::Part& p = call.parts[part];
  if (const int error = buffers_.find(request.descriptors[static_cast<u32>(x.buf_fd)], p.buffer); error != 0)
    return error;
  if (x.buf_offset % kGranule != 0) return EINVAL;
  if (x.buf_offset > p.buffer->bytes() || x.length > p.buffer->bytes() - x.buf_offset) return EINVAL;
  const QueuePair& pair = *node.pairs[x.qpair_index];
  // The bits of dir_mask and the values of a direction are the same numbers.
  static_assert(kDirH2C == static_cast<u32>(Direction::host_to_card) &&
                kDirC2H == static_cast<u32>(Direction::card_to_host));
  if ((pair.directions & x.direction) == 0) return ENODEV;
  {
    const std::lock_guard lock(mutex_);
    if (pair.deleted) return ESTALE;
    if (!pair.started) return EINVAL;
  }
  p.direction = static_cast<Direction>(x.direction);
  if (!CardMemory::reaches(p.direction, x.dev_addr, x.length, pair.queue->shape().aperture)) return EFAULT;
  p.queue = pair.queue;
  p.host = p.buffer->data() + x.buf_offset;
  p.address = x.dev_addr;
  p.bytes = x.length;
  p.call = &call;
  p.ended = InFlight::part_ended;
  return 0;
}

std::shared_ptr<DriverModel::InFlight> DriverModel::transfer(Node& node, const Transfer& t,
                                                             const Request& request, Done& done, int& error) {
  error = EINVAL;
  if (t.count == 0 || t.count > kMaxSubTransfers) return nullptr;
  auto call = std::make_shared<InFlight>();
  u64 total = 0;
  for (u32 i = 0; i < t.count; ++i) {
    error = prepare(node, t.xfers[i], request, *call, i);
    if (error != 0) return nullptr;
    total += t.xfers[i].length;
  }
  if (total > kMaxCallBytes) {
    error = EINVAL;
    return nullptr;
  }
  const u64 limit_ns = request.deadline_ns == 0 ? kTransferLimitNs : request.deadline_ns;
  call->count = t.count;
  call->left = t.count;
  call->done = std::move(done);
  call->self = call;
  std::array<CardRequest*, kMaxSubTransfers> parts{};
  for (u32 i = 0; i < t.count; ++i) {
    call->parts[i].limit_ns = limit_ns;
    parts[i] = &call->parts[i];
  }
  card_->submit(std::span(parts).first(t.count));
  return call;
}

void DriverModel::cancel(InFlight& call) {
  call.cancelled = true;
  for (u32 i = 0; i < call.count; ++i) card_->abandon(call.parts[i], ECANCELED);
}

}  // namespace doorbell::qdma
