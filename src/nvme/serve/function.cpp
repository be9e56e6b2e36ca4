// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "nvme/serve/function.hpp"

#include <doorbell/error.hpp>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "nvme/identity.hpp"
#include "system/sealed_memory.hpp"
#include "system/sysfs.hpp"

namespace doorbell::nvme {

namespace {

constexpr u32 kNvmeClass = 0x010802;

}  // namespace

ModelFunction::ModelFunction(const ModelConfig& config, const std::string& name, bool share_doorbells)
    : vectors_(config.max_queues + 1) {
  if (config.engine != ModelConfig::Engine::cpu)
    throw Error(name, "its engine is a kernel, which other processes cannot drive", "use engine=cpu");
  if (const u64 bytes = ModelController::register_bytes(config); bytes > reg::doorbells + kDoorbellBytes)
    throw Error(name,
                fmt::format("{} queues with a stride of {} have doorbells beyond one page", config.max_queues,
                            config.stride),
                "use fewer queues or a smaller stride");
  if (share_doorbells) {
    // A client has this file too.
    doorbells_ = sealed_memory("doorbells", reg::doorbells + kDoorbellBytes);
    if (doorbells_.get() < 0) throw Error(name, fmt::format("memory for doorbells: {}", reason(errno)));
  }
  model_.emplace(
      config, name, nullptr,
      ModelPorts{.interrupts = this, .vectors = vectors_, .registers = registers(), .foreign_memory = true});
}

/// Memory of this process alone for the registers, with the shared page behind it.
HostMemory ModelFunction::registers() {
  constexpr u64 kBytes = reg::doorbells + kDoorbellBytes;
  void* const at = mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (at == MAP_FAILED) throw Error("memory for registers", reason(errno));
  HostMemory memory{.base = static_cast<u8*>(at), .bytes = kBytes, .free = [](u8* base, u64 bytes) {
                      munmap(base, bytes);
                    }};
  if (doorbells_.get() >= 0 && mmap(memory.base + reg::doorbells, kDoorbellBytes, PROT_READ | PROT_WRITE,
                                    MAP_SHARED | MAP_FIXED, doorbells_.get(), reg::doorbells) == MAP_FAILED) {
    const int error = errno;
    munmap(at, kBytes);
    throw Error("memory for doorbells", reason(error));
  }
  return memory;
}

vfio_user::PciIdentity ModelFunction::identity() const {
  return {.vendor = kModelVendor,
          .device = 1,
          .subsystem_vendor = kModelVendor,
          .subsystem = 1,
          .revision = 1,
          .class_code = kNvmeClass};
}

vfio_user::Bar0 ModelFunction::bar0() const {
  vfio_user::Bar0 bar{.bytes = kBarBytes};
  if (doorbells_.get() >= 0) {
    bar.area = {reg::doorbells, kDoorbellBytes};
    bar.file = doorbells_.get();
  }
  return bar;
}

int ModelFunction::read(u64 offset, std::span<u8> to) {
  for (std::size_t done = 0; done < to.size();) {
    const u64 at = offset + done, word = at & ~u64{3};
    const u32 value = word < reg::doorbells + kDoorbellBytes ? model_->read32(static_cast<u32>(word)) : 0;
    const std::size_t n = std::min<std::size_t>(to.size() - done, 4 - at % 4);
    std::memcpy(to.data() + done, reinterpret_cast<const u8*>(&value) + at % 4, n);
    done += n;
  }
  return 0;
}

int ModelFunction::write(u64 offset, std::span<const u8> from) {
  if (from.empty()) return 0;
  if (offset % 4 != 0 || (from.size() != 4 && from.size() != 8)) return EINVAL;
  for (std::size_t done = 0; done < from.size(); done += 4) {
    const u64 at = offset + done;
    if (at >= reg::doorbells + kDoorbellBytes) continue;
    u32 value = 0;
    std::memcpy(&value, from.data() + done, sizeof value);
    if (at == reg::cc && (value & cc::shutdown_mask) != 0 &&
        (model_->read32(reg::cc) & cc::shutdown_mask) == 0)
      shutdowns_.fetch_add(1, std::memory_order_relaxed);
    model_->write32(static_cast<u32>(at), value);
  }
  return 0;
}

vfio_user::Device::Way ModelFunction::way_of_write(u64 offset, std::span<const u8> from) const {
  const u64 cc = reg::cc;
  if (offset > cc || offset + from.size() < cc + 4) return Way::at_once;
  u32 value = 0;
  std::memcpy(&value, from.data() + (cc - offset), sizeof value);
  return (value & cc::enable) == 0 ? Way::ends_work : Way::waits;
}

}  // namespace doorbell::nvme
