// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include <doorbell/error.hpp>
#include <doorbell/nvme/controller.hpp>
#include <doorbell/nvme/wire.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <thread>
#include <utility>

#include "nvme/backends.hpp"
#include "nvme/controller_interface.hpp"
#include "system/clock.hpp"

namespace doorbell::nvme {

namespace {

constexpr u32 kAdminEntries = 64;
constexpr double kShutdownLeastS = 1, kShutdownLimitS = 5;

template <class T>
T field(const u8* page, u32 at) {
  T v;
  std::memcpy(&v, page + at, sizeof v);
  return v;
}

std::string text(const u8* page, u32 at, u32 width) {
  std::string s(reinterpret_cast<const char*>(page) + at, width);
  // Padded with spaces by the specification, with zeros by some controllers.
  s.erase(s.find_last_not_of(std::string_view(" \0", 2)) + 1);
  return s;
}

u64 deadline_in(double seconds) {
  return wall_ns() + static_cast<u64>(seconds * 1e9);
}

}  // namespace

IoQueuePair::IoQueuePair(IoQueuePair&& other) noexcept
    : controller_(std::exchange(other.controller_, nullptr)),
      qid_(other.qid_),
      entries_(other.entries_),
      sq_(std::move(other.sq_)),
      cq_(std::move(other.cq_)),
      sq_live_(std::exchange(other.sq_live_, false)),
      cq_live_(std::exchange(other.cq_live_, false)) {}

IoQueuePair::~IoQueuePair() {
  if (controller_ == nullptr) return;
  try {
    delete_sq();
    delete_cq();
  } catch (const std::exception&) {
    // Its memory goes next: one that does not answer must not write there any more.
    controller_->disable();
  }
}

QueuePairMemory IoQueuePair::memory(Initiator who) const {
  const bool on_gpu = who == Initiator::gpu;
  const auto at = [&](const Mapped& m) { return on_gpu ? m.region().device() : m.region().host(); };
  if (at(sq_) == nullptr || at(cq_) == nullptr)
    throw Error(fmt::format("queue {}", qid_),
                on_gpu ? "the GPU cannot reach its memory" : "a CPU cannot reach queues in GPU memory",
                on_gpu ? "put the queues into pinned or GPU memory" : "put the queues into host memory");
  ControllerInterface& interface = interface_of(*controller_);
  const u32 stride = controller_->info().stride;
  const auto doorbell = [&](u64 offset) {
    return on_gpu ? interface.gpu_register(offset) : interface.cpu_register(offset);
  };
  QueuePairMemory m;
  m.sq = reinterpret_cast<Word16*>(at(sq_));
  m.cq = reinterpret_cast<const Word16*>(at(cq_));
  m.entries = entries_;
  m.qid = qid_;
  const u64 sq_offset = sq_doorbell_offset(qid_, stride);
  const u64 cq_offset = cq_doorbell_offset(qid_, stride);
  m.sq_doorbell = doorbell(sq_offset);
  m.cq_doorbell = doorbell(cq_offset);
  if (m.sq_doorbell == nullptr || m.cq_doorbell == nullptr)
    throw Error(fmt::format("the doorbells of {}", interface.name()),
                "this back end cannot map them for the GPU");
  // One page holds the shadows of as many queues as fit at this stride; the rest ring registers.
  if (cq_offset - reg::doorbells + sizeof(u32) <= controller_->shadow_.region().bytes()) {
    const auto word = [&](const Mapped& page, u64 offset) {
      return reinterpret_cast<u32*>(at(page) + (offset - reg::doorbells));
    };
    m.sq_shadow = word(controller_->shadow_, sq_offset);
    m.cq_shadow = word(controller_->shadow_, cq_offset);
    m.sq_eventidx = word(controller_->eventidx_, sq_offset);
    m.cq_eventidx = word(controller_->eventidx_, cq_offset);
  }
  return m;
}

void IoQueuePair::forward_doorbells() {
  if (DoorbellForwarder* const f = interface_of(*controller_).forwarder(); f != nullptr) f->forward(qid_);
}

void IoQueuePair::delete_sq() {
  if (!sq_live_) return;
  sq_live_ = false;
  controller_->admin_ok(delete_queue_command(AdminOpcode::delete_sq, 0, qid_), "Delete I/O Submission Queue");
}

void IoQueuePair::delete_cq() {
  if (!cq_live_) return;
  cq_live_ = false;
  controller_->admin_ok(delete_queue_command(AdminOpcode::delete_cq, 0, qid_), "Delete I/O Completion Queue");
}

ControllerInterface& interface_of(Controller& controller) {
  return *controller.interface_;
}

std::string Controller::kind() const {
  return interface_->kind();
}

std::string Controller::name() const {
  return interface_->name();
}

void Controller::forward_by_initiator(bool on) {
  if (DoorbellForwarder* const f = interface_->forwarder(); f != nullptr) f->by_initiator(on);
}

std::unique_ptr<Controller> Controller::open(const std::string& spec, const OpenOptions& options) {
  return std::make_unique<Controller>(
      open_device({.spec = spec, .gpu = options.gpu, .use = {.gpu_memory = options.gpu_memory}}), options);
}

Controller::Controller(std::unique_ptr<ControllerInterface> interface, const OpenOptions& options)
    : interface_(std::move(interface)), options_(options) {
  try {
    reset_and_enable();
    identify();
    if (options_.shadow_doorbells) configure_shadow_doorbells();
  } catch (...) {
    disable();
    throw;
  }
}

/// The end of the controller is waited for no longer than a command.
double Controller::shutdown_limit_s() const {
  return std::clamp(options_.timeout_s, kShutdownLeastS, kShutdownLimitS);
}

void Controller::disable() noexcept {
  if (!enabled_) return;
  enabled_ = false;
  try {
    if (gone()) return;
    interface_->write32(reg::cc, 0);
    wait_ready(false, shutdown_limit_s());
  } catch (const std::exception&) {
    // Nothing more can be done for a controller that does not stop.
  }
}

Controller::~Controller() {
  if (!enabled_) return;
  // Gone, or reset from elsewhere: there is nothing left to shut down.
  const u32 now = interface_->read32(reg::csts);
  if (now == ~0u || (now & csts::ready) == 0) return;
  if ((now & csts::fatal) != 0) {  // its shutdown may never end
    disable();
    return;
  }
  try {
    interface_->write32(reg::cc, interface_->read32(reg::cc) | cc::shutdown_normal);
    const u64 deadline = deadline_in(shutdown_limit_s());
    while ((interface_->read32(reg::csts) & csts::shutdown_mask) != csts::shutdown_complete && !gone() &&
           wall_ns() < deadline)
      std::this_thread::yield();
    interface_->write32(reg::cc, 0);
    wait_ready(false, shutdown_limit_s());
  } catch (const std::exception&) {
    // Nothing more can be done for a controller that does not stop; its memory stays mapped until
    // the device object, destroyed after this, has taken the mappings down.
  }
}

void Controller::wait_ready(bool ready, double limit_s) {
  const u64 deadline = deadline_in(limit_s);
  for (;;) {
    const u32 csts = interface_->read32(reg::csts);
    if (csts == ~0u)
      throw Error(interface_->name(), "it reads as all ones: the device is gone", {}, ExitCode::data);
    if ((csts & csts::fatal) != 0 && ready)
      throw Error(interface_->name(), "it reports a fatal status (CSTS.CFS) when enabled", {},
                  ExitCode::data);
    if (((csts & csts::ready) != 0) == ready) return;
    if (wall_ns() > deadline)
      throw Error(interface_->name(),
                  fmt::format("CSTS.RDY did not become {} in {} s", ready ? 1 : 0, limit_s), {},
                  ExitCode::data);
    std::this_thread::yield();
  }
}

void Controller::reset_and_enable() {
  const Capabilities cap{interface_->read64(reg::cap)};
  if (cap.raw == ~u64{0})
    throw Error(interface_->name(), "it reads as all ones: the device is gone", {}, ExitCode::data);
  if ((cap.command_sets() & 0x41) == 0)
    throw Error(interface_->name(), "it offers no NVM command set (CAP.CSS)",
                "it may be an administrative controller");
  if (cap.min_page_shift() > 12)
    throw Error(interface_->name(), fmt::format("its smallest page is {} bytes", 1u << cap.min_page_shift()),
                "doorbell uses 4 KiB pages");
  const double limit_s = (cap.timeout_units() + 1) * 0.5;
  const u32 now = interface_->read32(reg::cc);
  if ((now & cc::enable) != 0) {
    // A controller must not be disabled on its way up.
    if ((interface_->read32(reg::csts) & csts::fatal) == 0) wait_ready(true, limit_s);
    interface_->write32(reg::cc, now & ~cc::enable);
  }
  wait_ready(false, limit_s);

  info_.max_queue_entries = cap.max_queue_entries();
  info_.stride = cap.stride();
  info_.version = interface_->read32(reg::vs);
  admin_sq_ = allocate(Place::pageable, u64{kAdminEntries} * kSqeBytes, Access::read);
  admin_cq_ = allocate(Place::pageable, u64{kAdminEntries} * kCqeBytes, Access::write);
  page_ = allocate(Place::pageable, identify::bytes, Access::write);
  interface_->write32(reg::aqa, (kAdminEntries - 1) << 16 | (kAdminEntries - 1));
  interface_->write64(reg::asq, admin_sq_.iova());
  interface_->write64(reg::acq, admin_cq_.iova());
  enabled_ = true;  // even where it does not become ready in time: it may still do so, with these addresses
  const u32 css = (cap.command_sets() & 0x40) != 0 ? 6 : 0;
  interface_->write32(reg::cc,
                      cc::enable | css << cc::css_shift | 6u << cc::iosqes_shift | 4u << cc::iocqes_shift);
  wait_ready(true, limit_s);

  QueuePairMemory m;
  m.sq = reinterpret_cast<Word16*>(admin_sq_.region().host());
  m.cq = reinterpret_cast<const Word16*>(admin_cq_.region().host());
  m.sq_doorbell = interface_->cpu_register(sq_doorbell_offset(0, info_.stride));
  m.cq_doorbell = interface_->cpu_register(cq_doorbell_offset(0, info_.stride));
  m.entries = kAdminEntries;
  admin_ = QueuePair<OneLane>(m);
}

bool Controller::gone() {
  return interface_->read32(reg::csts) == ~0u;
}

Cqe Controller::admin(Sqe command, const char* what) {
  // Its queue is no longer in step, and who tears down must not wait for every queue in turn.
  if (deaf_)
    throw Error(fmt::format("{}: {}", interface_->name(), what), "it has left an earlier command unanswered",
                {}, ExitCode::data);
  command.cid = next_cid_ = static_cast<u16>(next_cid_ + 1) & 0x7fff;
  const OneLane lane;
  admin_.post(lane, 1, [&](u32) { return command; });
  admin_.ring(lane);
  const u64 deadline = deadline_in(options_.timeout_s);
  bool late = false;
  for (u32 spins = 0;; ++spins) {
    const auto polled = admin_.poll(lane);
    if (polled.count == 1) {
      admin_.ring_cq(lane);
      if (polled.mine.cid == command.cid) return polled.mine;
      continue;  // a late answer to a command that was given up on
    }
    if (spins % 64 != 63) continue;
    std::this_thread::yield();
    const u32 status = interface_->read32(reg::csts);
    if (status == ~0u || (status & (csts::ready | csts::fatal)) != csts::ready) {
      deaf_ = true;
      throw Error(fmt::format("{}: {}", interface_->name(), what),
                  status == ~0u                 ? "the device is gone"
                  : (status & csts::fatal) != 0 ? "it reports a fatal status (CSTS.CFS)"
                                                : "another program has reset the controller",
                  {}, ExitCode::data);
    }
    if (late) {
      deaf_ = true;
      throw Error(fmt::format("{}: {}", interface_->name(), what),
                  fmt::format("no completion in {} s", options_.timeout_s), {}, ExitCode::data);
    }
    // A host that was stopped finds the answer when it looks again.
    late = wall_ns() > deadline;
  }
}

Cqe Controller::admin_ok(const Sqe& command, const char* what) {
  const Cqe e = admin(command, what);
  require_success(e, what);
  return e;
}

void Controller::require_success(const Cqe& e, const char* what) const {
  const Status st = status_of(e);
  if (st.ok()) return;
  throw Error(
      fmt::format("{}: {}", interface_->name(), what),
      fmt::format("the controller answers {} ({:#x})", status_name(st.type_and_code()), st.type_and_code()),
      {}, ExitCode::data);
}

void Controller::identify() {
  admin_ok(identify_command(0, Cns::controller, 0, page_.iova()), "Identify Controller");
  const u8* page = page_.region().host();
  info_.serial = text(page, identify::serial, identify::serial_bytes);
  info_.model = text(page, identify::model, identify::model_bytes);
  info_.firmware = text(page, identify::firmware, identify::firmware_bytes);
  const u8 mdts = field<u8>(page, identify::mdts);
  info_.max_transfer_bytes = mdts == 0 || mdts > 40 ? 0 : u64{4096} << mdts;
  info_.max_commands = field<u16>(page, identify::maxcmd);
  info_.shadow_doorbells = (field<u16>(page, identify::oacs) & identify::oacs_doorbell_buffer) != 0;
}

NamespaceInfo Controller::identify_namespace(u32 nsid) {
  const Sqe command = identify_command(0, Cns::name_space, nsid, page_.iova());
  const Cqe answer = admin(command, "Identify Namespace");
  if (status_of(answer).type_and_code() == status::invalid_namespace)
    throw Error(fmt::format("{}: namespace {}", interface_->name(), nsid),
                "the controller has none of this number", "doorbell list shows what is");
  require_success(answer, "Identify Namespace");
  const u8* page = page_.region().host();
  NamespaceInfo n;
  n.nsid = nsid;
  n.blocks = field<u64>(page, identify::nsze);
  if (n.blocks == 0)
    throw Error(fmt::format("{}: namespace {}", interface_->name(), nsid), "it is not active",
                "doorbell list shows what is");
  const u32 lbaf = field<u32>(page, identify::lbaf + 4 * identify::format_in_use(page));
  const u32 shift = lbaf >> 16 & 0xff;
  if ((lbaf & 0xffff) != 0 || field<u8>(page, identify::dps) != 0)
    throw Error(fmt::format("{}: namespace {}", interface_->name(), nsid),
                "it is formatted with metadata or protection information",
                "format it without; doorbell handles neither");
  if (shift < 9 || shift > 16)
    throw Error(fmt::format("{}: namespace {}", interface_->name(), nsid),
                fmt::format("its logical block is 2^{} bytes", shift), "512 to 65536 bytes are handled");
  n.lba_bytes = 1u << shift;
  return n;
}

u32 Controller::request_queues(u32 pairs) {
  const Cqe e = admin_ok(set_queues_command(0, pairs, pairs), "Set Features: Number of Queues");
  return std::min(e.dw0 & 0xffff, e.dw0 >> 16) + 1;
}

void Controller::configure_shadow_doorbells() {
  if (!info_.shadow_doorbells)
    throw Error(interface_->name(), "it has no shadow doorbells (Doorbell Buffer Config)",
                "ring its doorbell registers");
  shadow_ = allocate(Place::pageable, 4096, Access::read_write);
  eventidx_ = allocate(Place::pageable, 4096, Access::read_write);
  admin_ok(doorbell_buffer_command(0, shadow_.iova(), eventidx_.iova()), "Doorbell Buffer Config");
}

IoQueuePair Controller::create_queue_pair(u16 qid, u32 entries, Place sq, Place cq) {
  if (entries < 2 || entries > info_.max_queue_entries)
    throw Error(fmt::format("a queue of {} entries", entries),
                fmt::format("{} takes 2 to {} (CAP.MQES)", interface_->name(), info_.max_queue_entries));
  IoQueuePair q;
  q.controller_ = this;
  q.qid_ = qid;
  q.entries_ = entries;
  q.sq_ = allocate(sq, u64{entries} * kSqeBytes, Access::read);
  q.cq_ = allocate(cq, u64{entries} * kCqeBytes, Access::write);
  admin_ok(create_cq_command(0, qid, entries, q.cq_.iova()), "Create I/O Completion Queue");
  q.cq_live_ = true;
  admin_ok(create_sq_command(0, qid, qid, entries, q.sq_.iova()), "Create I/O Submission Queue");
  q.sq_live_ = true;
  return q;
}

Mapped Controller::allocate(Place place, u64 bytes, Access access) {
  return Mapped(interface_->address_space(), place, bytes, access, options_.gpu);
}

const u32* Controller::status_register(Initiator who) {
  return who == Initiator::gpu ? interface_->gpu_register(reg::csts) : interface_->cpu_register(reg::csts);
}

}  // namespace doorbell::nvme
