// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "qdma/bench/port.hpp"

#include <doorbell/error.hpp>
#include <fmt/format.h>

#include "qdma/model/card.hpp"
#include "qdma/settings.hpp"
#include "rma/op_runner.hpp"
#include "system/open_files.hpp"
#include "system/sysfs.hpp"

namespace doorbell::qdma {

namespace {

constexpr u32 kMostQueues = 64;

u64 whole_granules(u64 bytes) {
  return (bytes + kGranule - 1) / kGranule * kGranule;
}

/// A buffer, by its place in the port's table.
class NumberedBuffer final : public rma::RegisteredMemory {
 public:
  explicit NumberedBuffer(u32 number) { lkey_ = number; }
};

std::vector<QueuePair> make_queue_pairs(Card& card, const CardUse& use) {
  std::vector<QueuePair> all;
  for (const u32 channel : {kChannel0, kChannel1}) {
    if (use.channels == Channels::only0 && channel != kChannel0) continue;
    if (use.channels == Channels::only1 && channel != kChannel1) continue;
    all.push_back(card.add_queue_pair({.channel = channel, .ring_index = use.ring_index}));
    all.back().start();
  }
  return all;
}

TransferDescriptor make_descriptor(Card& card, const CardUse& use, std::span<const QueuePair> queue_pairs) {
  std::vector<const QueuePair*> pointers;
  for (const QueuePair& q : queue_pairs) pointers.push_back(&q);
  TransferDescriptor d = card.descriptor(pointers);
  d.set_policy(use.policy, use.balanced);
  return d;
}

/// The descriptors of one session.
class TransferQueues final : public rma::QueueSet {
 public:
  TransferQueues(Card& card, const CardUse& use, const BufferTable& buffers, u32* alive,
                 std::span<CardTime* const> times, u32 requests)
      : card_(card), use_(use), buffers_(buffers), alive_(alive), requests_(requests), queues_(times.size()) {
    for (std::size_t i = 0; i < queues_.size(); ++i) {
      queues_[i].time = times[i];
      queues_[i].create(*this);
    }
  }

  void recover() override {
    for (Queue& q : queues_) q.create(*this);
  }

  [[nodiscard]] std::unique_ptr<rma::OpRunner> runner(const rma::DriverShape& driver) override {
    if (driver.initiator == Initiator::gpu)
      throw Error("a GPU as initiator", "the queues of a QDMA card are the driver's", "use a CPU initiator",
                  ExitCode::absent);
    rma::OpStates<TransferQueue> states;
    for (Queue& q : queues_)
      states.push_back({.own = {.queue = q.work.get(), .requests = requests_}, .peer = {}});
    return rma::cpu_op_runner<TransferQueue>(driver, states);
  }

 private:
  struct Queue {
    std::unique_ptr<ChannelDescriptor> descriptor;  // outlives the work on it
    std::unique_ptr<SubmitQueue> work;
    CardTime* time = nullptr;

    void create(const TransferQueues& set) {
      work.reset();
      descriptor.reset();
      descriptor = std::make_unique<ChannelDescriptor>(set.card_, set.use_);
      work = std::make_unique<SubmitQueue>(descriptor->transfers(), set.buffers_, set.alive_,
                                           set.use_.deadline_s, time);
    }
  };

  Card& card_;
  const CardUse& use_;
  const BufferTable& buffers_;
  u32* alive_;
  u32 requests_;
  std::vector<Queue> queues_;
};

}  // namespace

const std::vector<std::string>& channel_names() {
  static const std::vector<std::string> names = {"both", "0", "1"};
  return names;
}

ChannelDescriptor::ChannelDescriptor(Card& card, const CardUse& use)
    : queue_pairs_(make_queue_pairs(card, use)), descriptor_(make_descriptor(card, use, queue_pairs_)) {}

QdmaPort::QdmaPort(const rma::PortRequest& request, const CardUse& use)
    : use_(use),
      driver_(open_driver({.spec = request.spec, .use = request.use, .patience = use.patience})),
      memory_(request.spec, driver_, use.access),
      card_(card_over(driver_)),
      of_this_process_(is_model(request.spec)) {
  if (use_.deadline_grows && driver_->kind() == "model") use_.deadline_s += kDeadlineShare * request.more_s;
}

QdmaPort::~QdmaPort() = default;

rma::Limits QdmaPort::limits() const {
  return {.max_requests = SubmitQueue::kMost,
          .max_queues = kMostQueues,
          .max_inline = 0,
          .max_message = rma::kMaxMessage,
          .atomics = false};
}

Region QdmaPort::allocate(Place place, u64 bytes) {
  if (place == Place::gpu)
    throw Error("GPU memory", "the card's driver gives host memory only", "use host memory",
                ExitCode::absent);
  buffers_.push_back(std::make_unique<Buffer>(card_.create_buffer(whole_granules(bytes))));
  const Buffer& b = *buffers_.back();
  return {Place::pageable,
          {.base = b.data(), .bytes = b.bytes(), .free = [this, number = buffers_.size() - 1](u8*, u64) {
             buffers_[number].reset();
           }}};
}

std::unique_ptr<rma::RegisteredMemory> QdmaPort::register_memory(const Region& region, rma::Reach) {
  for (u32 i = 0; i < buffers_.size(); ++i)
    if (buffers_[i] != nullptr && buffers_[i]->data() == region.host())
      return std::make_unique<NumberedBuffer>(i);
  throw Error("a buffer of " + name(), "it is not one that the card's driver made", "use Port::allocate()");
}

std::unique_ptr<rma::QueueSet> QdmaPort::create_queues(u32 count, rma::Ends ends,
                                                       const rma::QueueShape& shape) {
  if (ends != rma::Ends::device)
    throw Error("connections of a QDMA card", "each leads to the card's memory", "use Ends::device");
  one_at_a_time_ = count == 1 && shape.requests == 1;
  std::vector<CardTime*> times;
  for (u32 i = 0; i < count; ++i) times.push_back(&times_.emplace_back());
  return std::make_unique<TransferQueues>(card_, use_, buffers_, &alive_, times, shape.requests);
}

u64 QdmaPort::device_memory(u32 number, u64 bytes) {
  const u64 each = whole_granules(bytes);
  const u64 needed = use_.starting_offset + each * (number + 1);
  if (!memory_.given() && needed > use_.memory.bytes)
    throw Error(fmt::format("{}, {}", setting::starting_offset, setting::transfers),
                fmt::format("the last transfer ends at byte {} of {}, which has {}", needed, use_.memory.name,
                            use_.memory.bytes),
                "use fewer or smaller transfers in flight");
  // A session's connections are numbered from 0, and follow those of no other session.
  if (number == 0) memory_.reuse();
  return memory_.place(use_.memory, use_.starting_offset + each * number, each, setting::transfers);
}

bool QdmaPort::read_device(u64 address, std::span<u8> to) try {
  const u64 begin = address / kGranule * kGranule;
  Buffer buffer = card_.create_buffer(whole_granules(address - begin + to.size()));
  ChannelDescriptor descriptor(card_, use_);
  const TransferResult r = descriptor.transfers().transfer(Direction::card_to_host, buffer, 0, begin,
                                                           buffer.bytes(), use_.deadline_s);
  if (r.error != 0 || r.bytes != buffer.bytes()) return false;
  std::copy_n(buffer.data() + (address - begin), to.size(), to.begin());
  return true;
} catch (const Error&) {
  return false;
}

/// The memory that a descriptor takes in this process; its rings are the card's.
u64 QdmaPort::queue_bytes(rma::Ends, const rma::QueueShape&) const {
  return sizeof(SubmitQueue);
}

/// The software card of this process is given each buffer's descriptor again with each transfer.
u64 QdmaPort::queue_files(const rma::QueueShape& shape) const {
  constexpr u64 kOfAQueue = 8;
  return kOfAQueue + (of_this_process_ ? shape.requests : 0);
}

nlohmann::ordered_json QdmaPort::counters() {
  for (const CardTime& t : times_)
    if (t.lacked_files)
      throw Error(fmt::format("{}, {}", setting::transfers, name()),
                  of_this_process_ ? "transfers found no file descriptor for their buffers"
                                   : "transfers found no file descriptor for their buffers in its server",
                  more_open_files());
  return driver_->counters();
}

/// Several transfers at the same time overlap on the card, and only the card knows how.
rma::DeviceTime QdmaPort::device_time() {
  const bool put = use_.measured == Direction::host_to_card;
  rma::DeviceTime t;
  if (const auto card = driver_->counters(); card.is_object()) {
    const std::string way = put ? "host_to_card" : "card_to_host";
    for (const auto& channel : card.at("channels")) t.bytes += channel.at(way + "_bytes").get<u64>();
    t.ns = card.at("active_ns").at(way).get<u64>();
  } else if (one_at_a_time_) {
    for (const CardTime& own : times_) t.bytes += own.bytes[put ? 0 : 1], t.ns += own.ns[put ? 0 : 1];
  }
  return t;
}

measure::StatusName QdmaPort::status_names() const {
  return [](u16 status) -> std::string { return errno_name(static_cast<int>(status - kStatusOfErrno)); };
}

nlohmann::ordered_json QdmaPort::described() const {
  return {{"memory", use_.memory.name},
          {"channels", channel_names()[static_cast<u32>(use_.channels)]},
          {"policy", use_.channels == Channels::both ? qdma::name(use_.policy) : "one channel"},
          {"ring_size_index", use_.ring_index},
          {"ring_entries", kRingEntries[use_.ring_index]}};
}

rma::BenchOptions bench_of_transfers(const CardUse& use) {
  rma::BenchOptions b;
  b.texts.path = "qdma";
  b.texts.clock_rate = "card_clock_bytes_per_s";
  b.texts.op_name = [](rma::Op op) -> std::string_view { return op == rma::Op::read ? "get" : "put"; };
  b.open = [use](const rma::PortRequest& request) { return std::make_unique<QdmaPort>(request, use); };
  b.device = "model";
  b.ends = rma::Ends::device;
  b.slot_alignment = kGranule;
  b.sizes = {1 << 20};
  return b;
}

}  // namespace doorbell::qdma
