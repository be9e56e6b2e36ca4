// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include <doorbell/qdma/card.hpp>
#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "qdma/card_state.hpp"
#include "qdma/driver.hpp"
#include "qdma/flow/transfers.hpp"
#include "system/sysfs.hpp"

namespace doorbell::qdma {

CardError::CardError(std::string call, int number, const std::string& why, std::string hint)
    : Error(std::move(call), why, std::move(hint), number == EINTR ? ExitCode::interrupted : ExitCode::usage),
      number_(number) {}

std::string Driver::why(int error) const {
  return reason(error);
}

void CardState::fail(const char* what, int number) const {
  throw CardError(fmt::format("{}: {}", name, what), number, driver->why(number));
}

// --- Buffer
// -------------------------------------------------------------------------------------------------

Buffer::Buffer(int fd, u64 bytes, u32 granule, u32 hint)
    : fd_(fd), bytes_(bytes), granule_(granule), hint_(hint) {
  void* const at = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (at == MAP_FAILED) {
    const int error = errno;
    ::close(fd);
    throw CardError(fmt::format("mapping a buffer of {} bytes", bytes), error, reason(error));
  }
  data_ = static_cast<u8*>(at);
}

Buffer Buffer::create(CardState& card, int fd, u64 bytes) {
  BufCreate b{.flags = kFlagCloseOnExec, .length = bytes};
  const i64 made = card.call(fd, kCallBufCreate, b, "create a buffer");
  return {static_cast<int>(made), bytes, b.granule, b.transfer_hint};
}

Buffer::~Buffer() {
  close();
}

Buffer::Buffer(Buffer&& other) noexcept
    : fd_(std::exchange(other.fd_, -1)),
      data_(std::exchange(other.data_, nullptr)),
      bytes_(std::exchange(other.bytes_, 0)),
      granule_(other.granule_),
      hint_(other.hint_) {}

Buffer& Buffer::operator=(Buffer&& other) noexcept {
  if (this != &other) {
    close();
    fd_ = std::exchange(other.fd_, -1);
    data_ = std::exchange(other.data_, nullptr);
    bytes_ = std::exchange(other.bytes_, 0);
    granule_ = other.granule_;
    hint_ = other.hint_;
  }
  return *this;
}

Region Buffer::pinned_for(std::shared_ptr<gpu::Gpu> gpu) const {
  // The region is a second view: it must not unmap what this object has mapped.
  return {Place::pinned, HostMemory{data_, bytes_, [](u8*, u64) {}}, std::move(gpu)};
}

void Buffer::close() noexcept {
  if (data_ != nullptr) munmap(std::exchange(data_, nullptr), bytes_);
  if (fd_ >= 0) ::close(std::exchange(fd_, -1));
  bytes_ = 0;
}

// --- QueuePair
// ----------------------------------------------------------------------------------------------

QueuePair::QueuePair(std::shared_ptr<CardState> card, u32 id, u32 channel)
    : card_(std::move(card)), id_(id), channel_(channel) {}

QueuePair::~QueuePair() {
  del();
}

QueuePair::QueuePair(QueuePair&&) noexcept = default;

QueuePair& QueuePair::operator=(QueuePair&& other) noexcept {
  if (this != &other) {
    del();
    card_ = std::move(other.card_);
    id_ = other.id_;
    channel_ = other.channel_;
  }
  return *this;
}

void QueuePair::operate(QueueOp op, const char* what) {
  QpairOp q{.qid = id_, .op = static_cast<u32>(op)};
  card_->call(-1, kCallQpairOp, q, what);
}

void QueuePair::start() {
  operate(QueueOp::start, "start a queue pair");
}

void QueuePair::stop() {
  operate(QueueOp::stop, "stop a queue pair");
}

void QueuePair::del() noexcept {
  if (!card_) return;
  QpairOp q{.qid = id_, .op = static_cast<u32>(QueueOp::del)};
  // A card that has gone has no queue pairs either.
  static_cast<void>(card_->driver->call(-1, kCallQpairOp, std::span(reinterpret_cast<u8*>(&q), sizeof q)));
  card_.reset();
}

// --- TransferDescriptor
// -------------------------------------------------------------------------------------

struct TransferDescriptor::State {
  std::vector<QueuePair> owned;  // deleted after the transfers have ended
  Transfers transfers;
};

namespace {

int fd_of(const Buffer* buffer) {
  return buffer == nullptr ? -1 : buffer->fd();
}

}  // namespace

TransferDescriptor::TransferDescriptor(std::unique_ptr<State> state) : state_(std::move(state)) {}
TransferDescriptor::~TransferDescriptor() = default;
TransferDescriptor::TransferDescriptor(TransferDescriptor&&) noexcept = default;
TransferDescriptor& TransferDescriptor::operator=(TransferDescriptor&&) noexcept = default;

int TransferDescriptor::fd() const {
  return state_->transfers.fd();
}

u32 TransferDescriptor::queue_pairs() const {
  return state_->transfers.queue_pairs();
}

Buffer TransferDescriptor::create_buffer(u64 bytes) {
  return Buffer::create(state_->transfers.card(), fd(), bytes);
}

void TransferDescriptor::set_policy(PolicyKind kind, const BalancedPolicy& balanced) {
  state_->transfers.set_policy(kind, balanced);
}

TransferResult TransferDescriptor::transfer(Direction direction, const Buffer& buffer, u64 buffer_offset,
                                            u64 address, u64 bytes, double deadline_s) {
  return state_->transfers.transfer({direction, buffer.fd(), buffer.bytes(), buffer_offset, address, bytes},
                                    deadline_s);
}

TransferResult TransferDescriptor::transfer_batch(std::span<const SubTransfer> parts, double deadline_s) {
  std::vector<SubXfer> xfers;
  for (const SubTransfer& p : parts)
    xfers.push_back({.qpair_index = p.queue_pair,
                     .direction = static_cast<u32>(p.direction),
                     .buf_fd = fd_of(p.buffer),
                     .buf_offset = p.buffer_offset,
                     .dev_addr = p.address,
                     .length = p.bytes});
  return state_->transfers.batch(xfers, deadline_s);
}

TransferId TransferDescriptor::submit(Direction direction, const Buffer& buffer, u64 buffer_offset,
                                      u64 address, u64 bytes, double deadline_s, u64 user) {
  return state_->transfers.submit({direction, buffer.fd(), buffer.bytes(), buffer_offset, address, bytes},
                                  deadline_s, user);
}

u32 TransferDescriptor::complete(std::span<TransferCompletion> out, double wait_s) {
  return state_->transfers.complete(out, wait_s);
}

void TransferDescriptor::cancel(TransferId id) {
  state_->transfers.cancel(id);
}

std::string TransferDescriptor::submit_engine() const {
  return state_->transfers.submit_engine();
}

// --- Card
// ---------------------------------------------------------------------------------------------------

Card::Card(std::shared_ptr<CardState> state) : state_(std::move(state)) {}

Card card_with(std::shared_ptr<CardState> state) {
  return Card(std::move(state));
}

const std::shared_ptr<CardState>& state_of(const Card& card) {
  return card.state_;
}

Card card_over(std::shared_ptr<Driver> driver) {
  auto state = std::make_shared<CardState>();
  state->name = driver->name();
  state->driver = std::move(driver);
  return card_with(std::move(state));
}

Driver& driver_of(const Card& card) {
  return *state_of(card)->driver;
}

Card Card::open(const std::string& name) {
  return card_over(open_driver({.spec = name}));
}

const std::string& Card::name() const {
  return state_->name;
}

std::string Card::kind() const {
  return state_->driver->kind();
}

Info Card::info() const {
  Info i;
  state_->call(-1, kCallInfo, i, "read the card's information");
  i.bdf.back() = '\0';
  return i;
}

QueuePair Card::add_queue_pair(const QueuePairOptions& o) {
  QpairAdd a{.dir_mask = o.directions,
             .mm_channel = o.channel,
             .h2c_ring = o.ring_index,
             .c2h_ring = o.ring_index,
             .aperture_size = o.aperture};
  state_->call(-1, kCallQpairAdd, a, "add a queue pair");
  // A driver that chose the channel itself may say which; the kernel's goes by its own id.
  return {state_, a.qid, a.mm_channel == kChannelAuto ? a.qid & 1 : a.mm_channel - kChannel0};
}

TransferDescriptor Card::descriptor(std::span<const QueuePair* const> queue_pairs) {
  QpairGetFd g{.flags = kFlagCloseOnExec, .qpair_count = static_cast<u32>(queue_pairs.size())};
  if (queue_pairs.empty() || queue_pairs.size() > g.qpair_ids.size())
    state_->fail("make a transfer descriptor for none or more than two queue pairs", EINVAL);
  std::vector<u32> channels;
  for (const QueuePair* q : queue_pairs) {
    g.qpair_ids[channels.size()] = q->id_;
    channels.push_back(q->channel_);
  }
  const i64 fd = state_->call(-1, kCallQpairGetFd, g, "make a transfer descriptor");
  return TransferDescriptor(std::unique_ptr<TransferDescriptor::State>(
      new TransferDescriptor::State{{}, Transfers(state_, static_cast<int>(fd), channels)}));
}

Buffer Card::create_buffer(u64 bytes) {
  return Buffer::create(*state_, -1, bytes);
}

TransferDescriptor Card::both_channels(u32 ring_index) {
  std::vector<QueuePair> pairs;
  for (const u32 channel : {kChannel0, kChannel1})
    pairs.push_back(add_queue_pair({.channel = channel, .ring_index = ring_index}));
  for (QueuePair& q : pairs) q.start();
  const std::array<const QueuePair*, 2> both = {&pairs[0], &pairs[1]};
  TransferDescriptor d = descriptor(both);
  d.state_->owned = std::move(pairs);
  return d;
}

}  // namespace doorbell::qdma
