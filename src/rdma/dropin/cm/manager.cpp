// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "rdma/dropin/cm/manager.hpp"

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <time.h>

#include <algorithm>
#include <cstring>
#include <random>
#include <thread>

#include "rdma/dropin/hand_out.h"
#include "system/signals_blocked.hpp"

namespace doorbell::cm {

namespace {

constexpr u32 kReceives = 512, kSends = 512;
constexpr std::size_t kGrh = 40;
constexpr std::size_t kSlot = 320;  // GRH and message
/// While timers run, RunningTime wants looks at least that often.
constexpr int kTickMs = 40;

std::atomic<Manager*> current{nullptr};
std::mutex making;

}  // namespace

Manager* Manager::existing() {
  return current.load();
}

Manager& Manager::get() {
  if (Manager* manager = current.load()) return *manager;
  const std::lock_guard lock(making);
  if (current.load() == nullptr) {
    static bool registered = false;
    current.store(new Manager);
    if (!registered) {
      registered = true;
      ::pthread_atfork(
          [] {
            making.lock();
            if (Manager* manager = existing()) manager->mutex.lock();
          },
          [] {
            if (Manager* manager = existing()) manager->mutex.unlock();
            making.unlock();
          },
          [] {
            // The thread stayed with the parent, and so did the devices.
            if (Manager* manager = existing()) {
              manager->abandon();
              manager->mutex.unlock();
            }
            current.store(nullptr);
            making.unlock();
          });
    }
  }
  return *current.load();
}

u64 Manager::clock_ns() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<u64>(now.tv_sec) * 1'000'000'000 + static_cast<u64>(now.tv_nsec);
}

Manager::Manager() : running_(clock_ns()), wake_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  std::random_device random;
  next_id_ = random();
  next_transaction_ = u64{random()} << 32;
}

/// In the child of a fork: peers must notice the parent's end.
void Manager::abandon() {
  wake_.reset();
  for (Id* id : ids_) id->claim.reset();
  for (const auto& port : ports_) port->announced.reset();
  past_.clear();
  watches_.clear();
  watchers_.clear();
}

std::vector<std::unique_ptr<Port>>& Manager::ports() {
  if (opened_) return ports_;
  int count = 0;
  ibv_device** list = ::ibv_get_device_list(&count);
  for (int i = 0; list != nullptr && i < count; ++i) {
    auto port = std::make_unique<Port>();
    port->index = static_cast<u32>(i);
    port->verbs = ::ibv_open_device(list[i]);
    if (port->verbs == nullptr) continue;
    ibv_gid gid{};
    ibv_port_attr attributes{};
    if (::ibv_query_gid(port->verbs, 1, 0, &gid) != 0 ||
        ::ibv_query_device(port->verbs, &port->limits) != 0 ||
        ::ibv_query_port(port->verbs, 1, reinterpret_cast<_compat_ibv_port_attr*>(&attributes)) != 0)
      continue;
    port->address = address_of(gid);
    port->mtu = static_cast<u8>(attributes.active_mtu);
    port->domain = ::ibv_alloc_pd(port->verbs);
    if (port->domain != nullptr) ports_.push_back(std::move(port));
  }
  if (list != nullptr) ::ibv_free_device_list(list);
  opened_ = !ports_.empty();
  if (!opened_) errno = ENODEV;
  return ports_;
}

Port* Manager::port_at(u32 address) {
  for (const auto& port : ports())
    if (port->address == address) return port.get();
  return nullptr;
}

int Manager::start(Port& port) {
  if (port.queue == nullptr) {
    port.channel = ::ibv_create_comp_channel(port.verbs);
    if (port.channel == nullptr) return errno;
    ::fcntl(port.channel->fd, F_SETFL, O_NONBLOCK);
    port.receives = ::ibv_create_cq(port.verbs, kReceives, nullptr, port.channel, 0);
    port.sends = ::ibv_create_cq(port.verbs, kSends, nullptr, nullptr, 0);
    if (port.receives == nullptr || port.sends == nullptr) return errno;
    port.buffers.resize(kReceives * kSlot);
    port.region = ::ibv_reg_mr(port.domain, port.buffers.data(), port.buffers.size(), IBV_ACCESS_LOCAL_WRITE);
    if (port.region == nullptr) return errno;
    ibv_qp_init_attr made{};
    made.send_cq = port.sends;
    made.recv_cq = port.receives;
    made.qp_type = IBV_QPT_UD;
    made.cap = {.max_send_wr = kSends,
                .max_recv_wr = kReceives,
                .max_send_sge = 1,
                .max_recv_sge = 1,
                .max_inline_data = kMessageBytes};
    made.sq_sig_all = 1;
    ibv_qp* queue = ::doorbell_verbs_management_queue(port.domain, &made);
    if (queue == nullptr) return errno;
    ibv_qp_attr to{};
    to.port_num = 1;
    to.qkey = kManagementKey;
    to.qp_state = IBV_QPS_INIT;
    int error = ::ibv_modify_qp(queue, &to, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY);
    to.qp_state = IBV_QPS_RTR;
    if (error == 0) error = ::ibv_modify_qp(queue, &to, IBV_QP_STATE);
    to.qp_state = IBV_QPS_RTS;
    if (error == 0) error = ::ibv_modify_qp(queue, &to, IBV_QP_STATE | IBV_QP_SQ_PSN);
    if (error != 0) return error;
    for (u32 i = 0; i < kReceives; ++i) {
      ibv_sge sge{.addr = reinterpret_cast<u64>(port.buffers.data() + i * kSlot),
                  .length = kSlot,
                  .lkey = port.region->lkey};
      ibv_recv_wr wr{.wr_id = i, .next = nullptr, .sg_list = &sge, .num_sge = 1};
      ibv_recv_wr* bad = nullptr;
      (void)::ibv_post_recv(queue, &wr, &bad);
    }
    ::ibv_req_notify_cq(port.receives, 0);
    port.announced = announce_device(port.address);
    port.queue = queue;
  }
  if (!running_thread_) {
    const SignalsBlocked blocked;
    try {
      std::thread([this] { run(); }).detach();
      running_thread_ = true;
    } catch (const std::exception&) {
    }
    if (!running_thread_) return EAGAIN;
  }
  wake();
  return 0;
}

void Manager::wake() {
  const u64 one = 1;
  (void)!::write(wake_.get(), &one, sizeof one);
}

void Manager::run() {
  std::vector<pollfd> set;
  enum class What { wake, messages, watchers, claim, watcher, watch };
  struct Source {
    What what;
    Port* port;
    u32 peer;
  };
  std::vector<Source> sources;
  std::unique_lock lock(mutex);
  for (;;) {
    const auto add = [&](int fd, Source source) {
      if (fd < 0) return;
      set.push_back({.fd = fd, .events = POLLIN, .revents = 0});
      sources.push_back(source);
    };
    set.clear();
    sources.clear();
    add(wake_.get(), {What::wake, nullptr, 0});
    for (const auto& port : ports_) {
      if (port->queue == nullptr) continue;
      receive(*port);
      ::ibv_req_notify_cq(port->receives, 0);
      receive(*port);
      add(port->channel->fd, {What::messages, port.get(), 0});
      add(port->announced.get(), {What::watchers, port.get(), 0});
    }
    search(lock);
    const u64 time = now();
    bool timers = !searches_.empty();
    for (auto it = connections_.begin(); it != connections_.end();) {
      Connection& connection = *it->second;
      connection.expire(time);
      if (connection.state() == Connection::State::forgotten && connection.owner == nullptr) {
        if (!connection.active())
          called_.erase({connection.peer, connection.remote_id(), connection.datagram()});
        calls_.erase(it->first);
        it = connections_.erase(it);
        continue;
      }
      timers = timers || connection.deadline() != 0;
      ++it;
    }
    for (const Id* id : listeners_) add(id->claim.get(), {What::claim, nullptr, 0});
    end_past(time);
    for (const Past& past : past_) add(past.claim.get(), {What::claim, nullptr, 0});
    timers = timers || !past_.empty();
    for (const Descriptor& watcher : watchers_) add(watcher.get(), {What::watcher, nullptr, 0});
    for (const auto& [peer, descriptor] : watches_) add(descriptor.get(), {What::watch, nullptr, peer});
    lock.unlock();
    (void)::poll(set.data(), set.size(), timers ? kTickMs : -1);
    lock.lock();
    for (std::size_t i = 0; i < set.size(); ++i) {
      if (set[i].revents == 0) continue;
      const int fd = set[i].fd;
      switch (sources[i].what) {
        case What::wake: {
          u64 count = 0;
          (void)!::read(fd, &count, sizeof count);
          break;
        }
        case What::messages: {
          ibv_cq* queue = nullptr;
          void* context = nullptr;
          if (::ibv_get_cq_event(sources[i].port->channel, &queue, &context) == 0)
            ::ibv_ack_cq_events(queue, 1);
          break;
        }
        case What::watchers:
          while (Descriptor watcher = admit(fd)) watchers_.push_back(std::move(watcher));
          break;
        case What::claim:
          // The program may have closed it meanwhile, and the number be another file's.
          if (std::ranges::any_of(listeners_, [fd](const Id* id) { return id->claim.get() == fd; }) ||
              std::ranges::any_of(past_, [fd](const Past& past) { return past.claim.get() == fd; }))
            answer_port(fd, ports_.front()->address);
          break;
        case What::watcher:
          std::erase_if(watchers_, [fd](const Descriptor& one) { return one.get() == fd; });
          break;
        case What::watch: {
          const u64 gone = now();
          for (const auto& [id, connection] : connections_)
            if (connection->peer == sources[i].peer) connection->peer_has_gone(gone);
          watches_.erase(sources[i].peer);
          break;
        }
      }
    }
  }
}

void Manager::receive(Port& port) {
  ibv_wc done[32];
  for (;;) {
    const int count = ::ibv_poll_cq(port.receives, std::size(done), done);
    if (count <= 0) break;
    for (int i = 0; i < count; ++i) {
      u8* slot = port.buffers.data() + done[i].wr_id * kSlot;
      Message message;
      if (done[i].status == IBV_WC_SUCCESS && done[i].byte_len == kGrh + kMessageBytes &&
          done[i].src_qp == kManagementQueuePair && decode({slot + kGrh, kMessageBytes}, message)) {
        // The IPv4 header lies at the end of the 40 bytes; its source is 12 bytes into it.
        u32 source = 0;
        std::memcpy(&source, slot + 20 + 12, sizeof source);
        arrived(port, ntohl(source), message);
      }
      ibv_sge sge{.addr = reinterpret_cast<u64>(slot), .length = kSlot, .lkey = port.region->lkey};
      ibv_recv_wr wr{.wr_id = done[i].wr_id, .next = nullptr, .sg_list = &sge, .num_sge = 1};
      ibv_recv_wr* bad = nullptr;
      (void)::ibv_post_recv(port.queue, &wr, &bad);
    }
  }
}

void Manager::post(Port& port, u32 to, const Message& message) {
  ibv_wc done[32];
  while (::ibv_poll_cq(port.sends, std::size(done), done) > 0) {
  }
  // Whoever sends may have any number of addresses.
  constexpr std::size_t kMostHandles = 4096;
  if (port.handles.size() >= kMostHandles) {
    for (const auto& [address, handle] : port.handles) ::ibv_destroy_ah(handle);
    port.handles.clear();
  }
  ibv_ah*& handle = port.handles[to];
  if (handle == nullptr) {
    ibv_ah_attr attributes{};
    attributes.is_global = 1;
    attributes.port_num = 1;
    attributes.grh.dgid = gid_of(to);
    attributes.grh.hop_limit = 64;
    handle = ::ibv_create_ah(port.domain, &attributes);
    if (handle == nullptr) return;
  }
  std::array<u8, kMessageBytes> bytes;
  encode(message, bytes);
  ibv_sge sge{.addr = reinterpret_cast<u64>(bytes.data()), .length = kMessageBytes, .lkey = 0};
  ibv_send_wr wr{};
  wr.sg_list = &sge;
  wr.num_sge = 1;
  wr.opcode = IBV_WR_SEND;
  wr.send_flags = IBV_SEND_SIGNALED | IBV_SEND_INLINE;
  wr.wr.ud.ah = handle;
  wr.wr.ud.remote_qpn = kManagementQueuePair;
  wr.wr.ud.remote_qkey = kManagementKey;
  ibv_send_wr* bad = nullptr;
  // A full queue loses the message, as a wire may; timers send it again.
  (void)::ibv_post_send(port.queue, &wr, &bad);
}

void Manager::send(Connection& connection, const Message& message) {
  post(*ports_[connection.device], connection.peer, message);
}

Connection& Manager::make_connection() {
  while (next_id_ == 0 || connections_.contains(next_id_)) ++next_id_;
  auto made = std::make_unique<Connection>(*this, next_id_);
  Connection& connection = *made;
  connections_.emplace(next_id_++, std::move(made));
  return connection;
}

void Manager::watch(u32 peer) {
  if (watches_.contains(peer) || port_at(peer) != nullptr) return;
  Descriptor descriptor = watch_device(peer);
  if (descriptor) watches_.emplace(peer, std::move(descriptor));
}

int Manager::call(Id& id, const Message& request) {
  if (const int error = start(*id.port)) return error;
  Connection& connection = make_connection();
  connection.owner = &id;
  connection.device = static_cast<u32>(
      std::ranges::find_if(ports_, [&id](const auto& port) { return port.get() == id.port; }) -
      ports_.begin());
  connection.peer = id.destination;
  id.connection = &connection;
  Message message = request;
  message.transaction = next_transaction_++;
  calls_[connection.local_id()] = message;
  watch(id.destination);
  (void)connection.call(message, now());
  wake();
  return 0;
}

int Manager::listen(Id& id, int backlog) {
  constexpr int kUsual = 1024;
  id.backlog = backlog > 0 ? backlog : kUsual;
  if (std::ranges::find(listeners_, &id) != listeners_.end()) return 0;
  for (const auto& port : ports())
    if (id.any || port.get() == id.port)
      if (const int error = start(*port)) return error;
  if (id.claim) open_port(id.claim);
  listeners_.push_back(&id);
  answer_kept(id);
  wake();
  return 0;
}

void Manager::stop_listening(Id& id) {
  // Less than Connection::kServiceTimeout, for which callers are asked.
  constexpr u64 kAfterwardsNs = 5'000'000'000;
  if (std::erase(listeners_, &id) == 0) return;
  const u64 service = service_of(static_cast<u32>(id.base.ps), id.source_port);
  Past* past = past_of(service);
  if (past == nullptr) past = &past_.emplace_back(Past{.service = service, .claim = Descriptor()});
  if (id.claim) past->claim = std::move(id.claim);
  past->until = now() + kAfterwardsNs;
}

Descriptor Manager::claim(u32 port_space, u16 port) {
  if (Past* past = past_of(service_of(port_space, port)); past != nullptr && past->claim)
    return std::move(past->claim);
  return claim_port(port_space, port);
}

bool Manager::listens(u32 port_space, u16 port) const {
  return std::ranges::any_of(listeners_, [&](const Id* id) {
    return id->claim && static_cast<u32>(id->base.ps) == port_space && id->source_port == port;
  });
}

bool Manager::port_taken(u32 port_space, u16 port, const Id& but) {
  return std::ranges::any_of(ids_, [&](const Id* id) {
    return id != &but && id->source_port == port && static_cast<u32>(id->base.ps) == port_space &&
           id->listener == nullptr && !(id->reuse && but.reuse) &&
           (id->any || but.any || id->source == but.source);
  });
}

u16 Manager::free_port(u32 port_space) {
  // The range that Linux takes for such ports.
  constexpr u32 kFirst = 32768, kCount = 28232;
  std::random_device random;
  const u32 start = random() % kCount;
  for (u32 i = 0; i < kCount; ++i) {
    const auto port = static_cast<u16>(kFirst + (start + i) % kCount);
    const bool used = std::ranges::any_of(ids_, [&](const Id* id) {
      return id->source_port == port && static_cast<u32>(id->base.ps) == port_space;
    });
    if (!used) return port;
  }
  return 0;
}

void Manager::adopt(Id& id) {
  id.manager = this;
  id.psn = std::random_device()() & 0xFFFFFF;
  ids_.insert(&id);
}

void Manager::forget(Id& id) {
  ids_.erase(&id);
  searches_.erase(&id);
  stop_listening(id);
  if (id.connection != nullptr) {
    id.connection->owner = nullptr;
    id.connection->leave(now());
    id.connection = nullptr;
  }
  wake();
}

int Manager::call_when_found(Id& id, const Message& request) {
  if (const int error = start(*id.port)) return error;
  searches_[&id] = {request, now()};
  wake();
  return 0;
}

void Manager::search(std::unique_lock<std::mutex>& lock) {
  // A program that ends one listener and begins the next (perftest) takes that long on a busy machine.
  constexpr u64 kPatienceNs = 1'500'000'000;
  // perftest connects its datagrams at the port by which its ends have met, after a second's sleep.
  constexpr u64 kPatienceForOtherSpaceNs = 5'000'000'000;
  std::vector<Id*> ids;
  for (const auto& [id, search] : searches_) ids.push_back(id);
  for (Id* id : ids) {
    const auto begun = searches_.find(id);
    if (begun == searches_.end()) continue;
    const auto space = static_cast<u32>(id->base.ps);
    const u32 other = space ^ RDMA_PS_TCP ^ RDMA_PS_UDP;
    const u16 port = id->destination_port;
    const u64 waited = now() - begun->second.since;
    bool waits = waited < kPatienceNs;
    u32 found = listens(space, port) ? ports_.front()->address : 0;
    if (found == 0) {
      const bool asks_other = !waits && waited < kPatienceForOtherSpaceNs;
      // Of this process's own ports this thread is the one to answer.
      const bool other_is_own = listens(other, port) || past_of(service_of(other, port)) != nullptr;
      // That process may be slow to answer, and may want this one's mutex meanwhile.
      lock.unlock();
      found = find_port(space, port).value_or(0);
      if (found == 0 && asks_other) waits = other_is_own || find_port(other, port).has_value();
      lock.lock();
    }
    const auto it = searches_.find(id);
    if (it == searches_.end()) continue;
    if (found == 0 && waits) continue;
    Message request = it->second.request;
    searches_.erase(it);
    if (found == 0) {
      deliver(make_event(*id, id->datagram() ? RDMA_CM_EVENT_UNREACHABLE : RDMA_CM_EVENT_REJECTED,
                         id->datagram() ? int{kNoService} : int{kInvalidServiceId}));
      continue;
    }
    set_destination(*id, found, request);
    if (const int error = call(*id, request)) deliver(make_event(*id, RDMA_CM_EVENT_UNREACHABLE, -error));
  }
}

void Manager::at_exit() {
  // A thread that holds the mutex may have ended with the program.
  constexpr int kTries = 200;
  for (int i = 0; !mutex.try_lock(); ++i) {
    if (i == kTries) return;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  for (const auto& [id, connection] : connections_) {
    connection->owner = nullptr;
    connection->leave(now());
  }
  mutex.unlock();
}

}  // namespace doorbell::cm

namespace {

/// Before libibverbs ends, which this library needs.
__attribute__((destructor)) void at_exit() {
  if (doorbell::cm::Manager* manager = doorbell::cm::Manager::existing()) manager->at_exit();
}

}  // namespace
