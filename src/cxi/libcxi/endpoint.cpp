// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "cxi/libcxi/endpoint.hpp"

#include <doorbell/error.hpp>
#include <doorbell/memory_order.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <vector>

#include "cxi/libcxi/gpu_pages.hpp"
#include "cxi/libcxi/layout.hpp"
#include "cxi/settings.hpp"
#include "system/descriptor.hpp"

namespace doorbell::cxi {

using Call = CallError::Call;

namespace {

constexpr u64 kMaxEventBytes = u64{1} << 31;
constexpr u64 kPage = 4096;
constexpr u64 kCounterBytes = 256;  // of the doorbell page: four registers, 64 bytes apart
constexpr u32 kResetSuccess = 128 / sizeof(u64);
constexpr u32 kResetFailure = 192 / sizeof(u64);

std::string hint_for(Call call, int code) {
  if (code == ENOMEM && call == Call::map) return "raise the locked-memory limit: ulimit -l unlimited";
  if (code == EPERM || code == EACCES)
    return "the service may be for other users or groups; cxi_service list shows its members";
  if (code == ENOSPC || code == ENOMEM || code == EBUSY)
    return "the service's share of the NIC may be used up; cxi_service list shows its limits";
  return {};
}

[[noreturn]] void refuse(Call call, int rc, const std::string& what, const std::string& hint) {
  const int code = rc < 0 ? -rc : rc;
  throw CallError(call, code, what, hint.empty() ? hint_for(call, code) : hint);
}

/// Returns the object that `make` makes; errors name `what`.
template <class T, class Make>
Owned<T> made(Call call, const std::string& what, int (*destroy)(T*), const Make& make,
              const std::string& hint = {}) {
  T* object = nullptr;
  if (const int rc = make(&object); rc != 0) refuse(call, rc, what, hint);
  check_made(object, what);
  return Owned<T>(object, destroy);
}

LibcxiLibrary load(const std::string& title) {
  try {
    return {};
  } catch (const Error& e) {
    throw CallError(Call::open, ELIBACC, fmt::format("{}: {}", title, e.what()), e.hint(), ExitCode::absent);
  }
}

std::string devices_here() {
  std::string names;
  for (const CxiDeviceFacts& d : cxi_devices()) names += (names.empty() ? "" : ", ") + d.name;
  return names.empty() ? "no CXI device is here; cxi-model0 is one in software"
                       : fmt::format("the CXI devices are {}", names);
}

libcxi::OpenNic* open_device(const LibcxiContext& c) {
  const u32 number = cxi_device_number(c.name);
  libcxi::OpenNic* nic = nullptr;
  const int rc = c.cxi.open_device(number, &nic);
  if (rc == 0) return nic;
  const int code = rc < 0 ? -rc : rc;
  const bool absent = code == ENOENT || code == ENODEV || code == ENXIO;
  throw CallError(Call::open, code, c.title,
                  absent ? devices_here() : fmt::format("it needs /dev/{}, readable and writable", c.name),
                  absent ? ExitCode::absent : ExitCode::usage);
}

libcxi::Service get_service(const LibcxiContext& c, u32 service) {
  libcxi::Service s = {};
  if (const int rc = c.cxi.get_svc(c.nic.get(), service, &s); rc != 0) {
    const int code = rc < 0 ? -rc : rc;
    throw CallError(Call::service, code, fmt::format("service {} of {}", service, c.name),
                    "cxi_service list shows the services");
  }
  return s;
}

bool restricts_vnis(const libcxi::Service& s) {
  return (s.flags & libcxi::Service::kRestrictedVnis) != 0;
}

/// Chooses a VNI. A service that restricts no VNI uses the first VNI of the default service if that service
/// has a restriction, else VNI 1.
u16 choose_vni(const LibcxiContext& c, u32 service) {
  libcxi::Service s = get_service(c, service);
  u32 whose = service;
  if (!restricts_vnis(s) && service != libcxi::kDefaultService) {
    whose = libcxi::kDefaultService;
    s = get_service(c, whose);
  }
  if (!restricts_vnis(s)) return 1;
  if (s.vnis[0] == 0)
    throw Error(fmt::format("service {} of {}", whose, c.name), "its first VNI is 0, which is none",
                "give the service a VNI, or name another one");
  return s.vnis[0];
}

Owned<libcxi::Lni> alloc_lni(const LibcxiContext& c, u32 service) {
  return made<libcxi::Lni>(Call::other, fmt::format("an LNI of service {} of {}", service, c.name),
                           c.cxi.destroy_lni,
                           [&](auto** out) { return c.cxi.alloc_lni(c.nic.get(), out, service); });
}

Owned<libcxi::Domain> alloc_domain(const LibcxiContext& c, libcxi::Lni* lni, u16 vni) {
  auto domain = made<libcxi::Domain>(
      Call::other, fmt::format("a domain in VNI {} of {}", vni, c.name), c.cxi.destroy_domain,
      [&](auto** out) { return c.cxi.alloc_domain(lni, vni, libcxi::kAnyPid, out); });
  check(*domain, vni, c.nic->pid_bits);
  return domain;
}

Owned<libcxi::Cp> alloc_profile(const LibcxiContext& c, libcxi::Lni* lni, u16 vni) {
  auto profile =
      made<libcxi::Cp>(Call::other, fmt::format("a communication profile in VNI {} of {}", vni, c.name),
                       c.cxi.destroy_cp, [&](auto** out) {
                         using namespace libcxi;
                         return c.cxi.alloc_trig_cp != nullptr
                                    ? c.cxi.alloc_trig_cp(lni, vni, kBestEffort, kDefaultType, kAnyLcid, out)
                                    : c.cxi.alloc_cp(lni, vni, kBestEffort, kDefaultType, out);
                       });
  check(*profile, vni);
  return profile;
}

u32 map_flags(Access access) {
  u32 flags = libcxi::kMapPin;
  if (allows(access, Access::read)) flags |= libcxi::kMapRead;
  if (allows(access, Access::write)) flags |= libcxi::kMapWrite;
  return flags;
}

class LibcxiMemory final : public MemoryDescriptor {
 public:
  LibcxiMemory(std::shared_ptr<const LibcxiProcess> process, const Region& region, Access access)
      : process_(std::move(process)), md_(process_->map(region, access)) {
    const u8* const base = region.place() == Place::gpu ? region.device() : region.host();
    iova_ = md_->iova + (reinterpret_cast<u64>(base) - md_->va);
    lac_ = md_->lac;
    bytes_ = region.bytes();
  }

 private:
  std::shared_ptr<const LibcxiProcess> process_;
  Owned<libcxi::Md> md_;
};

class LibcxiEventQueue final : public EventQueueObject {
 public:
  LibcxiEventQueue(std::shared_ptr<const LibcxiProcess> process, u64 bytes, Place place)
      : process_(std::move(process)),
        buffer_(place, bytes, process_->context->gpu),
        md_(process_->map(buffer_, Access::read_write)),
        eq_(alloc()) {}

  [[nodiscard]] EventQueueMemory memory(Initiator initiator) override;
  [[nodiscard]] libcxi::Eq* eq() const { return eq_.get(); }

 private:
  [[nodiscard]] Owned<libcxi::Eq> alloc() const;

  std::shared_ptr<const LibcxiProcess> process_;
  Region buffer_;
  Owned<libcxi::Md> md_;
  Owned<libcxi::Eq> eq_;
  GpuPages pages_{process_->context->name, process_->context->gpu};
};

Owned<libcxi::Eq> LibcxiEventQueue::alloc() const {
  const LibcxiContext& c = *process_->context;
  libcxi::EqAttributes attributes = {};
  attributes.queue = buffer_.host();
  attributes.bytes = buffer_.bytes();
  attributes.flags = libcxi::kEqNoCombining;
  auto eq = made<libcxi::Eq>(
      Call::other, fmt::format("an event queue of {} bytes on {}", buffer_.bytes(), c.name),
      c.cxi.destroy_evtq, [&](auto** out) {
        return c.cxi.alloc_evtq(process_->lni.get(), md_.get(), &attributes, nullptr, nullptr, out);
      });
  check(*eq, attributes);
  return eq;
}

EventQueueMemory LibcxiEventQueue::memory(Initiator initiator) {
  EventQueueMemory m{.events = eq_->events,
                     .csr = eq_->csr,
                     .bytes = static_cast<u32>(buffer_.bytes()),
                     .index = eq_->index};
  if (initiator == Initiator::gpu) {
    m.csr = pages_.give(m.csr, sizeof(u64), GpuPages::Kind::registers);
    m.events = buffer_.device();
  }
  return m;
}

libcxi::Eq* eq_of(EventQueueObject* events) {
  if (events == nullptr) return nullptr;
  auto* const ours = dynamic_cast<LibcxiEventQueue*>(events);
  if (ours == nullptr) throw Error("the event queue", "it belongs to a device of another kind");
  return ours->eq();
}

class LibcxiCommandQueue final : public CommandQueueObject {
 public:
  LibcxiCommandQueue(std::shared_ptr<const LibcxiProcess> process, const CommandQueueShape& shape)
      : process_(std::move(process)),
        triggered_(shape.kind == CommandQueueKind::triggered),
        buffer_(shape.queue_memory == Place::gpu ? buffer_for(shape.slots) : Region()),
        cq_(alloc(shape)) {}

  [[nodiscard]] CommandQueueMemory memory(Initiator initiator) override;

 private:
  [[nodiscard]] Region buffer_for(u32 slots) const;
  [[nodiscard]] Owned<libcxi::Cq> alloc(const CommandQueueShape& shape) const;
  [[nodiscard]] Owned<libcxi::Cq> alloc_in_buffer(libcxi::CqOptions options, libcxi::Eq* eq) const;

  std::shared_ptr<const LibcxiProcess> process_;
  bool triggered_;
  Region buffer_;  ///< in GPU memory; none: the driver's own
  Owned<libcxi::Cq> cq_;
  GpuPages pages_{process_->context->name, process_->context->gpu};
};

/// As the driver rounds: a power of two in pages.
u32 whole_slots(u32 asked) {
  u32 slots = kMinSlots;
  while (slots < asked) slots *= 2;
  return slots;
}

libcxi::CqOptions options_of(const CommandQueueShape& shape, u32 lcid) {
  libcxi::CqOptions options = {};
  options.slots = shape.slots;
  if (shape.kind == CommandQueueKind::target) return options;
  options.flags = libcxi::kCqTransmit;
  if (shape.kind == CommandQueueKind::triggered) options.flags |= libcxi::kCqTriggered;
  options.lcid = lcid;
  return options;
}

/// GPU memory for a queue, as the driver leaves its own: zeros, and the status of one that has just been
/// made, which the library does not write there.
Region LibcxiCommandQueue::buffer_for(u32 slots) const {
  const u64 bytes = u64{whole_slots(slots)} * kSlotBytes;
  Region buffer(Place::gpu, bytes, process_->context->gpu);
  if (reinterpret_cast<u64>(buffer.device()) % kPage != 0)
    throw Error("a command queue in GPU memory", "the GPU's memory does not begin at a page",
                "use host memory");
  const std::vector<u8> zeros(bytes);
  buffer.write(0, zeros.data(), bytes);
  CommandQueueStatus status;
  status.rd_ptr = kStatusSlots;
  status.return_code = ReturnCode::ok;
  buffer.write(0, pack(status).w, sizeof pack(status).w);
  return buffer;
}

Owned<libcxi::Cq> LibcxiCommandQueue::alloc_in_buffer(libcxi::CqOptions options, libcxi::Eq* eq) const {
  const LibcxiContext& c = *process_->context;
  options.slots = whole_slots(options.slots);
  const Descriptor file(buffer_.gpu()->export_dmabuf(buffer_.device(), buffer_.bytes()));
  const libcxi::CqBufferOptions with{.options = options,
                                     .buffer = buffer_.device(),
                                     .is_host_memory = false,
                                     .dmabuf_fd = file.get(),
                                     .dmabuf_offset = 0};
  auto cq = made<libcxi::Cq>(
      Call::other, fmt::format("a command queue of {} slots in GPU memory on {}", options.slots, c.name),
      c.cxi.destroy_cmdq,
      [&](auto** out) { return c.cxi.alloc_buf_cmdq(process_->lni.get(), eq, &with, out); },
      "the driver must know queues in memory of the caller (symbol set 1.11), and the GPU's memory must be in one "
      "piece for the NIC; use host memory");
  check_in_buffer(*cq, options.slots);
  return cq;
}

Owned<libcxi::Cq> LibcxiCommandQueue::alloc(const CommandQueueShape& shape) const {
  const LibcxiContext& c = *process_->context;
  const libcxi::CqOptions options = options_of(shape, process_->profile->lcid);
  libcxi::Eq* const eq = eq_of(shape.events);
  if (buffer_.bytes() > 0) return alloc_in_buffer(options, eq);
  auto cq = made<libcxi::Cq>(
      Call::other, fmt::format("a command queue of {} slots on {}", shape.slots, c.name), c.cxi.destroy_cmdq,
      [&](auto** out) { return c.cxi.alloc_cmdq(process_->lni.get(), eq, &options, out); });
  check(*cq, shape.slots);
  return cq;
}

CommandQueueMemory LibcxiCommandQueue::memory(Initiator initiator) {
  CommandQueueMemory m{.ring = reinterpret_cast<Word16*>(cq_->ring),
                       .launch = reinterpret_cast<u8*>(cq_->wp_address),
                       .slots = cq_->slots,
                       .index = cq_->index,
                       .triggered = triggered_};
  if (buffer_.bytes() > 0) {
    if (initiator == Initiator::cpu)
      throw Error(fmt::format("a command queue on {}", process_->context->name),
                  "it lies in GPU memory, which a CPU cannot write", "use host memory");
    m.ring = reinterpret_cast<Word16*>(buffer_.device());
    m.launch = pages_.give(m.launch, kLaunchBytes, GpuPages::Kind::registers);
  } else if (initiator == Initiator::gpu) {
    m.ring = pages_.give(m.ring, u64{m.slots} * kSlotBytes, GpuPages::Kind::memory);
    m.launch = pages_.give(m.launch, kLaunchBytes, GpuPages::Kind::registers);
  }
  return m;
}

class LibcxiCounter final : public CounterObject {
 public:
  /// The driver pins the write-back itself, so no memory descriptor is needed.
  LibcxiCounter(std::shared_ptr<const LibcxiProcess> process, bool writeback, Place place)
      : process_(std::move(process)),
        writeback_(writeback ? Region(place, sizeof(u64), process_->context->gpu) : Region()),
        ct_(alloc()) {
    store64_relaxed(ct_->doorbell + kResetSuccess, 0);
    store64_relaxed(ct_->doorbell + kResetFailure, 0);
  }

  [[nodiscard]] CounterMemory memory(Initiator initiator) override;

 private:
  [[nodiscard]] Owned<libcxi::Ct> alloc() const;

  std::shared_ptr<const LibcxiProcess> process_;
  Region writeback_;
  Owned<libcxi::Ct> ct_;
  GpuPages pages_{process_->context->name, process_->context->gpu};
};

Owned<libcxi::Ct> LibcxiCounter::alloc() const {
  const LibcxiContext& c = *process_->context;
  void* const writeback = writeback_.place() == Place::gpu ? writeback_.device() : writeback_.host();
  auto ct = made<libcxi::Ct>(Call::other, fmt::format("a counter on {}", c.name), c.cxi.destroy_ct,
                             [&](auto** out) { return c.cxi.alloc_ct(process_->lni.get(), writeback, out); });
  check(*ct, writeback);
  return ct;
}

CounterMemory LibcxiCounter::memory(Initiator initiator) {
  CounterMemory m{
      .doorbell = ct_->doorbell, .writeback = reinterpret_cast<u64*>(writeback_.host()), .index = ct_->index};
  if (initiator == Initiator::gpu) {
    m.doorbell = pages_.give(m.doorbell, kCounterBytes, GpuPages::Kind::registers);
    m.writeback = reinterpret_cast<u64*>(writeback_.device());
  } else if (writeback_.place() == Place::gpu) {
    throw Error(fmt::format("a counter's write-back on {}", process_->context->name),
                "it lies in GPU memory, which a CPU cannot read", "use host memory");
  }
  return m;
}

class LibcxiPortalsEntry final : public PortalsEntry {
 public:
  LibcxiPortalsEntry(std::shared_ptr<const LibcxiProcess> process, libcxi::Eq* events, u32 pid_offset,
                     bool matching)
      : process_(std::move(process)), pte_(alloc(events, matching)), map_(map(pid_offset)) {
    index_ = pte_->index;
  }

 private:
  [[nodiscard]] Owned<libcxi::Pte> alloc(libcxi::Eq* events, bool matching) const;
  [[nodiscard]] Owned<libcxi::PteMap> map(u32 pid_offset) const;

  std::shared_ptr<const LibcxiProcess> process_;
  Owned<libcxi::Pte> pte_;
  Owned<libcxi::PteMap> map_;
};

Owned<libcxi::Pte> LibcxiPortalsEntry::alloc(libcxi::Eq* events, bool matching) const {
  const LibcxiContext& c = *process_->context;
  u64 options = matching ? libcxi::kPteMatching : libcxi::kPteNonMatching;
  auto pte = made<libcxi::Pte>(
      Call::other, fmt::format("a portals entry on {}", c.name), c.cxi.destroy_pte,
      [&](auto** out) { return c.cxi.alloc_pte(process_->lni.get(), events, &options, out); });
  check(*pte);
  return pte;
}

Owned<libcxi::PteMap> LibcxiPortalsEntry::map(u32 pid_offset) const {
  const LibcxiContext& c = *process_->context;
  return made<libcxi::PteMap>(
      Call::other,
      fmt::format("portals entry {} at offset {} of PID {} on {}", pte_->index, pid_offset,
                  process_->domain->pid, c.name),
      c.cxi.unmap_pte,
      [&](auto** out) { return c.cxi.map_pte(pte_.get(), process_->domain.get(), pid_offset, false, out); });
}

}  // namespace

LibcxiContext::LibcxiContext(const std::string& spec, std::shared_ptr<gpu::Gpu> for_queues)
    : name(fmt::format("cxi{}", cxi_device_number(spec, setting::device))),
      title(fmt::format("{} {}", setting::device, name)),
      gpu(std::move(for_queues)),
      cxi(load(title)),
      nic(open_device(*this), cxi.close_device) {
  check_made(nic.get(), fmt::format("CXI device {}", name));
  check(*nic, cxi_device_number(name));
}

LibcxiProcess::LibcxiProcess(std::shared_ptr<const LibcxiContext> opened, u32 service)
    : context(std::move(opened)),
      vni(choose_vni(*context, service)),
      lni(alloc_lni(*context, service)),
      domain(alloc_domain(*context, lni.get(), vni)),
      profile(alloc_profile(*context, lni.get(), vni)) {}

Owned<libcxi::Md> LibcxiProcess::map(const Region& region, Access access) const {
  const LibcxiContext& c = *context;
  u8* base = region.host();
  u32 flags = map_flags(access);
  Descriptor file;
  libcxi::MdHints hints = {};
  const char* hint = "";
  if (region.place() == Place::gpu) {
    base = region.device();
    flags |= libcxi::kMapDevice;
    file = Descriptor(region.gpu()->export_dmabuf(base, region.bytes()));
    hints.dmabuf_fd = file.get();
    hints.dmabuf_valid = true;
    hint = "the NIC's and the GPU's drivers must both know dma-buf";
  }
  auto md = made<libcxi::Md>(
      Call::map,
      fmt::format("mapping {} bytes of {} for {}", region.bytes(), doorbell::name(region.place()), c.name),
      c.cxi.unmap,
      [&](auto** out) {
        return c.cxi.map(lni.get(), base, region.bytes(), flags, hints.dmabuf_valid ? &hints : nullptr, out);
      },
      hint);
  check(*md, reinterpret_cast<u64>(base), region.bytes());
  return md;
}

Address LibcxiEndpoint::address() const {
  const LibcxiProcess& p = *process_;
  const libcxi::OpenNic& nic = *p.context->nic;
  return {.nid = nic.nid, .pid = p.domain->pid, .pid_bits = nic.pid_bits, .vni = p.vni};
}

std::unique_ptr<MemoryDescriptor> LibcxiEndpoint::map(const Region& region, Access access) {
  return std::make_unique<LibcxiMemory>(process_, region, access);
}

std::unique_ptr<EventQueueObject> LibcxiEndpoint::create_event_queue(u64 bytes, Place place) {
  if (place == Place::gpu)
    throw Error("an event queue in GPU memory", "libcxi clears it with the CPU", "use host memory");
  if (bytes == 0 || bytes > kMaxEventBytes)
    throw Error(fmt::format("an event queue of {} bytes", bytes),
                fmt::format("the size is not in 1..{}", kMaxEventBytes));
  return std::make_unique<LibcxiEventQueue>(process_, bytes, place);
}

std::unique_ptr<CommandQueueObject> LibcxiEndpoint::create_command_queue(const CommandQueueShape& shape) {
  // Of the process's own host memory the driver takes only what is physically in one piece.
  if (shape.queue_memory != Place::pageable && shape.queue_memory != Place::gpu)
    throw Error(fmt::format("a command queue in {}", name(shape.queue_memory)),
                "the driver of a Cassini allocates command queues in host memory of its own",
                "use host memory");
  if (shape.queue_memory == Place::gpu && process_->context->cxi.alloc_buf_cmdq == nullptr)
    throw Error("a command queue in GPU memory",
                "this libcxi is older than symbol set 1.11, where cxil_alloc_buf_cmdq came",
                "use host memory");
  if (shape.queue_memory == Place::gpu && process_->context->gpu == nullptr)
    throw Error("a command queue in GPU memory", "the device was opened without a GPU", "use host memory");
  if (shape.slots == 0 || shape.slots > kMaxSlots)
    throw Error(fmt::format("a command queue of {} slots", shape.slots),
                fmt::format("the number is not in 1..{}", kMaxSlots));
  return std::make_unique<LibcxiCommandQueue>(process_, shape);
}

std::unique_ptr<CounterObject> LibcxiEndpoint::create_counter(bool writeback, Place place) {
  return std::make_unique<LibcxiCounter>(process_, writeback, place);
}

std::unique_ptr<PortalsEntry> LibcxiEndpoint::create_portals_entry(EventQueueObject& events, u32 pid_offset,
                                                                   bool matching) {
  return std::make_unique<LibcxiPortalsEntry>(process_, eq_of(&events), pid_offset, matching);
}

}  // namespace doorbell::cxi
