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

constexpr u64 kBarBytes = 16384;
constexpr u32 kPciCommand = 4, kPciBar0 = 0x10;
constexpr u32 kMemoryAndBusMaster = 6;
constexpr u32 kNvmeId = 0x0010'1b36;
constexpr u64 kLookNs = 10'000'000;  // how often CSTS is looked at
// For an answer of QEMU, or a round of its main loop. A process that others share the processor with may take
// a good part of a second.
constexpr double kLeastTimeoutS = 1, kMostTimeoutS = 10;

}  // namespace

QemuController::QemuController(const QemuConfig& config, std::string name, std::shared_ptr<gpu::Gpu> gpu,
                               double timeout_s)
    : config_(config),
      timeout_s_(std::clamp(timeout_s, kLeastTimeoutS, kMostTimeoutS)),
      name_(std::move(name)),
      process_(config),
      link_(process_.take_socket(), timeout_s_),
      words_(Place::pageable, kBarBytes, std::move(gpu)) {
  doorbells_.place(words_.host(), words_.bytes(), 0);
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
  doorbells_.wrote32(offset, value);
  if (offset == reg::cc && (value & cc::enable) == 0) {
    start_over();
    let_fetch();
  }
  link_.write(kBar + offset, value);
}

void QemuController::write64(u32 offset, u64 value) {
  doorbells_.wrote64(offset, value);
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

void QemuController::start_over() {
  const std::scoped_lock lock(sweep_);
  doorbells_.start_over();
}

/// Lets QEMU fetch what has been rung. A command that it fetches while a reset drains the drive is parked,
/// and goes on after the reset has freed its queue: QEMU 7.2 then ends by SIGSEGV. The read returns after the
/// doorbell's message has been taken, which only schedules the fetching; the main loop's next round does it.
void QemuController::let_fetch() {
  (void)link_.read(kBar + reg::csts, 4);
  if (!link_.gone()) process_.await_round(timeout_s_);
}

void QemuController::forward(u16 qid) {
  (void)doorbells_.carry_pair(qid, memory_of_queues(), message());
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
  CarrierPace pace;
  for (;;) {
    std::unique_lock sweep(sweep_);
    // Not even naps: they would take the core that QEMU's thread needs.
    wake_.wait(sweep, [this] { return !by_initiator_ || stop_; });
    if (stop_) return;
    const bool rung = doorbells_.carry_all(memory_of_queues(), message());
    look_at_status();
    sweep.unlock();
    if (rung) pace.rang();
    else pace.wait();
  }
}

}  // namespace doorbell::nvme
