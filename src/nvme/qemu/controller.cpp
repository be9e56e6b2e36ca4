// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "nvme/qemu/controller.hpp"

#include <doorbell/error.hpp>
#include <doorbell/memory_order.hpp>
#include <doorbell/nvme/wire.hpp>
#include <fcntl.h>
#include <fmt/format.h>
#include <pthread.h>

#include <algorithm>
#include <chrono>
#include <cstring>

#include "nvme/foreign_data.hpp"
#include "system/clock.hpp"
#include "system/open_file.hpp"
#include "system/thread.hpp"

namespace doorbell::nvme {

namespace {

constexpr u64 kBar = 0xe0'0000'0000;  // far from every address of this process
constexpr u64 kBarBytes = 16384;
constexpr u32 kPciCommand = 4, kPciBar0 = 0x10;
constexpr u32 kMemoryAndBusMaster = 6;
constexpr u32 kNvmeId = 0x0010'1b36;
constexpr u32 kPairsMost = 65;       // the admin queue and 64 more
constexpr u64 kLookNs = 10'000'000;  // how often CSTS is looked at
constexpr u64 kSpinNs = 2'000'000;   // without a doorbell for this long the thread naps
// For an answer of QEMU, or a round of its main loop. A process that others share the processor with may take
// a good part of a second.
constexpr double kLeastTimeoutS = 1, kMostTimeoutS = 10;
constexpr auto kNap = std::chrono::microseconds(50);

}  // namespace

QemuController::QemuController(const QemuConfig& config, std::string name, std::shared_ptr<gpu::Gpu> gpu,
                               double timeout_s)
    : config_(config),
      timeout_s_(std::clamp(timeout_s, kLeastTimeoutS, kMostTimeoutS)),
      name_(std::move(name)),
      process_(config),
      link_(process_.take_socket(), timeout_s_),
      words_(Place::pageable, kBarBytes, std::move(gpu)),
      forwarded_(2 * kPairsMost) {
  link_.share_memory(memory_.fd(), reinterpret_cast<u64>(memory_.base()), memory_.bytes());
  const u32 id = link_.read_config(0, 4);
  if (link_.gone()) process_.refuse_ended(name_);
  if (id != kNvmeId)
    throw Error(name_,
                fmt::format("the remote device is {:08x}, not QEMU's NVMe controller {:08x}", id, kNvmeId),
                "this QEMU's private protocol may have changed");
  link_.write_config(kPciBar0, static_cast<u32>(kBar), 4);
  link_.write_config(kPciBar0 + 4, static_cast<u32>(kBar >> 32), 4);
  link_.write_config(kPciCommand, kMemoryAndBusMaster, 2);
  if (Capabilities{read64(reg::cap)}.stride() != 0)
    throw Error(name_, "its doorbells are not 4 bytes apart", "this QEMU is not one that doorbell knows");
  (void)read32(reg::csts);
  thread_ = make_thread("doorbell thread of " + name_, [this] { run(); });
}

QemuController::~QemuController() {
  {
    const std::scoped_lock lock(sweep_);
    stop_ = true;
  }
  wake_.notify_one();
  if (thread_.joinable()) thread_.join();
}

u32 QemuController::read32(u32 offset) {
  const auto value = static_cast<u32>(link_.read(kBar + offset, 4));
  if (offset == reg::csts) store_release(word(offset), value);
  return value;
}

u64 QemuController::read64(u32 offset) {
  return link_.read(kBar + offset, 8);
}

void QemuController::write32(u32 offset, u32 value) {
  if (offset == reg::aqa) {
    const std::scoped_lock lock(admin_mutex_);
    admin_entries_ = (value & 0xfff) + 1;
  }
  if (offset == reg::cc && (value & cc::enable) == 0) {
    start_over();
    let_fetch();
  }
  link_.write(kBar + offset, value);
}

void QemuController::write64(u32 offset, u64 value) {
  if (offset == reg::asq) {
    const std::scoped_lock lock(admin_mutex_);
    asq_ = value;
  }
  link_.write(kBar + offset, static_cast<u32>(value));
  link_.write(kBar + offset + 4, static_cast<u32>(value >> 32));
}

void QemuController::check_register(u64 offset) const {
  if (offset % 4 != 0 || offset > kBarBytes - 4)
    throw Error(name_, fmt::format("register {:#x} is outside its BAR of {} bytes", offset, kBarBytes));
}

u32* QemuController::cpu_register(u64 offset) {
  check_register(offset);
  return word(offset);
}

u32* QemuController::gpu_register(u64 offset) {
  check_register(offset);
  return words_.device() == nullptr ? nullptr : reinterpret_cast<u32*>(words_.device() + offset);
}

std::string QemuController::image() const {
  if (config_.media != QemuConfig::Media::drive) return {};
  return open_file(config_.drive, O_RDONLY, FileKinds::regular) ? config_.drive : std::string();
}

bool QemuController::scratch() const {
  if (config_.media != QemuConfig::Media::drive) return true;
  const Opened file = open_file(config_.drive, O_RDONLY, FileKinds::regular);
  return file && !holds_foreign_data(file.fd.get());
}

nlohmann::ordered_json QemuController::counters() {
  nlohmann::ordered_json all = {
      {"messages", link_.messages()},
      {"doorbell_thread_cpu_s", static_cast<double>(thread_cpu_ns(thread_)) * 1e-9}};
  if (link_.gone()) all["last_words"] = process_.last_words();
  return all;
}

/// A reset takes all doorbells back to 0. The sweep must not carry on with a value from before.
void QemuController::start_over() {
  const std::scoped_lock lock(sweep_, admin_mutex_);
  for (u32 i = 0; i < forwarded_.size(); ++i) {
    forwarded_[i].store(0, std::memory_order_relaxed);
    store_relaxed(word(reg::doorbells + 4ull * i), 0);
  }
  admin_seen_ = 0;
  pairs_.store(1, std::memory_order_relaxed);
}

/// Lets QEMU fetch what has been rung. A command that it fetches while a reset drains the drive is parked,
/// and goes on after the reset has freed its queue: QEMU 7.2 then ends by SIGSEGV. The read returns after the
/// doorbell's message has been taken, which only schedules the fetching; the main loop's next round does it.
void QemuController::let_fetch() {
  (void)link_.read(kBar + reg::csts, 4);
  if (!link_.gone()) process_.await_round(timeout_s_);
}

/// The doorbells of a queue that is being created start at 0, whatever an earlier queue of its number left
/// there: a first ring of the same value has to be told from no ring.
void QemuController::see_created_queues(u32 tail) {
  const std::scoped_lock lock(admin_mutex_);
  if (admin_entries_ == 0 || tail >= admin_entries_ || !memory_.holds(asq_, u64{admin_entries_} * kSqeBytes))
    return;
  for (; admin_seen_ != tail; admin_seen_ = (admin_seen_ + 1) % admin_entries_) {
    Sqe e;
    std::memcpy(static_cast<void*>(&e), reinterpret_cast<const u8*>(asq_) + u64{admin_seen_} * kSqeBytes,
                sizeof e);
    const bool sq = e.opcode == static_cast<u8>(AdminOpcode::create_sq);
    if (!sq && e.opcode != static_cast<u8>(AdminOpcode::create_cq)) continue;
    const u32 qid = e.cdw10 & 0xffff;
    if (qid == 0 || qid >= kPairsMost) continue;
    const u32 index = 2 * qid + (sq ? 0 : 1);
    forwarded_[index].store(0, std::memory_order_relaxed);
    store_relaxed(word(reg::doorbells + 4ull * index), 0);
    pairs_.store(std::max(pairs_.load(std::memory_order_relaxed), qid + 1), std::memory_order_release);
  }
}

bool QemuController::forward_word(u32 index) {
  // The acquire orders what the initiator wrote before it rang ahead of the message, which the kernel
  // hands to QEMU's thread after it.
  const u32 value = load_acquire(word(reg::doorbells + 4ull * index));
  if (value == forwarded_[index].load(std::memory_order_relaxed)) return false;
  if (index == 0) see_created_queues(value);
  forwarded_[index].store(value, std::memory_order_relaxed);
  link_.post_write(kBar + reg::doorbells + 4ull * index, value);
  return true;
}

bool QemuController::forward_pair(u16 qid) {
  const bool sq = forward_word(2u * qid);
  return forward_word(2u * qid + 1) || sq;
}

void QemuController::forward(u16 qid) {
  (void)forward_pair(qid);
  look_at_status();
}

void QemuController::by_initiator(bool on) {
  // The thread must not carry on with a word that it has read: it would send it after a newer one.
  {
    const std::scoped_lock lock(sweep_);
    by_initiator_ = on;
  }
  wake_.notify_one();
}

void QemuController::look_at_status() {
  const u64 now = wall_ns();
  u64 due = next_look_.load(std::memory_order_relaxed);
  if (now < due || !next_look_.compare_exchange_strong(due, now + kLookNs, std::memory_order_relaxed)) return;
  link_.take_replies();
  link_.post_read(kBar + reg::csts, [this](u32 value) { store_release(word(reg::csts), value); });
  if (link_.gone()) store_release(word(reg::csts), ~0u);
}

void QemuController::run() {
  pthread_setname_np(pthread_self(), "doorbells");
  u64 last = wall_ns();
  for (;;) {
    std::unique_lock sweep(sweep_);
    // Not even naps: they would take the core that QEMU's thread needs.
    wake_.wait(sweep, [this] { return !by_initiator_ || stop_; });
    if (stop_) return;
    bool rung = false;
    for (u16 q = 0; q < pairs_.load(std::memory_order_acquire); ++q) rung = forward_pair(q) || rung;
    // Ringing a queue that was never created is an error that QEMU reports: those are looked at as well,
    // but not in the way of the others.
    if (!rung)
      for (u16 q = 0; q < kPairsMost; ++q) rung = forward_pair(q) || rung;
    look_at_status();
    sweep.unlock();
    if (rung) last = wall_ns();
    else if (wall_ns() - last > kSpinNs) std::this_thread::sleep_for(kNap);
  }
}

}  // namespace doorbell::nvme
