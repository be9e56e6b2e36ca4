// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "rdma/model/queue_pair.hpp"

#include <doorbell/error.hpp>
#include <doorbell/rdma/format.hpp>
#include <fmt/format.h>

namespace doorbell::rdma {

namespace {

constexpr u64 kLine = 64;  // records and doorbells of different queues share no cache line
constexpr u32 kHighestHandle =
    0xffffff;  // handles count down from here, so that none is the queue pair's number
constexpr u32 kStagedParts = 4096 / sizeof(Word16) + 256;
constexpr u32 kStagedReceives = 64;

std::string subject(const Qp& q) {
  return fmt::format("queue pair {:#x} of the model NIC", q.qpn);
}

void check_connection(const ConnectionOptions& o) {
  const auto refuse = [](const char* what, u32 value, u32 max) {
    throw Error(what, fmt::format("{} is not in 0..{}", value, max));
  };
  if (o.timeout > 31) refuse("acknowledgement time-out", o.timeout, 31);
  if (o.retry_count > 7) refuse("retry count", o.retry_count, 7);
  if (o.rnr_retry > 7) refuse("RNR retry count", o.rnr_retry, 7);
  if (o.min_rnr_timer > 31) refuse("minimum RNR timer", o.min_rnr_timer, 31);
  if (o.max_rd_atomic > 255) refuse("outstanding reads and atomics", o.max_rd_atomic, 255);
  if ((o.access & ~access::all) != 0) throw Error("access of a queue pair", "an unknown flag is set");
}

u32 checked_mtu(u32 wanted, u32 own, u32 peer) {
  const u32 most = std::min(own, peer);
  const u32 mtu = wanted == 0 ? most : wanted;
  if (mtu < 256 || mtu > most || (mtu & (mtu - 1)) != 0)
    throw Error("path MTU", fmt::format("{} is not one of 256, 512, ... {}", mtu, most));
  return mtu;
}

}  // namespace

std::string_view name(QpState s) {
  constexpr std::array<std::string_view, 7> names = {"RESET", "INIT", "RTR", "RTS", "SQD", "SQE", "ERR"};
  return names[static_cast<u32>(s)];
}

ModelQueuePair::ModelQueuePair(ModelNic& nic, const QueuePairShape& shape)
    : nic_(nic), shape_(shape), layout_(layout_of(nic.format_, shape)) {
  rings_ = Mapped(nic.space_, shape.queue_memory, layout_.bytes, Access::read_write, nic.gpu_);
  records_ = Mapped(nic.space_, nic.words_place(), ModelNic::kRecordBytes, Access::read_write, nic.gpu_);
  make_room_for_late();
  registers_ = nic.claim_registers();
  qp_.qpn = nic.new_qpn();
  qp_.ordinal = nic.created_++;
  qp_.signal_all = shape.signal_all;
  if (shape.queue_memory == Place::gpu) {
    staged_.resize(kStagedParts);
    staged_receives_.resize(u64{kStagedReceives} * nic.format_.receive_parts);
    qp_.staged = staged_.data();
    qp_.staged_receives = staged_receives_.data();
  }
  qp_.shown_state = shown_state(nic_.reach(nic_.registers_));
  qp_.enter(QpState::reset);
  try {
    set_up_rings();
    clear_rings();
  } catch (...) {
    nic.release_registers(registers_.slot);
    throw;
  }
}

ModelQueuePair::~ModelQueuePair() {
  const std::scoped_lock lock(nic_.mutex_);
  engine().run_between_rounds([this] { engine().remove(qp_); });
  if (counted_) --nic_.connected_[engine_];
  nic_.queue_pairs_.erase(qp_.qpn);
  nic_.release_registers(registers_.slot);
}

/// Only a fault or a link with a limit makes a completion late. Each request can be completed twice.
void ModelQueuePair::make_room_for_late() {
  if (!nic_.shared_.faults.active() && !nic_.shared_.link.limited()) return;
  const u32 sends = 2 * layout_.cq_entries, receives = 2 * layout_.recv_cq_entries;
  late_ = nic_.allocate_own(u64{sends + receives} * sizeof(LateCompletion));
  auto* const entries = reinterpret_cast<LateCompletion*>(nic_.reach(late_));
  qp_.late = {.entries = entries, .room = sends};
  qp_.late_receives = {.entries = entries + sends, .room = receives};
}

u32* ModelQueuePair::shown_state(u8* registers) const {
  return reinterpret_cast<u32*>(registers + registers_.offset + ModelNic::kStateLine * kLine);
}

QpState ModelQueuePair::state() const {
  return static_cast<QpState>(load_acquire(shown_state(nic_.registers_.host())));
}

EngineBase& ModelQueuePair::engine() const {
  return *nic_.engines_[engine_];
}

QueuePairMemory ModelQueuePair::addresses(bool on_gpu) const {
  const auto of = [on_gpu](const Region& r) { return on_gpu ? r.device() : r.host(); };
  QueuePairMemory m;
  if (u8* const rings = of(rings_.region()); rings != nullptr) {
    const auto ring = [rings](u64 offset) { return reinterpret_cast<Word16*>(rings + offset); };
    m.sq = ring(0);
    if (nic_.format_.has_table) m.sq_table = reinterpret_cast<u64*>(rings + layout_.table);
    m.rq = ring(layout_.rq);
    m.cq = ring(layout_.cq);
    m.recv_cq = ring(layout_.recv_cq);
  }
  if (u8* const records = of(records_.region()); records != nullptr) {
    const auto record = [records](u32 line) { return reinterpret_cast<u32*>(records + line * kLine); };
    m.qp_record = record(0);
    m.cq_record = record(1);
    m.recv_cq_record = record(2);
  }
  if (u8* const registers = of(nic_.doorbells()); registers != nullptr) {
    const auto word = [at = registers + registers_.offset](u32 line) {
      return reinterpret_cast<u64*>(at + line * kLine);
    };
    m.sq_doorbell = word(0);
    m.rq_doorbell = word(1);
    m.cq_doorbell = word(2);
    m.recv_cq_doorbell = word(3);
  }
  m.sq_units = layout_.sq_units;
  m.sq_requests = shape_.sq_requests;
  m.rq_entries = layout_.rq_entries;
  m.cq_entries = layout_.cq_entries;
  m.recv_cq_entries = layout_.recv_cq_entries;
  m.track_entries = layout_.track_entries;
  m.qpn = qp_.qpn;
  m.handle = kHighestHandle - qp_.qpn;
  m.cqn = 2 * qp_.qpn;
  m.recv_cqn = 2 * qp_.qpn + 1;
  m.mtu = qp_.mtu;
  m.max_inline = shape_.max_inline;
  return m;
}

QueuePairMemory ModelQueuePair::memory(Initiator initiator) {
  // While another thread asks for counts, a kernel's image of the queue pair comes to the host.
  const std::scoped_lock lock(nic_.mutex_);
  const bool on_gpu = initiator == Initiator::gpu;
  QueuePairMemory m = addresses(on_gpu);
  if (m.sq == nullptr || m.qp_record == nullptr || m.sq_doorbell == nullptr)
    throw Error(
        subject(qp_),
        on_gpu ? "a GPU cannot reach its queues" : "a CPU cannot reach queues, or doorbells, in GPU memory",
        on_gpu ? "open the device with a GPU"
               : "create them in host memory, on a NIC that CPU threads serve");
  const Place place = on_gpu ? Place::gpu : Place::pageable;
  if (track_.bytes() == 0 || track_.place() != place)
    track_ = Region(place, u64{m.track_entries} * sizeof(Word16), nic_.gpu_);
  m.track = reinterpret_cast<Word16*>(on_gpu ? track_.device() : track_.host());
  return m;
}

void ModelQueuePair::set_up_rings() {
  const FormatShape& f = nic_.format_;
  qp_.device_memory = addresses(nic_.served_by_gpu());
  const QueuePairMemory& m = qp_.device_memory;
  const Iova iova = rings_.iova();
  const auto at = [](u32 units) {
    RingPosition p;
    p.units = units;
    return p;
  };
  qp_.sq = {.memory = {m.sq, iova},
            .at = at(m.sq_units),
            .marks = f.mark_modulo(m),
            .capacity = m.sq_units - f.sq_hole,
            .doorbell = m.sq_doorbell,
            .record = m.qp_record};
  qp_.rq = {.memory = {m.rq, iova + layout_.rq},
            .at = at(m.rq_entries),
            .capacity = m.rq_entries - f.rq_hole,
            .doorbell = m.rq_doorbell,
            .record = m.qp_record};
  qp_.cq = {.memory = {m.cq, iova + layout_.cq},
            .at = at(m.cq_entries),
            .consumed = at(m.cq_entries),
            .capacity = m.cq_entries - f.cq_hole,
            .doorbell = m.cq_doorbell,
            .record = m.cq_record,
            .number = m.cqn};
  qp_.recv_cq = {.memory = {const_cast<Word16*>(m.recv_cq), iova + layout_.recv_cq},
                 .at = at(m.recv_cq_entries),
                 .consumed = at(m.recv_cq_entries),
                 .capacity = m.recv_cq_entries - f.cq_hole,
                 .doorbell = m.recv_cq_doorbell,
                 .record = m.recv_cq_record,
                 .number = m.recv_cqn};
}

void ModelQueuePair::clear_rings() {
  const FormatShape& f = nic_.format_;
  std::vector<Word16> initial(layout_.bytes / sizeof(Word16), Word16{});
  const auto fill = [&](u64 offset, u32 entries) {
    Word16* at = initial.data() + offset / sizeof(Word16);
    for (u32 i = 0; i < entries; ++i)
      for (u32 part = 0; part < f.cqe_parts; ++part) *at++ = f.cqe_initial(part);
  };
  fill(layout_.cq, layout_.cq_entries);
  fill(layout_.recv_cq, layout_.recv_cq_entries);
  rings_.region().write(0, initial.data(), layout_.bytes);
  const std::vector<u8> zeros(ModelNic::kRecordBytes);
  records_.region().write(0, zeros.data(), ModelNic::kRecordBytes);
  nic_.doorbells().write(registers_.offset, zeros.data(), ModelNic::kStateLine * kLine);
}

/// Sets everything as in a new queue pair, in state RESET. Runs on the engine's thread.
void ModelQueuePair::start_over() {
  qp_.enter(QpState::error);  // until all below is done
  qp_.late.clear();
  qp_.late_receives.clear();
  qp_.next_request();
  qp_.reads_outstanding = 0;
  qp_.flush_reported = false;
  qp_.staged_units = qp_.receives_left = qp_.receives_taken = 0;
  qp_.remote_qpn = 0;
  engine().link(qp_);
  set_up_rings();
  clear_rings();
}

void ModelQueuePair::change(QpState to, const std::function<void()>& also) {
  if (!legal(state(), to))
    throw Error(subject(qp_), fmt::format("it cannot go from {} to {}", rdma::name(state()), rdma::name(to)));
  engine().run_between_rounds([&] {
    if (also) also();
    qp_.enter(to);
  });
}

QueuePairAddress ModelQueuePair::address() const {
  const std::scoped_lock lock(nic_.mutex_);
  return {.qpn = qp_.qpn, .psn = 0, .lid = 0, .mtu = nic_.config().mtu, .gid = {}};
}

void ModelQueuePair::initialise(const ConnectionOptions& options) {
  check_connection(options);
  const std::scoped_lock lock(nic_.mutex_);
  change(QpState::init, [&] { qp_.options = options; });
}

void ModelQueuePair::connect(const QueuePairAddress& peer, const ConnectionOptions& options) {
  check_connection(options);
  const u32 mtu = checked_mtu(options.mtu, nic_.config().mtu, peer.mtu);
  if (peer.qpn == 0 || peer.qpn > 0xffffff)
    throw Error(subject(qp_), fmt::format("{:#x} is no queue pair's number", peer.qpn));
  const std::scoped_lock lock(nic_.mutex_);
  if (state() != QpState::init)
    throw Error(subject(qp_), fmt::format("it is in state {}, not INIT", rdma::name(state())),
                "call initialise() first");
  nic_.place(*this, peer.qpn);
  change(QpState::rtr, [&] {
    qp_.options = options;
    qp_.mtu = mtu;
    qp_.device_memory.mtu = mtu;
    qp_.remote_qpn = peer.qpn;
    engine().link(qp_);
  });
  change(QpState::rts);
}

void ModelQueuePair::reset() {
  const std::scoped_lock lock(nic_.mutex_);
  if (counted_) --nic_.connected_[engine_];
  counted_ = false;
  change(QpState::reset, [this] { start_over(); });
}

void ModelQueuePair::fail() {
  const std::scoped_lock lock(nic_.mutex_);
  change(QpState::error);
}

void ModelQueuePair::drain() {
  const std::scoped_lock lock(nic_.mutex_);
  change(QpState::sqd);
}

void ModelQueuePair::resume() {
  const std::scoped_lock lock(nic_.mutex_);
  if (state() != QpState::sqd)
    throw Error(subject(qp_), fmt::format("it is in state {}, not SQD", rdma::name(state())));
  change(QpState::rts);
}

}  // namespace doorbell::rdma
