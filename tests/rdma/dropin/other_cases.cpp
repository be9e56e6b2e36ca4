// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Cases over unreliable services, and of calls without traffic.
#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>

#include "checker.hpp"

namespace checker {

namespace {

constexpr std::size_t kGrh = 40;

void unreliable(Side& side) {
  Buffer buffer(side, 1 << 16, kAll);
  Link link(side, {.type = IBV_QPT_UC});
  link.connect(buffer);
  for (const std::size_t size : {std::size_t{1}, std::size_t{1025}, std::size_t{30'000}}) {
    buffer.poison();
    if (!side.client) link.receive(size, {buffer.piece(0, 32'000)});
    if (side.client) buffer.fill(side.seed + size, 0, size);
    side.meet();
    if (side.client) {
      ibv_send_wr wr = link.request(IBV_WR_RDMA_WRITE, 1);
      wr.wr.rdma.remote_addr += 33'000;
      link.post(wr, {buffer.piece(0, size)});
      link.take_good(1);
      link.post(link.request(IBV_WR_SEND, 2), {buffer.piece(0, size)});
      link.take_good(2);
    } else {
      CHECK_EQUAL(link.take_good(size).byte_len, size);
      buffer.expect(side.seed + size, 0, size);
      // In order: the write came before the send.
      buffer.expect(side.seed + size, 33'000, size);
      buffer.expect_poison(33'000 + size, buffer.bytes.size() - 33'000 - size);
    }
    side.meet();
  }
}

/// The server answers to the address that the datagram came from.
void datagrams(Side& side) {
  Buffer buffer(side, 16'384, kAll);
  Link link(side, {.type = IBV_QPT_UD});
  link.connect(buffer);
  ibv_ah_attr attributes{};
  attributes.is_global = 1;
  attributes.port_num = 1;
  attributes.grh.dgid = link.peer.gid;
  attributes.grh.hop_limit = 64;
  ibv_ah* to_server = ibv_create_ah(side.pd, &attributes);
  CHECK(to_server != nullptr);
  for (uint64_t round = 0; round < 10; ++round) {
    const std::size_t size = round * 100 + 3;
    buffer.poison();
    link.receive(round, {buffer.piece(8000, kGrh + 1024)});
    side.meet();
    if (side.client) {
      buffer.fill(side.seed + round, 0, size);
      ibv_send_wr wr = link.request(IBV_WR_SEND_WITH_IMM, 100 + round);
      wr.imm_data = 7;
      wr.wr.ud = {to_server, link.peer.queue_pair, 0x11111111};
      link.post(wr, {buffer.piece(0, size)});
      link.take_good(100 + round);
    }
    const ibv_wc got = link.take_good(round);
    CHECK_EQUAL(got.byte_len, size + kGrh);
    CHECK_EQUAL(got.src_qp, link.peer.queue_pair);
    CHECK_EQUAL(got.wc_flags & IBV_WC_GRH, IBV_WC_GRH);
    CHECK_EQUAL(got.imm_data, 7);
    buffer.expect(side.seed + round, 8000 + kGrh, size);
    buffer.expect_poison(8000 + kGrh + size, 1000);
    if (!side.client) {
      ibv_wc from = got;
      ibv_ah* back =
          ibv_create_ah_from_wc(side.pd, &from, reinterpret_cast<ibv_grh*>(&buffer.bytes[8000]), 1);
      CHECK(back != nullptr);
      ibv_send_wr wr = link.request(IBV_WR_SEND_WITH_IMM, 100 + round);
      wr.imm_data = 7;
      wr.wr.ud = {back, got.src_qp, 0x11111111};
      link.post(wr, {buffer.piece(8000 + kGrh, size)});
      link.take_good(100 + round);
      CHECK_EQUAL(ibv_destroy_ah(back), 0);
    }
    side.meet();
  }
  // Another Q_Key: nothing arrives. What follows with the right one does.
  link.receive(50, {buffer.piece(8000, kGrh + 1024)});
  side.meet();
  ibv_send_wr wr = link.request(IBV_WR_SEND, 1);
  wr.wr.ud = {to_server, link.peer.queue_pair, 0x22222222};
  link.post(wr, {buffer.piece(0, 10)});
  wr.wr_id = 2;
  wr.wr.ud.remote_qkey = 0x11111111;
  link.post(wr, {buffer.piece(0, 11)});
  bool received = false;
  for (int i = 0; i < 3; ++i) {
    const ibv_wc got = link.take();
    CHECK_EQUAL(got.status, IBV_WC_SUCCESS);
    if ((got.opcode & IBV_WC_RECV) == 0) continue;
    CHECK_EQUAL(got.byte_len, kGrh + 11);
    received = true;
  }
  CHECK(received);
  side.meet();
  CHECK_EQUAL(ibv_destroy_ah(to_server), 0);
}

/// Calls that a device refuses, and objects that it does not end while they are in use.
void calls(Side& side) {
  ibv_device_attr device{};
  CHECK_EQUAL(ibv_query_device(side.context, &device), 0);
  CHECK(device.max_qp > 0 && device.max_cqe > 0 && device.max_sge > 0);
  ibv_port_attr port{};
  CHECK_EQUAL(ibv_query_port(side.context, 1, &port), 0);
  CHECK_EQUAL(port.state, IBV_PORT_ACTIVE);
  CHECK_EQUAL(ibv_query_port(side.context, 2, &port), EINVAL);

  std::vector<uint8_t> bytes(10'000);
  CHECK(ibv_reg_mr(side.pd, bytes.data(), bytes.size(), IBV_ACCESS_REMOTE_WRITE) == nullptr);
  CHECK_EQUAL(errno, EINVAL);
  // Memory that is not there.
  void* hole = ::mmap(nullptr, 1 << 16, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  CHECK(hole != MAP_FAILED);
  CHECK(ibv_reg_mr(side.pd, hole, 1 << 16, IBV_ACCESS_LOCAL_WRITE) == nullptr);
  CHECK_EQUAL(errno, EFAULT);
  ::munmap(hole, 1 << 16);
  CHECK(ibv_reg_mr(side.pd, hole, 1 << 16, IBV_ACCESS_LOCAL_WRITE) == nullptr);
  CHECK_EQUAL(errno, EFAULT);
  // Read-only memory serves reads alone.
  void* constant = ::mmap(nullptr, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  CHECK(ibv_reg_mr(side.pd, constant, 4096, IBV_ACCESS_LOCAL_WRITE) == nullptr);
  ibv_mr* region = ibv_reg_mr(side.pd, constant, 4096, IBV_ACCESS_REMOTE_READ);
  CHECK(region != nullptr);
  CHECK_EQUAL(ibv_dealloc_pd(side.pd), EBUSY);
  CHECK_EQUAL(ibv_dereg_mr(region), 0);
  ::munmap(constant, 4096);

  CHECK(ibv_create_cq(side.context, 0, nullptr, nullptr, 0) == nullptr);
  CHECK(ibv_create_cq(side.context, device.max_cqe + 1, nullptr, nullptr, 0) == nullptr);
  CHECK(ibv_create_cq(side.context, 10, nullptr, nullptr, side.context->num_comp_vectors) == nullptr);
  ibv_cq* cq = ibv_create_cq(side.context, 10, nullptr, nullptr, 0);
  CHECK(cq != nullptr && cq->cqe >= 10);
  CHECK_EQUAL(ibv_resize_cq(cq, 100), 0);
  CHECK(cq->cqe >= 100);
  ibv_qp_init_attr wanted{};
  wanted.send_cq = wanted.recv_cq = cq;
  wanted.qp_type = IBV_QPT_RC;
  wanted.cap = {static_cast<uint32_t>(device.max_qp_wr) + 1, 1, 1, 1, 0};
  CHECK(ibv_create_qp(side.pd, &wanted) == nullptr);
  wanted.cap = {1, 1, 1, 1, 0};
  wanted.qp_type = IBV_QPT_RAW_PACKET;
  CHECK(ibv_create_qp(side.pd, &wanted) == nullptr);
  CHECK_EQUAL(errno, EOPNOTSUPP);
  wanted.qp_type = IBV_QPT_RC;
  ibv_qp* qp = ibv_create_qp(side.pd, &wanted);
  CHECK(qp != nullptr);
  CHECK(ibv_qp_to_qp_ex(qp) == nullptr);
  ibv_qp_attr a{};
  a.qp_state = IBV_QPS_RTS;
  CHECK_EQUAL(ibv_modify_qp(qp, &a, IBV_QP_STATE), EINVAL);
  ibv_send_wr wr{}, *bad = nullptr;
  wr.opcode = IBV_WR_SEND;
  CHECK(ibv_post_send(qp, &wr, &bad) != 0);
  CHECK(bad == &wr);
  ibv_gid group{};
  group.raw[0] = 0xFF;
  CHECK(ibv_attach_mcast(qp, &group, 0) != 0);
  CHECK_EQUAL(ibv_destroy_qp(qp), 0);
  CHECK_EQUAL(ibv_destroy_cq(cq), 0);

  ibv_comp_channel* channel = ibv_create_comp_channel(side.context);
  CHECK(channel != nullptr);
  CHECK(::fcntl(channel->fd, F_SETFL, O_NONBLOCK) == 0);
  void* cookie = nullptr;
  CHECK(ibv_get_cq_event(channel, &cq, &cookie) == -1);
  CHECK_EQUAL(errno, EAGAIN);
  CHECK_EQUAL(ibv_destroy_comp_channel(channel), 0);
}

/// A child has no use of what its parent opened, and can open the device anew.
void forking(Side& side) {
  Buffer buffer(side, 4096, kAll);
  Link link(side, {});
  link.connect(buffer);
  const pid_t child = ::fork();
  CHECK(child >= 0);
  if (child == 0) {
    ibv_wc completion{};
    ibv_send_wr wr = link.request(IBV_WR_RDMA_WRITE, 1), *bad = nullptr;
    const bool dead = ibv_poll_cq(link.cq, 1, &completion) < 0 && ibv_post_send(link.qp, &wr, &bad) != 0 &&
                      ibv_alloc_pd(side.context) == nullptr;
    ibv_device** list = ibv_get_device_list(nullptr);
    ibv_context* own = ibv_open_device(list[0]);
    Side mine;
    mine.context = own;
    const bool fresh = own != nullptr && (mine.pd = ibv_alloc_pd(own)) != nullptr;
    const bool ended = fresh && ibv_dealloc_pd(mine.pd) == 0 && ibv_close_device(own) == 0;
    ::_exit(dead && ended ? 0 : 1);
  }
  int status = 0;
  CHECK(::waitpid(child, &status, 0) == child);
  CHECK_EQUAL(status, 0);
  // The parent's goes on.
  if (side.client) buffer.fill(side.seed, 0, 4096);
  side.meet();
  if (side.client) {
    link.post(link.request(IBV_WR_RDMA_WRITE, 1), {buffer.piece(0, 4096)});
    link.take_good(1);
  }
  side.meet();
  if (!side.client) buffer.expect(side.seed, 0, 4096);
}

}  // namespace

const std::vector<Case> kOtherCases = {
    {"unreliable", false, unreliable},
    {"datagrams", false, datagrams},
    {"calls", true, calls},
    {"forking", true, forking},
};

}  // namespace checker
