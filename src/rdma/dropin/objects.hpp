// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// The objects behind the structures of verbs.h. Each begins with the structure that programs see, so that a
// pointer to one is a pointer to the other; of a context they see the end of verbs_context.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_set>
#include <vector>

#include "rdma/dropin/adapter.hpp"
#include "rdma/dropin/event_queue.hpp"
#include "rdma/dropin/verbs_abi.hpp"

namespace doorbell::dropin {

/// Bytes that one ibv_alloc_dm can have.
inline constexpr u64 kDeviceMemory = 1 << 20;

struct Pd;
struct Mr;
struct Cq;
struct Qp;
struct Srq;
struct Xrcd;

struct Device {
  ibv_device base = {};
  /// Providers of rdma-core that a program loads read a pointer here, to see whether a device is theirs.
  void* providers_operations[16] = {};
  u32 index = 0;
  __be64 guid = 0;
};

/// An event of ibv_get_async_event, and what of its object counts it.
struct AsyncEvent {
  ibv_async_event event = {};
};

struct Context {
  verbs_context verbs = {};
  std::shared_ptr<Adapter> adapter;
  roce::Nic* nic = nullptr;  ///< the adapter's
  Device* device = nullptr;
  bool dead = false;  ///< a child of fork() got it
  EventQueue<AsyncEvent> async;
  std::mutex mutex;  ///< of the sets, which ibv_close_device ends in this order
  std::unordered_set<Qp*> queue_pairs;
  std::unordered_set<Srq*> shared_receives;
  std::unordered_set<Xrcd*> xrc_domains;
  std::unordered_set<Cq*> completion_queues;
  std::unordered_set<ibv_mw*> windows;
  std::unordered_set<Mr*> regions;
  std::unordered_set<Pd*> domains;
  std::unordered_set<struct Dm*> memories;

  [[nodiscard]] ibv_context* base() { return &verbs.context; }
};

struct Pd {
  ibv_pd base = {};
  Pd* of = nullptr;  ///< the one inside a parent domain
  u32 number = 0;    ///< the NIC's
  std::atomic<u32> users{0};
  struct Td* thread_domain = nullptr;  ///< a parent domain's
};

/// A domain of XRC: of this process's NIC alone, whatever file it was opened by.
struct XrcDomain {
  u32 number = 0;  ///< the NIC's
  int file = -1;   ///< an own descriptor, so that no other file gets the inode
  u64 device = 0, inode = 0;
  ~XrcDomain();
};

struct Xrcd {
  ibv_xrcd base = {};
  std::shared_ptr<XrcDomain> domain;  ///< of all who opened the same file
  std::atomic<u32> users{0};
};

struct Td {
  ibv_td base = {};
  std::atomic<u32> users{0};
};

struct Mr {
  ibv_mr base = {};
  bool imported = false;  ///< another object's registration
  struct Dm* memory = nullptr;
};

struct Dm {
  ibv_dm base = {};
  std::shared_ptr<u8> bytes;  ///< an imported one has them, too
  u64 length = 0;
  std::atomic<u32> users{0};
};

struct Ah {
  ibv_ah base = {};
  roce::Endpoint to;
};

struct Channel {
  ibv_comp_channel base = {};
  EventQueue<Cq*> events;
};

struct Cq {
  ibv_cq_ex base = {};
  roce::Attendant* attendant = nullptr;
  std::unique_ptr<roce::CompletionQueue> queue;
  std::atomic<u32> users{0};
  Channel* channel = nullptr;
  Pd* parent = nullptr;      ///< the parent domain that it was made with
  u32 events_taken = 0;      ///< of the channel; under its mutex
  u32 async_taken = 0;       ///< under the context's queue's mutex
  bool alone = false;        ///< one thread polls at a time
  std::mutex polling;        ///< from start_poll to end_poll
  roce::Completion current;  ///< of start_poll and next_poll

  [[nodiscard]] ibv_cq* plain() { return reinterpret_cast<ibv_cq*>(&base); }
};

struct Srq {
  ibv_srq base = {};
  std::unique_ptr<roce::SharedReceiveQueue> queue;
  std::atomic<u32> users{0};
  Pd* domain = nullptr;
  Xrcd* xrc_domain = nullptr;  ///< of XRC, which has a completion queue, too
  Cq* completions = nullptr;
  u32 async_taken = 0;
};

/// Requests between wr_start and wr_complete. The pieces of one request lie one behind the other; bytes given
/// inline are copied at once, as verbs promise.
struct Builder {
  struct Item {
    roce::SendRequest request;
    u32 first_sge = 0, sges = 0;
  };
  std::vector<Item> items;
  std::vector<roce::Sge> sges;  ///< of kInline: `address` is a place in `bytes`
  std::vector<u8> bytes;
  int error = 0;
};

struct Qp {
  ibv_qp_ex base = {};
  roce::Attendant* attendant = nullptr;
  std::shared_ptr<roce::QueuePair> queue;  ///< of all handles that ibv_open_qp gave
  Qp* next = nullptr;                      ///< the next handle; with the engine. queue->owner is the first
  roce::Service service = roce::Service::rc;
  Pd* domain = nullptr;         ///< not of XRC's responder
  Xrcd* xrc_domain = nullptr;   ///< of XRC's responder
  ibv_qp_attr attributes = {};  ///< as the program set them
  ibv_qp_init_attr made = {};
  u32 async_taken = 0;
  bool extended = false;  ///< made with send_ops_flags
  std::mutex posting;     ///< from wr_start to wr_complete
  Builder builder;

  [[nodiscard]] ibv_qp* plain() { return &base.qp_base; }
};

/// The object behind a structure that a program holds.
template <class Object, class Base>
[[nodiscard]] Object& of(Base* base) {
  return *reinterpret_cast<Object*>(base);
}
[[nodiscard]] inline Context& of(ibv_context* base) {
  return *reinterpret_cast<Context*>(reinterpret_cast<u8*>(base) - offsetof(verbs_context, context));
}

// Operations that programs reach through a context (verbs.h calls them by pointer), by file.
void set_query_operations(Context& context);       // device.cpp
void set_memory_operations(Context& context);      // memory.cpp
void set_domain_operations(Context& context);      // domains.cpp
void set_completion_operations(Context& context);  // completions.cpp, extended_completions.cpp
void set_queue_pair_operations(Context& context);  // queue_pairs.cpp, posting.cpp
void set_posting_operations(Context& context);     // posting.cpp
void set_receive_operations(Context& context);     // shared_receives.cpp
void set_xrc_operations(Context& context);         // xrc.cpp
/// In their place where a child of fork() has the context: all refuse with EIO.
void set_dead_operations(Context& context);  // fork.cpp

/// The service level of a completion, which Ethernet does not have. ConnectX has there what a datagram's
/// header is, and UCX looks there for it: 2 is IPv4.
inline u8 service_level_of(const roce::Completion& completion) {
  return (completion.flags & roce::kHasGrh) != 0 ? 2 : 0;
}

/// One completion as verbs have it.
inline void to_wc(const roce::Completion& from, ibv_wc* into) {
  into->wr_id = from.id;
  into->status = static_cast<ibv_wc_status>(from.status);
  into->opcode = static_cast<ibv_wc_opcode>(from.opcode);
  into->vendor_err = from.vendor_error;
  into->byte_len = from.bytes;
  into->imm_data = from.immediate_or_key;
  into->qp_num = from.queue_pair;
  into->src_qp = from.source_queue_pair;
  into->wc_flags = from.flags;
  into->pkey_index = 0;
  into->slid = 0;
  into->sl = service_level_of(from);
  into->dlid_path_bits = 0;
}

/// An Errno of a destroying call whose object still has users.
[[nodiscard]] inline int busy(const std::atomic<u32>& users) {
  return users.load(std::memory_order_acquire) != 0 ? EBUSY : 0;
}

/// Fills the extended functions of a completion queue; extended_completions.cpp.
void set_extended_polling(Cq& cq, u64 wc_flags);
/// Fills the functions of wr_start and so on; extended_posting.cpp.
void set_extended_posting(Qp& qp);
/// A send flag or an opcode that a service does not have, or a missing address: EINVAL.
int to_request(Qp& qp, const ibv_send_wr& wr, roce::SendRequest& into);
/// EPERM where the window and the region are of two protection domains.
int to_bind(const ibv_mw* window, u32 new_key, const ibv_mw_bind_info& info, roce::SendRequest& into);
int to_address(const Qp& qp, ibv_ah* handle, u32 queue_pair, u32 queue_key, roce::SendRequest& into);
/// The peer that a GID names; false if it is no IPv4 address.
bool endpoint_of(const ibv_ah_attr& attributes, u16 port, roce::Endpoint& into);

/// Makes `qp` one more handle of its queue pair, next to `other` if there is one.
void join(Context& context, Qp& qp, Qp* other = nullptr);
/// The other handles of the queue pair have the same attributes.
void share_attributes(Context& context, const Qp& qp);
/// Gives the queue pair up, which ends with its last handle.
void leave(Context& context, Qp& qp);
/// The objects that calls of a queue pair use: one user more or less of each.
void count_users(Qp& qp, int by);

/// The NIC's reports; called with its engine held.
[[nodiscard]] roce::Listener listener();
/// Forgets an object's asynchronous events, and waits for those that the program took.
void end_events(Context& context, Qp& queue_pair);
void end_events(Context& context, Srq& receives);
/// Waits until the program has acknowledged the events of an object that ends. Says so once after some
/// seconds, because a program that forgot to waits for ever, as it does with any libibverbs.
void wait_for_acknowledgement(pthread_mutex_t& mutex, pthread_cond_t& condition, const u32& done, u32 taken,
                              const char* object);

/// One line to standard error.
void complain(const std::string& sentence);

}  // namespace doorbell::dropin
