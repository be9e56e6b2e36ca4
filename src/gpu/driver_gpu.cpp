// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "gpu/driver_gpu.hpp"

#include <doorbell/error.hpp>

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <thread>

namespace doorbell::gpu {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::microseconds;
using std::chrono::nanoseconds;
using std::chrono::seconds;

constexpr u64 kAlignment = 64 * 1024;  // the GPU page that RDMA and dma-buf importers map
// Copies do not depend on kernels, so only a GPU that has stopped working reaches this deadline.
constexpr seconds kCopyDeadline{120};
constexpr seconds kExitGrace{2};
// How long to poll without pauses. A model gives megabytes at once to the copy engine; such a copy ends
// within this time, while a kernel runs longer than any copy.
constexpr std::chrono::milliseconds kSpinForCopies{2};
constexpr microseconds kSpinForKernels{100};

u64 round_up(u64 n, u64 step) {
  return (n + step - 1) / step * step;
}

}  // namespace

// --- helpers ---------------------------------------------------------------------------------------

// Each blocking copy uses a stream of its own, so that threads copy in parallel without waiting for each
// other.
class DriverGpu::StreamLease {
 public:
  explicit StreamLease(DriverGpu& gpu) : gpu_(gpu) {
    {
      const std::lock_guard lock(gpu_.mutex_);
      if (!gpu_.idle_copy_streams_.empty()) {
        stream_ = gpu_.idle_copy_streams_.back();
        gpu_.idle_copy_streams_.pop_back();
        return;
      }
    }
    const Status status = gpu_.driver_->create_stream(stream_);
    if (status != kSuccess) gpu_.raise(status, "create a stream for copies on " + gpu_.place());
  }
  ~StreamLease() {
    const std::lock_guard lock(gpu_.mutex_);
    (drained_ ? gpu_.idle_copy_streams_ : gpu_.abandoned_).push_back(stream_);
  }
  StreamLease(const StreamLease&) = delete;
  StreamLease& operator=(const StreamLease&) = delete;

  void* stream() const { return stream_; }
  void mark_drained() { drained_ = true; }

 private:
  DriverGpu& gpu_;
  void* stream_ = nullptr;
  bool drained_ = false;
};

std::string DriverGpu::place() const {
  return fmt::format("GPU {} ({})", info_.index, info_.name);
}

void DriverGpu::raise(Status status, const std::string& what, ExitCode code, std::string hint) const {
  if (hint.empty()) hint = driver_->hint(status);
  throw Error(what, driver_->explain(status), std::move(hint), code);
}

void DriverGpu::refuse(const std::string& what, const std::string& why, std::string hint) const {
  throw Error(what, why, std::move(hint));
}

// --- life ------------------------------------------------------------------------------------------

DriverGpu::DriverGpu(std::shared_ptr<Driver> driver, int ordinal, Info info)
    : driver_(std::move(driver)), ordinal_(ordinal), info_(std::move(info)) {
  const Status status = driver_->retain(ordinal_, context_);
  if (status != kSuccess) raise(status, "open " + place());
}

DriverGpu::~DriverGpu() {
  try {
    const Current current(*this);
    const std::lock_guard lock(mutex_);
    const auto deadline = Clock::now() + kExitGrace;
    while (busy() && Clock::now() < deadline) std::this_thread::sleep_for(microseconds(100));
    // Every release below waits for running kernels. If some never end, the process's exit frees their GPU
    // memory; waiting here would hang the program.
    if (busy()) return;
    sweep();
    for (const auto& [p, held] : held_) give_back(held);
    for (void* stream : streams_) driver_->destroy_stream(stream);
    for (void* stream : idle_copy_streams_) driver_->destroy_stream(stream);
    for (void* event : events_) driver_->destroy_event(event);
    for (void* module : modules_) driver_->unload_module(module);
  } catch (const std::exception&) {
    return;  // the GPU is gone, with everything in its memory
  }
  driver_->release(ordinal_);
}

bool DriverGpu::busy() noexcept {
  const auto works = [this](void* stream) { return driver_->query(stream) == kNotReady; };
  std::erase_if(abandoned_, [&](void* stream) {
    if (works(stream)) return false;
    driver_->destroy_stream(stream);
    return true;
  });
  return !abandoned_.empty() || std::any_of(streams_.begin(), streams_.end(), works);
}

Status DriverGpu::give_back(const Held& held) noexcept {
  switch (held.kind) {
    case Kind::device:
      return driver_->free(held.base);
    case Kind::pinned:
      return driver_->free_pinned(held.base);
    case Kind::registered:
      return driver_->unregister_host(held.base);
  }
  return kSuccess;
}

void DriverGpu::sweep() noexcept {
  if (retired_.empty() || busy()) return;
  for (const Held& held : retired_) give_back(held);
  retired_.clear();
}

// The driver's free and unregister calls wait for every running kernel. During a kernel that runs until it is
// stopped they would hang, so memory that is given up meanwhile waits here until the GPU is idle.
void DriverGpu::forget(void* p, Kind kind) noexcept {
  try {
    const Current current(*this);
    const std::lock_guard lock(mutex_);
    const auto found = held_.find(p);
    if (found == held_.end() || found->second.kind != kind) return;
    retired_.push_back(found->second);
    held_.erase(found);
    sweep();
  } catch (const std::exception&) {
    // Nothing can be returned to a GPU that is gone.
  }
}

// --- memory ----------------------------------------------------------------------------------------

void* DriverGpu::allocate(u64 bytes) {
  const std::string what = fmt::format("allocate {} bytes of memory on {}", bytes, place());
  if (bytes == 0 || bytes > info_.memory_bytes)
    refuse(what, fmt::format("the GPU can give 1 to {} bytes", info_.memory_bytes));
  const Current current(*this);
  void* base = nullptr;
  void* p = nullptr;
  {
    const std::lock_guard lock(mutex_);
    sweep();
    // The driver aligns small blocks to 512 bytes only. Room for the alignment is part of the request,
    // because freeing a misaligned block would wait for running kernels.
    const Status status = driver_->allocate(base, round_up(bytes, kAlignment) + kAlignment);
    if (status != kSuccess) raise(status, what);
    p = reinterpret_cast<void*>(round_up(reinterpret_cast<u64>(base), kAlignment));
    held_[p] = {Kind::device, base};
  }
  try {
    zero(p, round_up(bytes, kAlignment));
  } catch (...) {
    free(p);
    throw;
  }
  return p;
}

void DriverGpu::free(void* p) noexcept {
  forget(p, Kind::device);
}

void* DriverGpu::allocate_pinned(u64 bytes) {
  const std::string what = fmt::format("allocate {} bytes of pinned memory for {}", bytes, place());
  if (bytes == 0) refuse(what, "the size is 0");
  const Current current(*this);
  void* p = nullptr;
  {
    const std::lock_guard lock(mutex_);
    sweep();
    if (const Status status = driver_->allocate_pinned(p, bytes); status != kSuccess) raise(status, what);
    void* device = nullptr;
    const Status status = driver_->device_pointer(p, device);
    if (status != kSuccess || device != p) {
      driver_->free_pinned(p);
      if (status != kSuccess) raise(status, what);
      refuse(what, fmt::format("the GPU sees it at {}, the CPU at {}", device, p),
             "doorbell needs a GPU and a driver with unified addressing");
    }
    held_[p] = {Kind::pinned, p};
  }
  std::memset(p, 0, bytes);
  return p;
}

void DriverGpu::free_pinned(void* p) noexcept {
  forget(p, Kind::pinned);
}

void* DriverGpu::register_host(void* p, u64 bytes, bool mmio) {
  const std::string what = fmt::format("register {} bytes of {} at {} with {}", bytes,
                                       mmio ? "device registers" : "host memory", p, place());
  const u64 begin = reinterpret_cast<u64>(p);
  if (p == nullptr || bytes == 0 || begin + bytes < begin) refuse(what, "the range is empty or wraps around");
  const Current current(*this);
  const std::lock_guard lock(mutex_);
  sweep();
  const bool waiting = std::any_of(retired_.begin(), retired_.end(), [p](const Held& held) {
    return held.kind == Kind::registered && held.base == p;
  });
  if (waiting)
    refuse(what, "it was unregistered while a kernel ran and stays registered until the GPU is idle",
           "stop the kernel, or keep the first registration");
  std::string hint;
  if (mmio && info_.runtime == Runtime::cuda)
    hint =
        "registers of another device need root and nvidia.ko loaded with "
        "NVreg_RegistryDwords=\"PeerMappingOverride=1\"";
  if (const Status status = driver_->register_host(p, bytes, mmio); status != kSuccess)
    raise(status, what, ExitCode::usage, hint);
  void* device = nullptr;
  if (const Status status = driver_->device_pointer(p, device); status != kSuccess) {
    driver_->unregister_host(p);
    raise(status, what, ExitCode::usage, hint);
  }
  held_[p] = {Kind::registered, p};
  return device;
}

void DriverGpu::unregister_host(void* p) noexcept {
  forget(p, Kind::registered);
}

void DriverGpu::reach(Gpu& other) {
  auto* const peer = dynamic_cast<DriverGpu*>(&other);
  if (peer == this) return;
  const std::string what = fmt::format("reach memory of GPU {} from {}", other.info().index, place());
  if (peer == nullptr || other.info().runtime != info_.runtime) refuse(what, "they are of different makers");
  const Current current(*this);
  const Status status = driver_->reach(ordinal_, peer->ordinal_, peer->context_);
  if (status == kSuccess || status == kPeerReached) return;
  raise(
      status, what, ExitCode::usage,
      status == kNotSupported
          ? "neither a link of their own nor PCIe peer-to-peer joins them: choose two that `nvidia-smi topo -m` "
            "or `rocm-smi --showtopo` shows as linked"
          : "");
}

void DriverGpu::make_current() {
  Context previous = 0;
  const Status status = driver_->enter(context_, previous);
  if (status != kSuccess) raise(status, "make current " + place());
}

int DriverGpu::export_dmabuf(void* p, u64 bytes) {
  const std::string what = fmt::format("export {} bytes at {} of {} as a dma-buf", bytes, p, place());
  const u64 page = static_cast<u64>(::sysconf(_SC_PAGESIZE));
  if (p == nullptr || bytes == 0 || reinterpret_cast<u64>(p) % page != 0)
    refuse(what, fmt::format("the address must be a multiple of {} and the size at least 1", page));
  const Current current(*this);
  int fd = -1;
  const Status status = driver_->export_dmabuf(p, round_up(bytes, page), fd);
  if (status != kSuccess)
    raise(status, what, ExitCode::usage,
          info_.runtime == Runtime::cuda
              ? "dma-buf needs NVIDIA's open kernel modules, driver 515 or later, and Linux 5.12 or later"
          : info_.runtime == Runtime::hip
              ? "dma-buf needs a ROCm with hipMemGetHandleForAddressRange and Linux 5.12 or later"
              : "dma-buf is of a whole allocation, and needs Linux 5.12 or later with i915 or xe");
  return fd;
}

// --- copies ----------------------------------------------------------------------------------------

bool DriverGpu::poll_until(void* stream, Clock::time_point deadline, nanoseconds spin) {
  const auto begin = Clock::now();
  for (;;) {
    const Status status = driver_->query(stream);
    if (status == kSuccess) return true;
    if (status != kNotReady) raise(status, "work on " + place() + " failed", ExitCode::data);
    const auto now = Clock::now();
    if (now >= deadline) return false;
    // Short work ends during the busy polling. Longer work is not worth a core, and a pause is short compared
    // with it.
    if (now - begin < spin) {
      std::this_thread::yield();
    } else {
      const auto pause = std::clamp<nanoseconds>((now - begin) / 8, microseconds(20), microseconds(500));
      std::this_thread::sleep_for(std::min<nanoseconds>(pause, deadline - now));
    }
  }
}

void DriverGpu::drain(StreamLease& lease, const char* what) {
  if (!poll_until(lease.stream(), Clock::now() + kCopyDeadline, kSpinForCopies))
    throw Error(
        fmt::format("{} on {}", what, place()), fmt::format("not done after {} s", kCopyDeadline.count()),
        "the GPU has stopped working, or a kernel fills it and never ends: see `dmesg`", ExitCode::data);
  lease.mark_drained();
}

void DriverGpu::copy(void* to, const void* from, u64 bytes) {
  const Copy one{to, from, bytes};
  copy({&one, 1});
}

void DriverGpu::check_addresses(const Copy& c) const {
  if (c.bytes != 0 && (c.to == nullptr || c.from == nullptr))
    refuse(fmt::format("copy {} bytes from {} to {} on {}", c.bytes, c.from, c.to, place()),
           "an address is null");
}

void DriverGpu::copy_failed(Status status, const Copy& c) const {
  raise(status, fmt::format("copy {} bytes from {} to {} on {}", c.bytes, c.from, c.to, place()),
        ExitCode::data);
}

void DriverGpu::copy(std::span<const Copy> batch) {
  for (const Copy& c : batch) check_addresses(c);
  const Current current(*this);
  StreamLease lease(*this);
  Status failed = kSuccess;
  Copy at{};
  for (const Copy& c : batch) {
    if (c.bytes == 0) continue;
    at = c;
    failed = driver_->copy(c.to, c.from, c.bytes, lease.stream());
    if (failed != kSuccess) break;
  }
  // Waits also after a failure: earlier copies use the caller's memory until they are done.
  drain(lease, "copy");
  if (failed != kSuccess) copy_failed(failed, at);
}

void DriverGpu::start_copy(const Copy& c, Stream s) {
  check_addresses(c);
  if (s.handle == nullptr) refuse("copy on " + place(), "the stream was not made by create_stream()");
  if (c.bytes == 0) return;
  // Without the mutex: memory that is not pinned is read before this returns, and a copy always ends.
  const Current current(*this);
  if (const Status status = driver_->copy(c.to, c.from, c.bytes, s.handle); status != kSuccess)
    copy_failed(status, c);
}

void DriverGpu::zero(void* p, u64 bytes) {
  StreamLease lease(*this);
  const Status status = driver_->zero(p, bytes, lease.stream());
  drain(lease, "fill with zeros");
  if (status != kSuccess)
    raise(status, fmt::format("fill {} bytes at {} with zeros on {}", bytes, p, place()), ExitCode::data);
}

void DriverGpu::fill_zero(void* p, u64 bytes) {
  if (bytes == 0) return;
  if (p == nullptr)
    refuse(fmt::format("fill {} bytes with zeros on {}", bytes, place()), "the address is null");
  const Current current(*this);
  zero(p, bytes);
}

// --- streams ---------------------------------------------------------------------------------------

void* DriverGpu::make(Status (Driver::*create)(void*&) const, std::vector<void*>& kept, const char* what) {
  const Current current(*this);
  void* handle = nullptr;
  if (const Status status = ((*driver_).*create)(handle); status != kSuccess)
    raise(status, fmt::format("create {} on {}", what, place()));
  const std::lock_guard lock(mutex_);
  kept.push_back(handle);
  return handle;
}

Stream DriverGpu::create_stream() {
  return {make(&Driver::create_stream, streams_, "a stream")};
}

Stream DriverGpu::create_urgent_stream() {
  return {make(&Driver::create_urgent_stream, streams_, "a stream")};
}

void DriverGpu::destroy(Stream s) noexcept {
  try {
    const Current current(*this);
    const std::lock_guard lock(mutex_);
    if (std::erase(streams_, s.handle) == 0) return;
    abandoned_.push_back(s.handle);
    busy();  // destroys what is idle
    sweep();
  } catch (const std::exception&) {
    // Nothing can be returned to a GPU that is gone.
  }
}

bool DriverGpu::finished(Stream s) {
  return wait(s, 0);
}

bool DriverGpu::wait(Stream s, u64 timeout_ns) {
  if (s.handle == nullptr) refuse("wait for a stream of " + place(), "it was not made by create_stream()");
  // A hundred years serve as "for ever" and keep the sum inside the clock's range.
  constexpr u64 kForever = u64{100} * 365 * 24 * 3600 * 1'000'000'000;
  const auto deadline = Clock::now() + nanoseconds(static_cast<i64>(std::min(timeout_ns, kForever)));
  const Current current(*this);
  return poll_until(s.handle, deadline, kSpinForKernels);
}

// --- events ----------------------------------------------------------------------------------------

Event DriverGpu::create_event() {
  return {make(&Driver::create_event, events_, "an event")};
}

void DriverGpu::destroy(Event e) noexcept {
  try {
    const Current current(*this);
    const std::lock_guard lock(mutex_);
    // The driver keeps it until it is reached.
    if (std::erase(events_, e.handle) != 0) driver_->destroy_event(e.handle);
  } catch (const std::exception&) {
    // Nothing can be returned to a GPU that is gone.
  }
}

void DriverGpu::join(Status (Driver::*call)(void*, void*) const, Event e, Stream s, const char* doing) {
  const auto what = [&] { return fmt::format("{} on {}", doing, place()); };
  if (e.handle == nullptr || s.handle == nullptr) refuse(what(), "it takes an event and a stream");
  const Current current(*this);
  if (const Status status = ((*driver_).*call)(s.handle, e.handle); status != kSuccess)
    raise(status, what(), ExitCode::data);
}

void DriverGpu::record(Event e, Stream s) {
  join(&Driver::record, e, s, "record an event");
}

void DriverGpu::follow(Stream s, Event e) {
  join(&Driver::follow, e, s, "let a stream follow an event");
}

std::shared_ptr<Gpu> open_gpu(std::shared_ptr<Driver> driver, int ordinal, Info info) {
  return std::make_shared<DriverGpu>(std::move(driver), ordinal, std::move(info));
}

}  // namespace doorbell::gpu
