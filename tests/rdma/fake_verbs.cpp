// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// A libibverbs.so.1 that needs no device: it lists the devices it is given, counts the objects that exist,
// and remembers the last attributes of a queue pair. No data moves.
//
// Environment variables, which are read at every call, control it:
//   FAKE_VERBS_DEVICES=a,b     devices shown (mlx5_0); empty: none
//   FAKE_VERBS_FAIL=CALL=ERRNO that call fails
//   FAKE_VERBS_IWARP=1         all are iWARP devices
//   FAKE_VERBS_PORTS=ad        states of their ports: active, down (a)
//   FAKE_VERBS_GIDS=N          valid GIDs of port 1 (3); the last one is RoCE v2 over IPv4
#include <infiniband/verbs.h>

#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#undef ibv_query_port
#undef ibv_reg_mr

namespace {

struct State {
  std::map<std::string, int> alive;
  std::map<std::string, long> last;
  std::mutex events_mutex;  // events are raised by one thread and read by another
  std::vector<ibv_async_event> events;
  int unacknowledged_events = 0;
};
State& state() {
  static State s;
  return s;
}

std::string variable(const char* name, const char* otherwise) {
  const char* value = std::getenv(name);
  return value != nullptr ? value : otherwise;
}

/// The errno that the environment wants `call` to fail with, or 0; errno is set to it.
int wanted(std::string_view call) {
  const std::string fail = variable("FAKE_VERBS_FAIL", "");
  const auto equals = fail.find('=');
  if (equals == std::string::npos || fail.substr(0, equals) != call) return 0;
  return errno = std::atoi(fail.c_str() + equals + 1);
}

template <class T>
T* make(const char* what) {
  ++state().alive[what];
  return new T();
}
template <class T>
int destroy(const char* what, T* object) {
  --state().alive[what];
  delete object;
  return 0;
}

}  // namespace

extern "C" {

int fake_verbs_alive(const char* what) {
  if (std::string_view(what) == "unacknowledged event") {
    const std::scoped_lock lock(state().events_mutex);
    return state().unacknowledged_events;
  }
  return state().alive[what];
}
long fake_verbs_last(const char* what) {
  return state().last[what];
}
void fake_verbs_event(ibv_context* context, ibv_event_type type) {
  ibv_async_event event = {};
  event.event_type = type;
  {
    const std::scoped_lock lock(state().events_mutex);
    state().events.push_back(event);
  }
  eventfd_write(context->async_fd, 1);
}
/// The context that was opened last.
ibv_context* fake_verbs_context = nullptr;
/// Called before a queue pair or completion queue goes, for providers built on this one.
void (*fake_verbs_before_destroy)(void* object) = nullptr;

ibv_device** ibv_get_device_list(int* count) {
  if (wanted("get_device_list") != 0) return nullptr;
  std::vector<std::string> names;
  const std::string all = variable("FAKE_VERBS_DEVICES", "mlx5_0");
  for (std::size_t at = 0; at < all.size();) {
    const auto comma = all.find(',', at);
    names.push_back(all.substr(at, comma - at));
    at = comma == std::string::npos ? all.size() : comma + 1;
  }
  auto** list = new ibv_device*[names.size() + 1]();
  for (std::size_t i = 0; i < names.size(); ++i) {
    list[i] = make<ibv_device>("device");
    std::strncpy(list[i]->name, names[i].c_str(), sizeof list[i]->name - 1);
    std::strcpy(list[i]->dev_name, "uverbs-none");
    list[i]->transport_type =
        variable("FAKE_VERBS_IWARP", "") == "1" ? IBV_TRANSPORT_IWARP : IBV_TRANSPORT_IB;
  }
  *count = static_cast<int>(names.size());
  return list;
}

void ibv_free_device_list(ibv_device** list) {
  for (int i = 0; list[i] != nullptr; ++i) destroy("device", list[i]);
  delete[] list;
}

ibv_context* ibv_open_device(ibv_device* device) {
  if (wanted("open_device") != 0) return nullptr;
  auto* c = make<ibv_context>("context");
  c->device = new ibv_device(*device);  // the list goes before the context
  state().last["uncached"] = variable("MLX5_SHUT_UP_BF", "0") == "1" ? 1 : 0;
  c->async_fd = eventfd(0, EFD_SEMAPHORE);
  c->ops.poll_cq = [](ibv_cq*, int, ibv_wc*) { return 0; };
  fake_verbs_context = c;
  return c;
}
int ibv_close_device(ibv_context* c) {
  close(c->async_fd);
  delete c->device;
  return destroy("context", c);
}

int ibv_query_device(ibv_context*, ibv_device_attr* a) {
  if (const int error = wanted("query_device"); error != 0) return error;
  *a = {};
  a->phys_port_cnt = static_cast<uint8_t>(variable("FAKE_VERBS_PORTS", "a").size());
  a->max_qp_wr = 4096;
  a->max_cqe = 2048;
  a->max_qp = 100;
  a->max_cq = 80;
  a->max_qp_rd_atom = 8;
  a->max_qp_init_rd_atom = 4;
  a->atomic_cap = IBV_ATOMIC_HCA;
  return 0;
}

int ibv_query_port(ibv_context*, uint8_t port, _compat_ibv_port_attr* compat) {
  if (const int error = wanted("query_port"); error != 0) return error;
  auto* a = reinterpret_cast<ibv_port_attr*>(compat);
  a->state = variable("FAKE_VERBS_PORTS", "a").at(port - 1u) == 'a' ? IBV_PORT_ACTIVE : IBV_PORT_DOWN;
  a->active_mtu = IBV_MTU_2048;
  a->gid_tbl_len = 16;
  a->max_msg_sz = 1u << 30;
  a->link_layer = IBV_LINK_LAYER_ETHERNET;
  return 0;
}

ssize_t _ibv_query_gid_table(ibv_context*, ibv_gid_entry* entries, size_t max, uint32_t, size_t) {
  if (const int error = wanted("query_gid_table"); error != 0) return -error;
  const auto count = static_cast<size_t>(std::atoi(variable("FAKE_VERBS_GIDS", "3").c_str()));
  for (size_t i = 0; i < count && i < max; ++i) {
    ibv_gid_entry& e = entries[i];
    e = {};
    e.gid_index = static_cast<uint32_t>(i);
    e.port_num = 1;
    e.gid_type = i == 0 ? IBV_GID_TYPE_ROCE_V1 : IBV_GID_TYPE_ROCE_V2;
    e.gid.raw[0] = 0xfe;
    e.gid.raw[1] = 0x80;
    e.gid.raw[15] = static_cast<uint8_t>(i);
    if (i + 1 != count) continue;
    e.gid = {};
    e.gid.raw[10] = e.gid.raw[11] = 0xff;
    e.gid.raw[12] = 10;
  }
  return static_cast<ssize_t>(count);
}

int ibv_get_async_event(ibv_context* c, ibv_async_event* event) {
  eventfd_t value = 0;
  if (eventfd_read(c->async_fd, &value) != 0) return -1;  // non-blocking: there is none
  const std::scoped_lock lock(state().events_mutex);
  *event = state().events.back();
  state().events.pop_back();
  ++state().unacknowledged_events;
  return 0;
}
void ibv_ack_async_event(ibv_async_event*) {
  const std::scoped_lock lock(state().events_mutex);
  --state().unacknowledged_events;
}
const char* ibv_event_type_str(ibv_event_type type) {
  return type == IBV_EVENT_DEVICE_FATAL ? "local catastrophic error" : "another event";
}

ibv_pd* ibv_alloc_pd(ibv_context*) {
  return wanted("alloc_pd") != 0 ? nullptr : make<ibv_pd>("pd");
}
int ibv_dealloc_pd(ibv_pd* pd) {
  return destroy("pd", pd);
}

ibv_mr* ibv_reg_mr(ibv_pd*, void* address, size_t bytes, int access) {
  if (wanted("reg_mr") != 0) return nullptr;
  auto* mr = make<ibv_mr>("mr");
  mr->addr = address;
  mr->length = bytes;
  mr->lkey = 0x1111;
  mr->rkey = 0x2222;
  state().last["mr access"] = access;
  return mr;
}
ibv_mr* ibv_reg_dmabuf_mr(ibv_pd* pd, uint64_t, size_t bytes, uint64_t iova, int fd, int access) {
  if (wanted("reg_dmabuf_mr") != 0) return nullptr;
  state().last["dma-buf"] = fd;
  state().last["dma-buf iova"] = static_cast<long>(iova);
  return ibv_reg_mr(pd, nullptr, bytes, access);
}
int ibv_dereg_mr(ibv_mr* mr) {
  return destroy("mr", mr);
}

ibv_cq* ibv_create_cq(ibv_context* c, int cqe, void*, ibv_comp_channel*, int) {
  if (state().alive["cq"] % 2 == 1 && wanted("create_second_cq") != 0) return nullptr;
  if (wanted("create_cq") != 0) return nullptr;
  auto* cq = make<ibv_cq>("cq");
  cq->context = c;
  cq->cqe = cqe;
  return cq;
}
int ibv_destroy_cq(ibv_cq* cq) {
  if (fake_verbs_before_destroy != nullptr) fake_verbs_before_destroy(cq);
  return destroy("cq", cq);
}

ibv_qp* ibv_create_qp(ibv_pd*, ibv_qp_init_attr* init) {
  if (init->cap.max_inline_data > 512) {
    errno = EINVAL;
    return nullptr;
  }
  if (wanted("create_qp") != 0) return nullptr;
  auto* qp = make<ibv_qp>("qp");
  qp->qp_num = 0x321;
  state().last["signal all"] = init->sq_sig_all;
  if (init->cap.max_inline_data > 100) init->cap.max_inline_data = 412;
  return qp;
}
int ibv_modify_qp(ibv_qp* qp, ibv_qp_attr* a, int mask) {
  if (const int error = wanted("modify_qp"); error != 0) return error;
  const ibv_qp_state old = qp->state;
  qp->state = a->qp_state;
  auto& last = state().last;
  last["mask " + std::to_string(old) + std::to_string(a->qp_state)] = mask;
  if (a->qp_state == IBV_QPS_INIT) last["access"] = static_cast<long>(a->qp_access_flags);
  if (a->qp_state == IBV_QPS_RTR) {
    last["mtu"] = a->path_mtu;
    last["peer"] = a->dest_qp_num;
    last["rq psn"] = a->rq_psn;
    last["responder reads"] = a->max_dest_rd_atomic;
    last["rnr timer"] = a->min_rnr_timer;
    last["gid index"] = a->ah_attr.grh.sgid_index;
    last["peer gid"] = a->ah_attr.grh.dgid.raw[15];
    last["global"] = a->ah_attr.is_global;
  }
  if (a->qp_state == IBV_QPS_RTS) {
    last["sq psn"] = a->sq_psn;
    last["timeout"] = a->timeout;
    last["retry"] = a->retry_cnt;
    last["rnr retry"] = a->rnr_retry;
    last["reads"] = a->max_rd_atomic;
  }
  return 0;
}
int ibv_query_qp(ibv_qp* qp, ibv_qp_attr* a, int, ibv_qp_init_attr*) {
  a->qp_state = qp->state;
  return wanted("query_qp");
}
int ibv_destroy_qp(ibv_qp* qp) {
  if (fake_verbs_before_destroy != nullptr) fake_verbs_before_destroy(qp);
  return destroy("qp", qp);
}

}  // extern "C"
