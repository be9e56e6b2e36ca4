// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "rdma/verbs/context.hpp"

#include <doorbell/error.hpp>
#include <doorbell/memory_order.hpp>
#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>

#include <algorithm>
#include <cerrno>

#include "rdma/settings.hpp"
#include "system/sysfs.hpp"
#include "system/thread.hpp"

namespace doorbell::rdma {

namespace {

/// A device in messages, as its user names it; without a name it is the only device.
std::string title_of(const VerbsConfig& c) {
  return setting::device + " " + (c.device.empty() ? "verbs" : c.device);
}
/// The same for the device that has been found.
std::string title_of(const RdmaDeviceFacts& facts) {
  return setting::device + " " + facts.name;
}

/// The devices that libibverbs shows; the list is freed with this object.
class DeviceList {
 public:
  /// `wanted`: the device to find, for error messages.
  DeviceList(const VerbsLibrary& verbs, const VerbsConfig& wanted)
      : verbs_(verbs), list_(verbs.get_device_list(&count_)) {
    if (list_ != nullptr) return;
    const int error = errno;
    if (error == ENOSYS)  // libibverbs without /sys/class/infiniband
      throw Error(title_of(wanted), "this kernel has no RDMA devices",
                  "load the NIC's driver, or 'rdma link add rxe0 type rxe netdev NAME' for soft-RoCE",
                  ExitCode::absent);
    verbs_failed("the list of RDMA devices", error);
  }
  ~DeviceList() { verbs_.free_device_list(list_); }
  DeviceList(const DeviceList&) = delete;
  DeviceList& operator=(const DeviceList&) = delete;

  /// The device of this name, or the only device if the name is empty.
  [[nodiscard]] ibv_device* find(const std::string& wanted) const {
    if (wanted.empty()) return count_ == 1 ? list_[0] : nullptr;
    for (int i = 0; i < count_; ++i)
      if (wanted == list_[i]->name) return list_[i];
    return nullptr;
  }
  [[nodiscard]] std::vector<std::string> names() const {
    std::vector<std::string> all;
    for (int i = 0; i < count_; ++i) all.emplace_back(list_[i]->name);
    return all;
  }

 private:
  const VerbsLibrary& verbs_;
  int count_ = 0;
  ibv_device** list_;
};

[[noreturn]] void not_found(const VerbsConfig& wanted, const std::vector<std::string>& names) {
  if (names.empty()) throw Error(title_of(wanted), verbs_status().detail, {}, ExitCode::absent);
  const std::string have = fmt::format("the devices are {}", fmt::join(names, ", "));
  if (wanted.device.empty()) throw Error(title_of(wanted), "there are several", "name one: " + have);
  throw Error(title_of(wanted), "libibverbs shows none of this name", have, ExitCode::absent);
}

/// Lower is better.
int rank(const ibv_gid_entry& e) {
  const u8* raw = e.gid.raw;
  const bool ipv4 =
      std::all_of(raw, raw + 10, [](u8 b) { return b == 0; }) && raw[10] == 0xff && raw[11] == 0xff;
  const bool link_local = raw[0] == 0xfe && (raw[1] & 0xc0) == 0x80;
  if (e.gid_type != IBV_GID_TYPE_ROCE_V2) return 3;
  return ipv4 ? 0 : link_local ? 2 : 1;
}

}  // namespace

void verbs_failed(const std::string& what, int error, const std::string& hint) {
  throw Error(what, reason(error), hint);
}

const ibv_gid_entry* preferred_gid(const std::vector<ibv_gid_entry>& entries) {
  const auto best = std::min_element(entries.begin(), entries.end(), [](const auto& a, const auto& b) {
    return std::pair(rank(a), a.gid_index) < std::pair(rank(b), b.gid_index);
  });
  return best == entries.end() ? nullptr : &*best;
}

VerbsContext::VerbsContext(const VerbsConfig& config) : sysfs(config.sysfs) {
  try {
    open(config);
    choose_port(config);
    choose_gid(config);
    pd = verbs.alloc_pd(context);
    if (pd == nullptr) verbs_failed(fmt::format("a protection domain of {}", facts.name), errno);
  } catch (...) {
    close();
    throw;
  }
}

VerbsContext::~VerbsContext() {
  close();
}

void VerbsContext::close() noexcept {
  if (pd != nullptr) verbs.dealloc_pd(pd);
  if (context != nullptr) verbs.close_device(context);
}

void VerbsContext::open(const VerbsConfig& config) {
  const DeviceList list(verbs, config);
  ibv_device* device = list.find(config.device);
  if (device == nullptr) not_found(config, list.names());
  facts = rdma_device_facts(device->name, config.sysfs);
  context = verbs.open_device(device);
  if (context == nullptr)
    verbs_failed(fmt::format("RDMA device {}", facts.name), errno,
                 fmt::format("it needs /dev/infiniband/{}, readable and writable", device->dev_name));
  if (device->transport_type == IBV_TRANSPORT_IWARP)
    throw Error(fmt::format("RDMA device {}", facts.name),
                "it is an iWARP device, whose queue pairs only the RDMA connection manager connects",
                "use an InfiniBand or RoCE device");
  if (const int rc = verbs.query_device(context, &attributes); rc != 0)
    verbs_failed(fmt::format("the attributes of {}", facts.name), rc);
}

ibv_port_attr VerbsContext::query_port(u32 number) const {
  ibv_port_attr attr = {};
  const int rc =
      verbs.query_port(context, static_cast<u8>(number), reinterpret_cast<_compat_ibv_port_attr*>(&attr));
  if (rc != 0) verbs_failed(fmt::format("port {} of {}", number, facts.name), rc);
  return attr;
}

void VerbsContext::choose_port(const VerbsConfig& config) {
  const u32 wanted = config.port;
  const u32 count = attributes.phys_port_cnt;
  if (wanted > count)
    throw Error(title_of(facts) + ": port",
                fmt::format("{} has ports 1..{}, not {}", facts.name, count, wanted));
  for (u32 n = wanted != 0 ? wanted : 1; n <= (wanted != 0 ? wanted : count); ++n) {
    port = n;
    port_attributes = query_port(n);
    if (port_attributes.state == IBV_PORT_ACTIVE) return;
  }
  throw Error(fmt::format("RDMA device {}", facts.name),
              wanted != 0 ? fmt::format("port {} is not active", wanted) : "it has no active port",
              "bring its link up (RoCE: ip link set INTERFACE up)");
}

void VerbsContext::choose_gid(const VerbsConfig& config) {
  const int wanted = config.gid;
  std::vector<ibv_gid_entry> entries(static_cast<size_t>(std::max(port_attributes.gid_tbl_len, 1)) *
                                     std::max<u32>(attributes.phys_port_cnt, 1));
  const ssize_t n = verbs.query_gid_table(context, entries.data(), entries.size(), 0, sizeof entries[0]);
  if (n < 0) verbs_failed(fmt::format("the GIDs of {}", facts.name), static_cast<int>(-n));
  entries.resize(static_cast<size_t>(n));
  std::erase_if(entries, [&](const ibv_gid_entry& e) {
    return e.port_num != port || (wanted >= 0 && e.gid_index != static_cast<u32>(wanted));
  });
  const ibv_gid_entry* best = preferred_gid(entries);
  if (best != nullptr) {
    gid = *best;
    return;
  }
  if (wanted >= 0)
    throw Error(title_of(facts) + ": gid",
                fmt::format("port {} of {} has no GID {}", port, facts.name, wanted),
                fmt::format("look into /sys/class/infiniband/{}/ports/{}/gids", facts.name, port));
  if (ethernet())
    throw Error(fmt::format("RDMA device {}", facts.name), fmt::format("port {} has no GID", port),
                "give its network interface an address");
}

VerbsEvents::VerbsEvents(std::shared_ptr<const VerbsContext> context)
    : context_(std::move(context)), wake_(::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)) {
  const int fd = context_->context->async_fd;
  if (wake_.get() < 0 || ::fcntl(fd, F_SETFL, ::fcntl(fd, F_GETFL) | O_NONBLOCK) != 0)
    verbs_failed(fmt::format("the events of {}", context_->facts.name), errno);
  thread_ = make_thread("events of an RDMA device", [this] { run(); });
  ::pthread_setname_np(thread_.native_handle(), "rdma-events");
}

VerbsEvents::~VerbsEvents() {
  const u64 one = 1;
  [[maybe_unused]] const ssize_t written = ::write(wake_.get(), &one, sizeof one);
  thread_.join();
}

void VerbsEvents::run() {
  pollfd fds[] = {{context_->context->async_fd, POLLIN, 0}, {wake_.get(), POLLIN, 0}};
  while (::poll(fds, 2, -1) >= 0 || errno == EINTR) {
    if (fds[1].revents != 0) return;
    if ((fds[0].revents & POLLIN) != 0) drain();
    // A device that was pulled out has no more events to read.
    else if (fds[0].revents != 0) {
      store_release(&alive_, 0);
      fds[0].fd = -1;
    }
  }
}

void VerbsEvents::drain() {
  ibv_async_event event = {};
  while (context_->verbs.get_async_event(context_->context, &event) == 0) {
    const u32 kind = std::min(static_cast<u32>(event.event_type), kKinds - 1);
    if (event.event_type == IBV_EVENT_DEVICE_FATAL) store_release(&alive_, 0);
    context_->verbs.ack_async_event(&event);
    __atomic_add_fetch(&counts_[kind], 1, __ATOMIC_RELAXED);
  }
}

nlohmann::ordered_json VerbsEvents::counts() const {
  auto all = nlohmann::ordered_json::object();
  for (u32 kind = 0; kind < kKinds; ++kind) {
    const u32 n = load_relaxed(&counts_[kind]);
    if (n != 0) all[context_->verbs.event_type_str(static_cast<ibv_event_type>(kind))] = n;
  }
  return all;
}

}  // namespace doorbell::rdma
