// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// A driver that checks nothing: any bytes into any queue, any value into any doorbell, of any
// ControllerInterface. The library's own Controller refuses most of what a conformance test must do.
#pragma once

#include <doorbell/address_space.hpp>
#include <doorbell/nvme/wire.hpp>

#include <atomic>
#include <cstring>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "eventually.hpp"
#include "nvme/controller_interface.hpp"

namespace doorbell::nvme::testing_raw {

using test::eventually;

/// A submission and a completion ring of sizes of their own, and where their doorbells are.
class RawQueue {
 public:
  RawQueue(ControllerInterface& interface, u32 stride, u16 qid, u16 cqid, u32 sq_entries, u32 cq_entries)
      : interface_(&interface),
        sq_entries_(sq_entries),
        cq_entries_(cq_entries),
        qid_(qid),
        sq_(interface.address_space(), Place::pageable, u64{sq_entries} * kSqeBytes, Access::read),
        cq_(interface.address_space(), Place::pageable, u64{cq_entries} * kCqeBytes, Access::write),
        sq_doorbell_(interface.cpu_register(sq_doorbell_offset(qid, stride))),
        cq_doorbell_(interface.cpu_register(cq_doorbell_offset(cqid, stride))) {}

  [[nodiscard]] u16 qid() const { return qid_; }
  [[nodiscard]] Iova sq_iova() const { return sq_.iova(); }
  [[nodiscard]] Iova cq_iova() const { return cq_.iova(); }
  [[nodiscard]] u32 sq_entries() const { return sq_entries_; }
  [[nodiscard]] u32 cq_entries() const { return cq_entries_; }
  [[nodiscard]] u32 tail() const { return tail_; }
  [[nodiscard]] u32 head() const { return head_; }
  [[nodiscard]] u32* sq_doorbell() { return sq_doorbell_; }
  [[nodiscard]] u32* cq_doorbell() { return cq_doorbell_; }

  /// Writes an entry behind the tail; nothing is announced.
  void put(const Sqe& e) {
    std::memcpy(sq_.region().host() + u64{tail_} * kSqeBytes, &e, sizeof e);
    tail_ = (tail_ + 1) % sq_entries_;
  }
  void ring() { store_release(sq_doorbell_, tail_); }
  void ring_value(u32 value) { store_release(sq_doorbell_, value); }
  void submit(const Sqe& e) {
    put(e);
    ring();
  }

  /// The entry at ring position `at` as it lies in memory.
  [[nodiscard]] Cqe peek(u32 at) const {
    return decode_cqe(load16_acquire(reinterpret_cast<const Word16*>(cq_.region().host()) + at));
  }
  /// The next new completion, if there is one. Does not ring.
  [[nodiscard]] std::optional<Cqe> take() {
    const Cqe e = peek(head_);
    if ((e.status & 1u) != phase_) return {};
    if (++head_ == cq_entries_) {
      head_ = 0;
      phase_ ^= 1;
    }
    return e;
  }
  /// Waits for the next completion; throws when none comes. Rings the head doorbell unless told not to.
  Cqe wait(bool give_back = true) {
    std::optional<Cqe> e;
    if (!eventually([&] { return (e = take()).has_value(); }))
      throw std::runtime_error(
          "no completion; the doorbells are " + std::to_string(load_acquire(sq_doorbell_)) + " and " +
          std::to_string(load_acquire(cq_doorbell_)) + "; " + interface_->counters().dump());
    if (give_back) ring_cq();
    return *e;
  }
  void ring_cq() { store_release(cq_doorbell_, head_); }
  void ring_cq_value(u32 value) { store_release(cq_doorbell_, value); }
  /// Back to the state of zeroed memory: for the same rings after a reset.
  void start_over() {
    std::memset(sq_.region().host(), 0, sq_.region().bytes());
    std::memset(cq_.region().host(), 0, cq_.region().bytes());
    tail_ = head_ = 0;
    phase_ = 1;
  }

 private:
  ControllerInterface* interface_;
  u32 sq_entries_;
  u32 cq_entries_;
  u16 qid_;
  Mapped sq_;
  Mapped cq_;
  u32* sq_doorbell_;
  u32* cq_doorbell_;
  u32 tail_ = 0;
  u32 head_ = 0;
  u32 phase_ = 1;
};

/// A controller taken over from reset.
class RawController {
 public:
  explicit RawController(std::unique_ptr<ControllerInterface> interface) : interface_(std::move(interface)) {
    cap_ = Capabilities{interface_->read64(reg::cap)};
    disable();
  }
  ~RawController() {
    try {
      disable();  // before the queues' memory goes
    } catch (const std::exception&) {
      // A device that is gone uses no memory.
    }
  }
  RawController(const RawController&) = delete;
  RawController& operator=(const RawController&) = delete;

  [[nodiscard]] ControllerInterface& interface() { return *interface_; }
  [[nodiscard]] const Capabilities& cap() const { return cap_; }
  [[nodiscard]] u32 csts() {
    const u32 value = interface_->read32(reg::csts);
    if (value == ~0u) throw std::runtime_error("the device is gone: " + interface_->counters().dump());
    return value;
  }

  void disable() {
    interface_->write32(reg::cc, interface_->read32(reg::cc) & ~cc::enable);
    if (!eventually([&] { return (csts() & csts::ready) == 0; })) throw std::runtime_error("RDY stays 1");
  }
  static constexpr u32 kUsual = cc::enable | 6u << cc::iosqes_shift | 4u << cc::iocqes_shift;
  /// Writes the admin queue registers and CC as they are given.
  void write_enable(u32 sq_entries, u32 cq_entries, Iova asq, Iova acq, u32 cc_value = kUsual) {
    interface_->write32(reg::aqa, (cq_entries - 1) << 16 | (sq_entries - 1));
    interface_->write64(reg::asq, asq);
    interface_->write64(reg::acq, acq);
    interface_->write32(reg::cc, cc_value);
  }
  /// With admin queues of these sizes.
  void enable(u32 sq_entries = 32, u32 cq_entries = 32) {
    admin_ = queue(0, sq_entries, cq_entries);
    write_enable(sq_entries, cq_entries, admin_->sq_iova(), admin_->cq_iova());
    if (!eventually([&] { return (csts() & (csts::ready | csts::fatal)) != 0; }) ||
        (csts() & csts::fatal) != 0)
      throw std::runtime_error("the controller does not become ready");
  }

  [[nodiscard]] RawQueue& admin() { return *admin_; }
  /// One admin command and its completion. `cid` is filled in.
  Cqe run(Sqe e) {
    e.cid = ++cid_;
    admin_->submit(e);
    std::optional<Cqe> taken;
    if (!eventually(
            [&] { return (taken = admin_->take()).has_value() || (++looks_ % 4096 == 0 && csts() == 0); }) ||
        !taken)
      throw std::runtime_error("no admin completion");
    admin_->ring_cq();
    const Cqe c = *taken;
    if (c.cid != e.cid) throw std::runtime_error("an admin completion with another cid");
    return c;
  }
  [[nodiscard]] u16 status(const Sqe& e) { return status_of(run(e)).type_and_code(); }

  /// Queue memory for a pair; not created on the controller yet. Like all memory handed out here it
  /// stays until the controller has been disabled.
  [[nodiscard]] RawQueue* queue(u16 qid, u32 sq_entries, u32 cq_entries, u16 cqid = 0) {
    queues_.push_back(std::make_unique<RawQueue>(*interface_, cap_.stride(), qid, cqid == 0 ? qid : cqid,
                                                 sq_entries, cq_entries));
    return queues_.back().get();
  }
  /// A working pair.
  [[nodiscard]] RawQueue* create(u16 qid, u32 sq_entries = 64, u32 cq_entries = 64) {
    RawQueue* const q = queue(qid, sq_entries, cq_entries);
    if (status(create_cq_command(0, qid, cq_entries, q->cq_iova())) != 0)
      throw std::runtime_error("Create CQ failed");
    if (status(create_sq_command(0, qid, qid, sq_entries, q->sq_iova())) != 0)
      throw std::runtime_error("Create SQ failed");
    return q;
  }
  [[nodiscard]] Mapped& memory(u64 bytes, Access access = Access::read_write) {
    memory_.push_back(std::make_unique<Mapped>(interface_->address_space(), Place::pageable, bytes, access));
    return *memory_.back();
  }

 private:
  std::unique_ptr<ControllerInterface> interface_;
  Capabilities cap_;
  RawQueue* admin_ = nullptr;
  std::vector<std::unique_ptr<RawQueue>> queues_;
  std::vector<std::unique_ptr<Mapped>> memory_;
  u16 cid_ = 0x100;
  u32 looks_ = 0;
};

}  // namespace doorbell::nvme::testing_raw
