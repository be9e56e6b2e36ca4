// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "net/dpdk/plugin/pool.hpp"

#include <fmt/format.h>
#include <rte_errno.h>
#include <rte_ethdev.h>
#include <rte_memory.h>

#include "net/dpdk/plugin/eal.hpp"

namespace doorbell::net::dpdk {

namespace {

constexpr u32 kAlignment = 64;

rte_mempool* need(rte_mempool* pool, u32 count, u64 bytes_each) {
  if (pool == nullptr)
    dpdk_failed(fmt::format("a pool of {} packet buffers of {} bytes", count, bytes_each), rte_errno,
                "use fewer queues or a smaller burst");
  return pool;
}

u32 aligned(u32 bytes) {
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

rte_mempool* over(u8* begin, rte_iova_t iova, u64 bytes, u32 count, u32 stride, u32 data_bytes) {
  rte_pktmbuf_extmem memory{};
  memory.buf_ptr = begin;
  memory.buf_iova = iova;
  memory.buf_len = bytes;
  memory.elt_size = static_cast<u16>(stride);
  const u16 room = static_cast<u16>(RTE_PKTMBUF_HEADROOM + data_bytes);
  return need(rte_pktmbuf_pool_create_extbuf(unique_name("db_ext_").c_str(), count, kPoolCache, 0, room,
                                             SOCKET_ID_ANY, &memory, 1),
              count, room);
}

/// Between the begins of two buffers; DPDK keeps it in 16 bits.
u32 stride_of(u32 data_bytes) {
  const u32 stride = aligned(RTE_PKTMBUF_HEADROOM + data_bytes);
  if (stride > 65535)
    dpdk_failed(fmt::format("packet buffers of {} bytes", data_bytes), E2BIG, "use a smaller payload");
  return stride;
}

}  // namespace

std::unique_ptr<Pool> Pool::in_dpdk_memory(u32 count, u32 data_bytes) {
  std::unique_ptr<Pool> p(new Pool);
  p->pool_ = need(rte_pktmbuf_pool_create(unique_name("db_rx_").c_str(), count, kPoolCache, 0,
                                          static_cast<u16>(stride_of(data_bytes)), SOCKET_ID_ANY),
                  count, data_bytes);
  return p;
}

std::unique_ptr<Pool> Pool::in_program_memory(u32 count, u32 data_bytes, Place place,
                                              const OpenRequest& request) {
  // Frames begin behind the headroom: so far into the memory that payloads are aligned.
  constexpr u32 kShift =
      (2 * kAlignment - (RTE_PKTMBUF_HEADROOM + raw::kUdp4Bytes) % kAlignment) % kAlignment;
  const u32 stride = stride_of(data_bytes);
  std::unique_ptr<Pool> p(new Pool);
  p->memory_ = request.allocate(place, u64{count} * stride + kShift);
  p->pool_ = over(p->memory_.host + kShift, RTE_BAD_IOVA, u64{count} * stride, count, stride,
                  stride - RTE_PKTMBUF_HEADROOM);
  return p;
}

std::unique_ptr<Pool> Pool::for_port(u32 count, u32 data_bytes, Place place, const OpenRequest& request,
                                     u16 port) {
  // The page of GPU memory, which the driver of the NIC maps as a whole.
  constexpr u64 kPage = 65536;
  const u32 stride = stride_of(data_bytes);
  std::unique_ptr<Pool> p(new Pool);
  p->memory_ = request.allocate(place, (u64{count} * stride + kPage - 1) / kPage * kPage);
  u8* const begin = place == Place::gpu ? p->memory_.device : p->memory_.host;
  const u64 page = place == Place::gpu ? kPage : 4096;
  if (rte_extmem_register(begin, p->memory_.bytes, nullptr, 0, page) != 0)
    dpdk_failed("packet buffers for a NIC", rte_errno);
  p->mapped_ = begin;
  rte_eth_dev_info info{};
  check(rte_eth_dev_info_get(port, &info), "a DPDK port's facts");
  if (rte_dev_dma_map(info.device, begin, reinterpret_cast<u64>(begin), p->memory_.bytes) != 0)
    dpdk_failed("packet buffers for a NIC", rte_errno,
                place == Place::gpu
                    ? "load the kernel module that lets the NIC reach GPU memory (nvidia-peermem)"
                    : fmt::format("use {} pageable", request.memory_setting));
  p->device_ = info.device;
  p->pool_ = over(begin, reinterpret_cast<u64>(begin), u64{count} * stride, count, stride,
                  stride - RTE_PKTMBUF_HEADROOM);
  return p;
}

Pool::~Pool() {
  if (pool_ != nullptr) rte_mempool_free(pool_);
  if (device_ != nullptr) rte_dev_dma_unmap(device_, mapped_, reinterpret_cast<u64>(mapped_), memory_.bytes);
  if (mapped_ != nullptr) rte_extmem_unregister(mapped_, memory_.bytes);
}

}  // namespace doorbell::net::dpdk
