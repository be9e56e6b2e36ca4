// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "nvme/model/controller.hpp"

#include <doorbell/error.hpp>
#include <fmt/format.h>

#include <cstring>
#include <exception>
#include <thread>

namespace doorbell::nvme {

namespace {

constexpr u32 kRoundsPerRegisterLook = 64;
constexpr u32 kTimeoutUnits = 20;      // CAP.TO: 10 s
constexpr u32 kArbitrationShift = 11;  // CC.AMS

u64 capabilities(const ModelConfig& c) {
  return u64{c.max_entries - 1} | (c.contiguous ? u64{1} << 16 : 0) | u64{kTimeoutUnits} << 24 |
         u64{c.stride} << 32 | u64{1} << 37;
}

bool writable(u32 offset) {
  return offset >= reg::doorbells || (offset >= reg::aqa && offset < reg::acq + 8) || offset == reg::cc;
}

Region registers_of(const ModelConfig& config, HostMemory memory, const std::shared_ptr<gpu::Gpu>& gpu) {
  const Place place = gpu ? Place::pinned : Place::pageable;
  if (memory.base != nullptr) return {place, std::move(memory), gpu};
  return {place, ModelController::register_bytes(config), gpu};
}

}  // namespace

u64 ModelController::register_bytes(const ModelConfig& config) {
  return sq_doorbell_offset(config.max_queues + 1, config.stride);
}

ModelController::ModelController(const ModelConfig& config, std::string name, std::shared_ptr<gpu::Gpu> gpu,
                                 ModelPorts ports)
    : name_(std::move(name)),
      shared_(config),
      gpu_(std::move(gpu)),
      registers_(registers_of(config, std::move(ports.registers), gpu_)) {
  if (registers_.bytes() < register_bytes(config))
    throw Error(name_, fmt::format("its registers need {:#x} bytes, and have {:#x}", register_bytes(config),
                                   registers_.bytes()));
  if (config.engine != ModelConfig::Engine::cpu && ports.interrupts != nullptr)
    throw Error(name_, "its engine is a kernel, which raises no interrupts");
  shared_.interrupts.connect(ports.interrupts, ports.vectors);
  shared_.foreign_memory = ports.foreign_memory;
  std::memset(registers_.host(), 0, registers_.bytes());
  const u64 cap = capabilities(config);
  const u32 vs = 0x00010400;
  std::memcpy(registers_.host() + reg::cap, &cap, sizeof cap);
  std::memcpy(registers_.host() + reg::vs, &vs, sizeof vs);
  if (config.engine == ModelConfig::Engine::cpu) serve_by_threads();
  else serve_by_kernel();
}

void ModelController::serve_by_threads() {
  const ModelConfig& config = shared_.config;
  // The agent's polling slows every other kernel's fences and PCIe reads, so it runs only where it is needed.
  if (gpu_ && config.gpu_memory)
    agent_ = std::make_unique<model::DmaAgent>(gpu_, config.threads, !config.shared_gpu);
  auto io = std::make_unique<ThreadService>(shared_, space_, agent_.get(), registers_.host());
  const auto engines = io->engines();
  io_ = std::move(io);
  admin_ = std::make_unique<AdminProcessor>(shared_, RegisterPage{registers_.host(), registers_.bytes()},
                                            engines.front()->dma(), *io_);
  threads_.push_back(std::make_unique<model::DeviceThread>(
      "nvme-model-0",
      [this, first = engines.front().get()] {
        bool work = false;
        if (++rounds_ % kRoundsPerRegisterLook == 0 || !admin_->enabled()) work = poll_registers();
        set_up_.serve();
        return first->poll() || work;
      },
      config.rests));
  for (u32 i = 1; i < engines.size(); ++i)
    threads_.push_back(std::make_unique<model::DeviceThread>(
        fmt::format("nvme-model-{}", i), [engine = engines[i].get()] { return engine->poll(); },
        config.rests));
}

void ModelController::serve_by_kernel() {
  if (shared_.config.engine == ModelConfig::Engine::gpu && !gpu_)
    throw Error(name_, "its engine is a kernel, and it was opened without a GPU");
  if (shared_.config.max_queues > kServedQueues)
    throw Error(name_, fmt::format("its engine serves at most {} queues", kServedQueues));
  const bool on_gpu = shared_.config.engine == ModelConfig::Engine::gpu;
  auto io = std::make_unique<KernelService>(shared_, space_, on_gpu ? gpu_ : nullptr, registers_);
  kernel_ = io.get();
  io_ = std::move(io);
  admin_dma_ = std::make_unique<model::DmaEngine>(space_, nullptr, 0);
  admin_ = std::make_unique<AdminProcessor>(shared_, RegisterPage{registers_.host(), registers_.bytes()},
                                            *admin_dma_, *io_);
  threads_.push_back(std::make_unique<model::DeviceThread>("nvme-model-0", [this] {
    set_up_.serve();
    kernel_->collect();
    return poll_registers();
  }));
}

ModelController::~ModelController() {
  threads_.clear();
}

void ModelController::check_offset(u64 offset, u64 bytes) const {
  if (offset % 4 != 0 || offset > registers_.bytes() || bytes > registers_.bytes() - offset)
    throw Error(fmt::format("register {:#x} of {}", offset, name_),
                fmt::format("the BAR has {:#x} bytes and takes aligned accesses", registers_.bytes()));
}

u32 ModelController::read32(u32 offset) {
  check_offset(offset, 4);
  return load_acquire(reinterpret_cast<u32*>(registers_.host() + offset));
}

u64 ModelController::read64(u32 offset) {
  return u64{read32(offset + 4)} << 32 | read32(offset);
}

void ModelController::write32(u32 offset, u32 value) {
  check_offset(offset, 4);
  // Bits are set and cleared here, because memory shows only the last of two writes.
  if (offset == reg::intms || offset == reg::intmc) {
    if (offset == reg::intms) shared_.interrupts.mask(value);
    else shared_.interrupts.unmask(value);
    for (const u32 at : {reg::intms, reg::intmc})
      store_release(reinterpret_cast<u32*>(registers_.host() + at), shared_.interrupts.mask());
    return;
  }
  // Memory would take the write, but hardware drops it.
  if (writable(offset)) store_release(reinterpret_cast<u32*>(registers_.host() + offset), value);
  // Memory shows only the last of two writes. A real controller sees both EN = 0 and the following EN = 1.
  if (offset != reg::cc) return;
  // A driver may shut a controller down that waits for an answer of his in the middle of a command, and be
  // the thread that answers.
  if (shared_.foreign_memory && ((value ^ cc_served_.load(std::memory_order_acquire)) & cc::enable) == 0) {
    const std::scoped_lock lock(changers_);
    if (io_->change_memory([this] { (void)take_configuration(); })) return;
  }
  while (cc_served_.load(std::memory_order_acquire) != value && !shared_.presence.gone())
    std::this_thread::yield();
}

void ModelController::write64(u32 offset, u64 value) {
  write32(offset, static_cast<u32>(value));
  write32(offset + 4, static_cast<u32>(value >> 32));
}

u32* ModelController::cpu_register(u64 offset) {
  check_offset(offset, 4);
  return reinterpret_cast<u32*>(registers_.host() + offset);
}

u32* ModelController::gpu_register(u64 offset) {
  check_offset(offset, 4);
  // The admin queue's doorbells, and all other registers, lie where the CPU reads them.
  const bool own = kernel_ && kernel_->gpu_doorbells() != nullptr &&
                   offset >= sq_doorbell_offset(1, shared_.config.stride);
  u8* const base = own ? kernel_->gpu_doorbells() : registers_.device();
  return base == nullptr ? nullptr : reinterpret_cast<u32*>(base + offset);
}

bool ModelController::poll_registers() {
  if (shared_.presence.gone()) {
    // Reads of a device that is gone return all ones.
    if (!gone_)
      for (u32 at = 0; at < reg::doorbells; at += 4)
        store_release(reinterpret_cast<u32*>(registers_.host() + at), ~0u);
    gone_ = true;
    return false;
  }
  const bool changed = take_configuration();
  if (shared_.fatal.load(std::memory_order_acquire)) {
    u32* const csts = reinterpret_cast<u32*>(registers_.host() + reg::csts);
    store_release(csts, load_relaxed(csts) | csts::fatal);
  }
  return admin_->poll() || changed;
}

bool ModelController::take_configuration() {
  if (shared_.presence.gone()) return false;
  // The acquire orders CC before later loads of the queue addresses, which the host wrote before CC.
  const u32 cc = load_acquire(reinterpret_cast<u32*>(registers_.host() + reg::cc));
  const u32 changed = cc ^ cc_;
  cc_ = cc;
  u32* const csts = reinterpret_cast<u32*>(registers_.host() + reg::csts);
  if ((changed & cc::enable) != 0) {
    if ((cc & cc::enable) != 0) enable();
    else disable();
  }
  admin_->entry_sizes(cc >> cc::iosqes_shift & 0xf, cc >> cc::iocqes_shift & 0xf);
  if ((changed & cc::shutdown_mask) != 0 && (cc & cc::shutdown_mask) != 0) {
    (void)shared_.media.flush();
    store_release(csts, load_relaxed(csts) | csts::shutdown_complete);
  }
  cc_served_.store(cc, std::memory_order_release);
  return changed != 0;
}

void ModelController::disable() {
  admin_->disable();
  shared_.fatal.store(false, std::memory_order_relaxed);  // the engines have no queues now
  for (const u32 at : {reg::intms, reg::intmc, reg::csts})
    store_release(reinterpret_cast<u32*>(registers_.host() + at), 0);
}

void ModelController::on_admin_thread(const std::function<void()>& work) {
  const std::scoped_lock lock(callers_);
  set_up_.run(work);
}

void ModelController::change_memory(const std::function<void()>& change) {
  std::exception_ptr failed;
  const auto guarded = [&] {
    try {
      change();
    } catch (...) {
      failed = std::current_exception();
    }
    admin_->find_queue();
  };
  const std::scoped_lock lock(changers_);
  if (!io_->change_memory(guarded)) on_admin_thread(guarded);  // a kernel is told of each change by itself
  if (failed) std::rethrow_exception(failed);
}

void ModelController::set_faults(const model::FaultRates& rates) {
  on_admin_thread([&] {
    if (rates.any()) io_->track();
    shared_.faults.set(rates);
  });
}

void ModelController::reset() {
  on_admin_thread([&] {
    if (shared_.presence.gone()) return;
    for (u32 at = reg::aqa; at < reg::acq + 8; at += 4)
      store_relaxed(reinterpret_cast<u32*>(registers_.host() + at), 0);
    store_relaxed(reinterpret_cast<u32*>(registers_.host() + reg::cc), 0);
    cc_ = 0;
    disable();
    cc_served_.store(0, std::memory_order_release);
  });
}

void ModelController::enable() {
  const u32 page_shift = 12 + (cc_ >> cc::mps_shift & 0xf);
  // Entry sizes may be named later, before the first I/O queue.
  const u32 sq_entry = cc_ >> cc::iosqes_shift & 0xf, cq_entry = cc_ >> cc::iocqes_shift & 0xf;
  const bool usable = page_shift == 12 && (cc_ >> cc::css_shift & 7) == 0 &&
                      (cc_ >> kArbitrationShift & 7) == 0 && (sq_entry == 6 || sq_entry == 0) &&
                      (cq_entry == 4 || cq_entry == 0) &&
                      admin_->enable(read32(reg::aqa), read64(reg::asq), read64(reg::acq));
  store_release(reinterpret_cast<u32*>(registers_.host() + reg::csts), usable ? csts::ready : csts::fatal);
}

nlohmann::ordered_json ModelController::counters() {
  const IoTotals t = io_->totals();
  nlohmann::ordered_json all = {{"reads", t.reads},
                                {"writes", t.writes},
                                {"other_commands", t.others},
                                {"bytes", t.bytes()},
                                {"error_completions", t.errors},
                                {"completions_held_queue_full", t.cq_full},
                                {"dma_faults", t.dma_faults + (admin_dma_ ? admin_dma_->faults() : 0)},
                                {"invalid_doorbell_values", shared_.invalid_doorbell_values.load()},
                                {"unknown_doorbells", shared_.unknown_doorbells.load()},
                                {"injected", shared_.faults.json()}};
  if (const std::string why = shared_.media.refusal(); !why.empty()) all["media_refuses_writes"] = why;
  return all;
}

}  // namespace doorbell::nvme
