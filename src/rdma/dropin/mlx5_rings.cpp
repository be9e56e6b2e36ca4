// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "rdma/dropin/mlx5_rings.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cerrno>
#include <cstring>
#include <new>

#include "rdma/vendors/mlx5.hpp"

namespace doorbell::dropin {

using namespace rdma;

namespace {

constexpr u32 kMostCqes = 1u << 22;
constexpr std::size_t kPage = 4096;

std::size_t pages(std::size_t bytes) {
  return (bytes + kPage - 1) / kPage * kPage;
}

u32 ring_of(u32 count) {
  return std::bit_ceil(std::max(count, 1u));
}

std::size_t send_bytes(u32 blocks) {
  return std::size_t{blocks} * Mlx5::kUnitParts * sizeof(Word16);
}
std::size_t receive_bytes(u32 entries) {
  return std::size_t{entries} * Mlx5::kReceiveParts * sizeof(Word16);
}

u32 send_blocks(u32 requests, u32 inline_bytes) {
  const u32 inlined = std::min(inline_bytes, Mlx5::kMaxInline);
  return std::min(ring_of(Mlx5::sq_units(std::max(requests, 1u), inlined)), Mlx5::kMaxSqUnits);
}

roce::WrOpcode opcode_of(Op op) {
  switch (op) {
    case Op::write:
      return roce::WrOpcode::write;
    case Op::write_imm:
      return roce::WrOpcode::write_immediate;
    case Op::read:
      return roce::WrOpcode::read;
    case Op::send:
      return roce::WrOpcode::send;
    case Op::send_imm:
      return roce::WrOpcode::send_immediate;
    case Op::fetch_add:
      return roce::WrOpcode::fetch_add;
    case Op::compare_swap:
      break;
  }
  return roce::WrOpcode::compare_swap;
}

Op op_of(roce::WcOpcode opcode) {
  switch (opcode) {
    case roce::WcOpcode::write:
      return Op::write;
    case roce::WcOpcode::read:
      return Op::read;
    case roce::WcOpcode::compare_swap:
      return Op::compare_swap;
    case roce::WcOpcode::fetch_add:
      return Op::fetch_add;
    case roce::WcOpcode::receive_write_immediate:
      return Op::write_imm;
    default:
      return Op::send;
  }
}

/// The SGEs of a decoded WQE, as the NIC takes them.
struct Sges {
  std::array<roce::Sge, DecodedWqe::kMaxSges> list;
  u32 count = 0;
  explicit Sges(const DecodedWqe& d) : count(d.sges) {
    for (u32 i = 0; i < count; ++i)
      list[i] = {.address = d.sge[i].address, .length = d.sge[i].bytes, .key = d.sge[i].lkey};
  }
  [[nodiscard]] std::span<const roce::Sge> span() const { return {list.data(), count}; }
};

}  // namespace

RingPages::RingPages(std::size_t bytes) : bytes_(pages(bytes)) {
  void* const p = ::mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (p == MAP_FAILED) throw std::bad_alloc();
  data_ = static_cast<u8*>(p);
}
RingPages::~RingPages() {
  ::munmap(data_, bytes_);
}

// In memory: the register page, the page of the record, the send ring, the receive ring.
Mlx5QueueRings::Mlx5QueueRings(roce::QueuePair& queue, u32 send_requests, u32 receive_requests,
                               u32 inline_bytes)
    : queue_(queue),
      pages_(2 * kPage + pages(send_bytes(send_blocks(send_requests, inline_bytes))) +
             pages(receive_bytes(ring_of(receive_requests)))) {
  layout_.send_blocks = send_blocks(send_requests, inline_bytes);
  layout_.receive_entries = ring_of(receive_requests);
  layout_.doorbell = reinterpret_cast<u64*>(pages_.data());
  layout_.record = reinterpret_cast<u32*>(pages_.data() + kPage);
  layout_.send = reinterpret_cast<Word16*>(pages_.data() + 2 * kPage);
  layout_.receive =
      reinterpret_cast<Word16*>(pages_.data() + 2 * kPage + pages(send_bytes(layout_.send_blocks)));
  reset();
}

void Mlx5QueueRings::reset() {
  store_release(&layout_.record[0], 0);
  store_release(&layout_.record[1], 0);
  store64_release(layout_.doorbell, 0);
  sends_ = {};
  sends_.at.units = sends_.capacity = layout_.send_blocks;
  sends_.record = layout_.record;
  sends_.doorbell = layout_.doorbell;
  receives_ = {};
  receives_.at.units = receives_.capacity = layout_.receive_entries;
  receives_.record = layout_.record;
}

bool Mlx5QueueRings::serve() {
  const bool received = serve_receives();
  return serve_sends() || received;
}

bool Mlx5QueueRings::serve_sends() {
  // The doorbell is taken by an exchange, so one that is rung meanwhile is seen in the next round. The
  // acquire orders it before the load of the record, which its writer has stored before.
  if (std::atomic_ref(*layout_.doorbell).load(std::memory_order_relaxed) != 0 &&
      std::atomic_ref(*layout_.doorbell).exchange(0, std::memory_order_acquire) != 0) {
    const auto update = sends_.announce(Indices<Mlx5>::kSend, Indices<Mlx5>::send(layout_.record, {}, 0));
    if (update == WorkRing::Update::invalid)
      queue_.fail(sends_.at.running & 0xFFFF, roce::Status::local_operation);
  }
  bool any = false;
  while (sends_.announced != 0) {
    const u32 first = sends_.at.slot * Mlx5::kUnitParts;
    const u32 parts = layout_.send_blocks * Mlx5::kUnitParts;
    const DecodedWqe wqe = Mlx5::decode_wqe({layout_.send, parts, first}, sends_.at.pass);
    if (!wqe.valid || wqe.units > sends_.announced || !Indices<Mlx5>::claims(wqe, sends_.at)) {
      queue_.fail(sends_.at.running & 0xFFFF, roce::Status::local_operation);
      sends_.announced = 0;
      return true;
    }
    if (!post(wqe, first)) break;
    sends_.take(wqe.units);
    any = true;
  }
  return any;
}

bool Mlx5QueueRings::post(const DecodedWqe& wqe, u32 first_part) {
  const WorkRequest& wr = wqe.request;
  roce::SendRequest request;
  request.id = sends_.at.running & 0xFFFF;
  request.opcode = opcode_of(wr.op);
  request.flags = static_cast<u8>((wr.signalled ? roce::kSignaled : 0) | (wr.fence ? roce::kFence : 0) |
                                  (wr.solicited ? roce::kSolicited : 0) | (wr.inlined ? roce::kInline : 0));
  request.immediate_or_key = be32(wr.imm);
  request.remote_address = wr.remote;
  request.remote_key = wr.rkey;
  request.compare_or_add = wr.op == Op::compare_swap ? wr.compare : wr.operand;
  request.swap = wr.operand;
  if (!wr.inlined) return queue_.post(request, Sges(wqe).span()) == 0;
  // An inlined payload may wrap around the ring's end.
  std::array<u8, 1024> payload;
  const std::size_t ring_bytes = send_bytes(layout_.send_blocks);
  const std::size_t begin =
      ((first_part + wqe.inline_part) * sizeof(Word16) + wqe.inline_offset) % ring_bytes;
  const std::size_t before_end = std::min<std::size_t>(wr.bytes, ring_bytes - begin);
  const u8* const ring = reinterpret_cast<const u8*>(layout_.send);
  std::memcpy(payload.data(), ring + begin, before_end);
  std::memcpy(payload.data() + before_end, ring, wr.bytes - before_end);
  const roce::Sge inlined{.address = reinterpret_cast<u64>(payload.data()), .length = wr.bytes, .key = 0};
  return queue_.post(request, {&inlined, 1}) == 0;
}

bool Mlx5QueueRings::serve_receives() {
  (void)receives_.announce(Indices<Mlx5>::kReceive, Indices<Mlx5>::receive(layout_.record, {}, 0));
  bool any = false;
  while (receives_.announced != 0) {
    const DecodedWqe wqe =
        Mlx5::decode_receive({layout_.receive, layout_.receive_entries, receives_.at.slot});
    const u64 id = receives_.at.running & 0xFFFF;
    if (!wqe.valid) {
      queue_.fail(id, roce::Status::local_operation);
      receives_.announced = 0;
      return true;
    }
    if (queue_.post_receive(id, Sges(wqe).span()) != 0) break;
    receives_.take(1);
    any = true;
  }
  return any;
}

// In memory: the page of the record, then the entries.
Mlx5CompletionRing::Mlx5CompletionRing(roce::CompletionQueue& queue)
    : queue_(queue),
      pages_(kPage + std::size_t{std::min(ring_of(queue.entries() + 1), kMostCqes)} * Mlx5::kCqeParts *
                         sizeof(Word16)) {
  layout_.record = reinterpret_cast<u32*>(pages_.data());
  layout_.entries = reinterpret_cast<Word16*>(pages_.data() + kPage);
  layout_.count = std::min(ring_of(queue.entries() + 1), kMostCqes);
  at_.units = consumed_.units = layout_.count;
  for (u32 i = 0; i < layout_.count; ++i)
    for (u32 part = 0; part < Mlx5::kCqeParts; ++part)
      layout_.entries[i * Mlx5::kCqeParts + part] = Mlx5::cqe_initial(part);
}

bool Mlx5CompletionRing::serve() {
  const std::lock_guard lock(mutex_);
  const u32 taken =
      distance(consumed_, Indices<Mlx5>::kConsumer, Indices<Mlx5>::consumer(layout_.record, {}, 0));
  const u32 held = at_.running - consumed_.running;
  // A consumer that claims more than there is has not taken anything.
  if (taken <= held) consumed_ = advance(consumed_, 1, taken, 0);
  std::array<roce::Completion, 16> burst;
  bool any = false;
  while (true) {
    const u32 room = layout_.count - 1 - (at_.running - consumed_.running);
    const std::size_t got = queue_.poll({burst.data(), std::min<std::size_t>(room, burst.size())});
    if (got == 0) return any;
    any = true;
    for (std::size_t i = 0; i < got; ++i) {
      const roce::Completion& c = burst[i];
      CqeFields f;
      f.op = op_of(c.opcode);
      f.qpn = c.queue_pair;
      f.source_qpn = c.source_queue_pair;
      f.completion.status = static_cast<Status>(c.status);
      f.completion.receive = c.opcode >= roce::WcOpcode::receive;
      f.completion.with_imm = (c.flags & roce::kHasImmediate) != 0;
      f.completion.mark = static_cast<u32>(c.id) & 0xFFFF;
      f.completion.bytes = c.bytes;
      f.completion.imm = be32(c.immediate_or_key);
      f.completion.vendor_error = c.vendor_error;
      Mlx5::encode_cqe(f, at_.pass, layout_.entries + at_.slot * Mlx5::kCqeParts);
      at_ = advance(at_, 1, 1, 0);
    }
  }
}

}  // namespace doorbell::dropin
