// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "nvme/vfio_user.hpp"

#include <doorbell/error.hpp>
#include <doorbell/memory_order.hpp>
#include <doorbell/nvme/wire.hpp>
#include <fmt/format.h>
#include <pthread.h>
#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>

#include "nvme/identity.hpp"
#include "options/spec.hpp"
#include "system/clock.hpp"
#include "system/sysfs.hpp"
#include "system/thread.hpp"

namespace doorbell::nvme {

namespace {

using vfio_user::DmaMap;

constexpr std::string_view kPrefix = "vfio-user:";
constexpr u64 kGap = u64{1} << 21;      // also the alignment of each range
constexpr u64 kWindow = u64{16} << 20;  // the server may pin all of it
constexpr u32 kPciCommand = 4;
constexpr u16 kMemoryBusMasterNoPin = 0x406;
constexpr u64 kLeastBar = 0x2000;
constexpr u64 kLookNs = 10'000'000;  // how often CSTS is looked at
constexpr double kLeastTimeoutS = 1, kMostTimeoutS = 10;

}  // namespace

options::OptionTable vfio_user_keys() {
  options::OptionTable t;
  t.add({.name = "memory",
         .default_text = "shared",
         .choices = {"shared", "message"},
         .help = "how the device reaches memory: it maps it, or each access is a message",
         .into = {"shared", &VfioUserSpec::share_memory}});
  t.add({.name = "doorbells",
         .default_text = "mapped",
         .choices = {"mapped", "message"},
         .help = "how they reach the device: in its page, if the server shares it, or each as a message",
         .into = {"mapped", &VfioUserSpec::map_doorbells}});
  return t;
}

VfioUserSpec parse_vfio_user_spec(const std::string& spec, const std::string& controller) {
  VfioUserSpec s;
  const std::string rest = spec.substr(std::min(spec.size(), kPrefix.size()));
  const auto comma = rest.find(',');
  s.path = rest.substr(0, comma);
  const std::string title = controller + " vfio-user";
  if (s.path.empty()) throw Error(title, "the socket's path is missing", "write vfio-user:PATH");
  const std::string keys = comma == std::string::npos ? "vfio-user" : "vfio-user:" + rest.substr(comma + 1);
  options::parse_spec(title, vfio_user_keys(), keys).read_into(s);
  return s;
}

VfioUserMemory::VfioUserMemory(bool shared)
    : shared_(shared), arena_(SharedArena::make("a vfio-user server")) {}

Region VfioUserMemory::allocate(Place place, u64 bytes, std::shared_ptr<gpu::Gpu> gpu) {
  return arena_->allocate(place, bytes, std::move(gpu));
}

Iova VfioUserMemory::take_addresses(u64 bytes) {
  const Iova at = next_;
  next_ = (at + bytes + kGap + kGap - 1) / kGap * kGap;
  return at;
}

Iova VfioUserMemory::map(const Region& region, Access access) {
  const std::string subject = "mapping a region for a vfio-user server";
  if (!arena_->holds(region.host(), region.bytes()))
    throw Error(subject, "it is not memory that is shared with it");
  const u64 offset = static_cast<u64>(region.host() - arena_->base());
  const Access granted = exact_ ? access : Access::read_write;
  DmaMap what{.flags = (allows(granted, Access::read) ? DmaMap::kReadable : 0) |
                       (allows(granted, Access::write) ? DmaMap::kWriteable : 0),
              .offset = shared_ ? offset : 0};
  Iova at = 0;
  {
    const std::scoped_lock lock(mutex_);
    const auto window = std::ranges::find_if(windows_, [&](const auto& w) {
      return !w.second.closed && offset >= w.second.offset &&
             vfio_user::within(offset - w.second.offset, region.bytes(), w.second.bytes);
    });
    if (window != windows_.end()) {
      ++window->second.regions;
      at = window->first + (offset - window->second.offset);
    } else {
      what.size =
          exact_ ? region.bytes() : std::min(std::max(region.bytes(), kWindow), arena_->bytes() - offset);
      what.address = at = take_addresses(what.size);
    }
    ranges_[at] = {region.bytes(), region.host(), granted};
  }
  if (what.size == 0) return at;
  // Not under the lock: the server may ask for memory before it answers.
  if (const int error = client_->map(what, shared_ ? arena_->fd() : -1); error != 0) {
    const std::scoped_lock lock(mutex_);
    ranges_.erase(at);
    throw Error(subject, reason(error));
  }
  if (!exact_) {
    const std::scoped_lock lock(mutex_);
    windows_[at] = {offset, what.size, 1};
  }
  return at;
}

void VfioUserMemory::unmap(Iova iova) noexcept {
  Iova begin = iova;
  u64 bytes = 0;
  {
    const std::scoped_lock lock(mutex_);
    const auto at = ranges_.find(iova);
    if (at == ranges_.end()) return;
    bytes = at->second.bytes;
    if (const auto after = windows_.upper_bound(iova); after != windows_.begin()) {
      auto& [from, window] = *std::prev(after);
      window.closed = true;
      begin = from;
      bytes = --window.regions == 0 ? window.bytes : 0;
    }
  }
  // Until this is answered the server may ask for it.
  if (bytes != 0) (void)client_->unmap(begin, bytes);
  const std::scoped_lock lock(mutex_);
  ranges_.erase(iova);
  if (bytes != 0) windows_.erase(begin);
}

u8* VfioUserMemory::dma(u64 address, u64 count, bool write) {
  const std::scoped_lock lock(mutex_);
  auto after = ranges_.upper_bound(address);
  if (after == ranges_.begin()) return nullptr;
  const auto& [begin, r] = *std::prev(after);
  if (!vfio_user::within(address - begin, count, r.bytes)) return nullptr;
  return allows(r.access, write ? Access::write : Access::read) ? r.base + (address - begin) : nullptr;
}

VfioUserController::VfioUserController(const VfioUserSpec& spec, std::string name,
                                       std::shared_ptr<gpu::Gpu> gpu, double timeout_s)
    : memory_(spec.share_memory), name_(std::move(name)), gpu_(std::move(gpu)) {
  client_ = std::make_unique<vfio_user::Client>(
      spec.path, name_, std::clamp(timeout_s, kLeastTimeoutS, kMostTimeoutS), &memory_);
  memory_.connect(client_.get());
  const auto must = [&](int error, const char* what) {
    if (error != 0) throw Error(name_, fmt::format("{}: {}", what, reason(error)));
  };
  vfio_user::DeviceInfo info;
  must(client_->info(info), "what device it is");
  if ((info.flags & vfio_user::DeviceInfo::kPci) == 0 || info.regions <= vfio_user::Region::config)
    throw Error(name_, "it is no PCI device");
  std::array<u8, 12> identity{};  // vendor and device, command and status, revision and class
  must(client_->read(vfio_user::Region::config, 0, identity), "its class");
  const auto code = std::span(identity).subspan<8>();
  if (code[3] != 1 || code[2] != 8)
    throw Error(
        name_, fmt::format("it is no NVMe controller (class {:02x}{:02x}{:02x})", code[3], code[2], code[1]));
  vfio_user::RemoteRegion bar;
  must(client_->region(vfio_user::Region::bar0, bar), "its BAR 0");
  bar_bytes_ = bar.info.size;
  if (bar_bytes_ < kLeastBar || bar_bytes_ > (u64{1} << 30))
    throw Error(name_, fmt::format("its BAR 0 has {} bytes", bar_bytes_));
  u16 vendor = 0;
  std::memcpy(&vendor, identity.data(), sizeof vendor);
  memory_.be_exact(vendor == kModelVendor);
  const u16 command = kMemoryBusMasterNoPin;
  must(client_->write(vfio_user::Region::config, kPciCommand, vfio_user::bytes_of(command)), "bus master");
  words_ = Region(Place::pageable, bar_bytes_, gpu_);
  const u32 stride = Capabilities{read64(reg::cap)}.stride();
  words_of_doorbells_.place(words_.host(), bar_bytes_, stride);
  const u64 needed = sq_doorbell_offset(DoorbellWords::kPairs, stride);
  if (spec.map_doorbells)
    for (const vfio_user::Area& a : bar.areas) {
      if (a.offset > reg::doorbells || a.offset + a.size < std::min(needed, bar_bytes_) ||
          a.offset % 4096 != 0)
        continue;
      void* const at = mmap(nullptr, a.size, PROT_READ | PROT_WRITE, MAP_SHARED, bar.file.get(),
                            static_cast<off_t>(bar.info.offset + a.offset));
      if (at == MAP_FAILED) throw Error(name_, fmt::format("mapping its doorbells: {}", reason(errno)));
      const auto unmap = [](u8* base, u64 bytes) { munmap(base, bytes); };
      doorbells_ = Region(Place::pageable, {static_cast<u8*>(at), a.size, unmap}, gpu_);
      area_ = a;
      mapped_ = true;
      break;
    }
  (void)read32(reg::csts);
  thread_ = make_thread("watch of " + name_, [this] { watch(); });
}

VfioUserController::~VfioUserController() {
  {
    const std::scoped_lock lock(sweep_);
    stop_ = true;
  }
  wake_.notify_one();
  if (thread_.joinable()) thread_.join();
}

u64 VfioUserController::check_register(u64 offset) const {
  if (offset % 4 != 0 || offset > bar_bytes_ - 4)
    throw Error(name_, fmt::format("register {:#x} is outside its BAR of {} bytes", offset, bar_bytes_));
  return offset;
}

u32 VfioUserController::read32(u32 offset) {
  u32 value = ~0u;
  std::array<u8, 4> bytes{};
  const int error = client_->read(vfio_user::Region::bar0, check_register(offset), bytes);
  if (error == 0) std::memcpy(&value, bytes.data(), sizeof value);
  else if (error != ENODEV) throw Error(name_, fmt::format("register {:#x}: {}", offset, reason(error)));
  if (offset == reg::csts) store_release(reinterpret_cast<u32*>(words_.host() + reg::csts), value);
  return value;
}

u64 VfioUserController::read64(u32 offset) {
  const u64 low = read32(offset);
  return u64{read32(offset + 4)} << 32 | low;
}

void VfioUserController::write32(u32 offset, u32 value) {
  words_of_doorbells_.wrote32(offset, value);
  if (offset == reg::cc && (value & cc::enable) == 0) start_over();
  const int error =
      client_->write(vfio_user::Region::bar0, check_register(offset), vfio_user::bytes_of(value));
  if (error != 0 && error != ENODEV)
    throw Error(name_, fmt::format("register {:#x}: {}", offset, reason(error)));
}

void VfioUserController::write64(u32 offset, u64 value) {
  words_of_doorbells_.wrote64(offset, value);
  write32(offset, static_cast<u32>(value));
  write32(offset + 4, static_cast<u32>(value >> 32));
}

u32* VfioUserController::cpu_register(u64 offset) {
  (void)check_register(offset);
  const bool there =
      mapped_ && vfio_user::within(offset - area_.offset, 4, area_.size) && offset >= area_.offset;
  return reinterpret_cast<u32*>(there ? doorbells_.host() + (offset - area_.offset) : words_.host() + offset);
}

u32* VfioUserController::gpu_register(u64 offset) {
  u8* const at = reinterpret_cast<u8*>(cpu_register(offset));
  const Region& r =
      mapped_ && at >= doorbells_.host() && at < doorbells_.host() + doorbells_.bytes() ? doorbells_ : words_;
  return r.device() == nullptr ? nullptr : reinterpret_cast<u32*>(r.device() + (at - r.host()));
}

nlohmann::ordered_json VfioUserController::counters() {
  return {{"messages", client_->messages()}, {"gone", client_->gone()}};
}

void VfioUserController::reset_device() {
  start_over();
  if (const int error = client_->reset(); error != 0)
    throw Error(name_, fmt::format("a device reset: {}", reason(error)));
  (void)read32(reg::csts);
}

void VfioUserController::start_over() {
  if (mapped_) return;
  const std::scoped_lock lock(sweep_);
  words_of_doorbells_.start_over();
}

void VfioUserController::forward(u16 qid) {
  (void)words_of_doorbells_.carry_pair(qid, memory_of_queues(), message());
}

void VfioUserController::by_initiator(bool on) {
  // The thread must not carry on with a word that it has read: it would send it after a newer one.
  {
    const std::scoped_lock lock(sweep_);
    by_initiator_ = on;
  }
  wake_.notify_one();
}

/// Looks at CSTS, and, where doorbells are messages and no initiator sends them, at every doorbell.
void VfioUserController::watch() {
  pthread_setname_np(pthread_self(), "vfio-user watch");
  CarrierPace pace;
  u64 looked = wall_ns();
  std::unique_lock sweep(sweep_);
  while (!stop_) {
    const bool carries = !mapped_ && !by_initiator_;
    const bool rung = carries && words_of_doorbells_.carry_all(memory_of_queues(), message());
    if (rung) pace.rang();
    if (wall_ns() - looked >= kLookNs) {
      sweep.unlock();
      try {
        (void)read32(reg::csts);
      } catch (const Error&) {
        // A server that refuses this register is of no use.
        store_release(reinterpret_cast<u32*>(words_.host() + reg::csts), ~0u);
      }
      looked = wall_ns();  // of a busy server, whose answers take longer, doorbells are not in the way
      sweep.lock();
    }
    if (!carries) {
      wake_.wait_for(sweep, std::chrono::nanoseconds(kLookNs));
    } else if (!rung) {
      sweep.unlock();
      pace.wait();
      sweep.lock();
    }
  }
}

std::unique_ptr<ControllerInterface> open_vfio_user(const DeviceRequest& request) {
  return std::make_unique<VfioUserController>(parse_vfio_user_spec(request.spec, setting::controller),
                                              request.spec, request.gpu, request.timeout_s);
}

}  // namespace doorbell::nvme
