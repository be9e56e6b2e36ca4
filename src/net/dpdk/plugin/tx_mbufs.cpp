// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "net/dpdk/plugin/tx_mbufs.hpp"

#include <doorbell/error.hpp>
#include <fmt/format.h>
#include <rte_errno.h>
#include <rte_mempool.h>

#include <algorithm>
#include <cerrno>
#include <iterator>
#include <memory>
#include <new>

#include "net/dpdk/plugin/eal.hpp"

namespace doorbell::net::dpdk {

namespace {

constexpr char kOps[] = "doorbell_tx";

/// The data of a DPDK pool, at its `pool_data`.
struct Slots {
  std::unique_ptr<rte_mbuf*[]> mbufs;
  u32 count = 0;
  std::unique_ptr<std::atomic<u8>[]> returned;
};

Slots& slots_of(const rte_mempool* pool) {
  return *static_cast<Slots*>(pool->pool_data);
}

int make(rte_mempool* pool) {
  auto s = std::unique_ptr<Slots>(new (std::nothrow) Slots);
  if (!s) return -ENOMEM;
  s->mbufs.reset(new (std::nothrow) rte_mbuf*[pool->size]);
  s->returned.reset(new (std::nothrow) std::atomic<u8>[pool->size]());
  if (!s->mbufs || !s->returned) return -ENOMEM;
  pool->pool_data = s.release();
  return 0;
}

void destroy(rte_mempool* pool) {
  delete static_cast<Slots*>(pool->pool_data);
  pool->pool_data = nullptr;
}

int give_back(rte_mempool* pool, void* const* objects, unsigned n) {
  Slots& s = slots_of(pool);
  // DPDK puts each new object into its pool first.
  if (s.count < pool->size) {
    for (unsigned i = 0; i < n; ++i) s.mbufs[s.count++] = static_cast<rte_mbuf*>(objects[i]);
    return 0;
  }
  for (unsigned i = 0; i < n; ++i) {
    std::atomic<u8>& times = s.returned[static_cast<const rte_mbuf*>(objects[i])->hash.usr];
    // Nobody else writes it: a slot is out once at a time. Releases what was read of the slot.
    times.store(static_cast<u8>(times.load(std::memory_order_relaxed) + 1), std::memory_order_release);
  }
  return 0;
}

int take(rte_mempool*, void**, unsigned) {
  return -ENOBUFS;
}

unsigned available(const rte_mempool*) {
  return 0;
}

void register_ops() {
  static const int index = [] {
    rte_mempool_ops ops{};
    std::copy(std::begin(kOps), std::end(kOps), ops.name);
    ops.alloc = make;
    ops.free = destroy;
    ops.enqueue = give_back;
    ops.dequeue = take;
    ops.get_count = available;
    return rte_mempool_register_ops(&ops);
  }();
  if (index == -ENOSPC)
    throw Error("DPDK's memory pools",
                fmt::format("all of its {} kinds are taken by drivers", RTE_MEMPOOL_MAX_OPS_IDX),
                "remove a driver that is not needed (Debian: librte-mempool-...)");
  check(index, "a kind of memory pool");
}

/// The memory outlives the mbufs.
void never_freed(void*, void*) {}

rte_mempool* make_pool(u32 count) {
  register_ops();
  rte_mempool* const pool =
      rte_pktmbuf_pool_create_by_ops(unique_name("db_tx_").c_str(), count, 0, 0, 0, SOCKET_ID_ANY, kOps);
  if (pool == nullptr)
    dpdk_failed(fmt::format("{} packet buffers to send from", count), rte_errno, "use fewer flows");
  // Their memory stays with them when they are given back.
  static_cast<rte_pktmbuf_pool_private*>(rte_mempool_get_priv(pool))->flags |=
      RTE_PKTMBUF_POOL_F_PINNED_EXT_BUF;
  return pool;
}

}  // namespace

TxMbufs::TxMbufs(u32 count)
    : pool_(make_pool(count)),
      all_(slots_of(pool_).mbufs.get(), count),
      returned_(slots_of(pool_).returned.get()) {
  shared_.free_cb = never_freed;
  rte_mbuf_ext_refcnt_set(&shared_, 1);
}

TxMbufs::~TxMbufs() {
  rte_mempool_free(pool_);
}

void TxMbufs::attach(u32 slot, u8* frame, rte_iova_t iova, u16 bytes) {
  rte_mbuf* const m = all_[slot];
  rte_pktmbuf_attach_extbuf(m, frame, iova, bytes, &shared_);
  m->data_off = 0;
  m->hash.usr = slot;
}

}  // namespace doorbell::net::dpdk
