// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// XRC: one connection, over which the client reaches several receive queues of the server.
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>

#include "checker.hpp"

namespace checker {

namespace {

constexpr std::size_t kBuffer = 1 << 17, kPlace = 40'000;  // of receives: one for each queue

ibv_xrcd* open_domain(const Side& side, int file, int flags) {
  ibv_xrcd_init_attr attributes{};
  attributes.comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS;
  attributes.fd = file;
  attributes.oflags = flags;
  return ibv_open_xrcd(side.context, &attributes);
}

ibv_srq* make_receives(const Side& side, ibv_xrcd* domain, ibv_cq* cq) {
  ibv_srq_init_attr_ex attributes{};
  attributes.attr.max_wr = 16;
  attributes.attr.max_sge = 2;
  attributes.comp_mask =
      IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD | IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ;
  attributes.srq_type = IBV_SRQT_XRC;
  attributes.pd = side.pd;
  attributes.xrcd = domain;
  attributes.cq = cq;
  return ibv_create_srq_ex(side.context, &attributes);
}

void to_rts(ibv_qp* qp, const Card& peer, uint32_t own_psn, uint32_t peer_psn) {
  const bool sends = qp->qp_type == IBV_QPT_XRC_SEND;
  ibv_qp_attr a = connection(sends ? peer.queue_pair : peer.window_key, peer.gid, own_psn, peer_psn);
  a.qp_state = IBV_QPS_INIT;
  a.qp_access_flags = kAll;
  CHECK_EQUAL(ibv_modify_qp(qp, &a, IBV_QP_STATE | IBV_QP_PORT | IBV_QP_PKEY_INDEX | IBV_QP_ACCESS_FLAGS), 0);
  a.qp_state = IBV_QPS_RTR;
  // A half's mask may have what is the other half's: it is ignored.
  CHECK_EQUAL(ibv_modify_qp(qp, &a,
                            IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                                IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER),
              0);
  a.qp_state = IBV_QPS_RTS;
  CHECK_EQUAL(ibv_modify_qp(qp, &a,
                            IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
                                IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC),
              0);
}

/// The objects of one side.
struct Ends {
  const Side& side;
  int file = -1;
  ibv_xrcd *domain = nullptr, *again = nullptr, *other = nullptr;
  ibv_cq *sends = nullptr, *receives = nullptr;
  std::array<ibv_srq*, 3> queues{};  ///< the last one is of the other domain
  ibv_qp *requester = nullptr, *responder = nullptr;
  Card peer{};
  std::array<uint32_t, 3> peers_queues{};

  Ends(const Side& its, bool extended) : side(its) {
    ibv_device_attr device{};
    CHECK_EQUAL(ibv_query_device(side.context, &device), 0);
    CHECK((device.device_cap_flags & IBV_DEVICE_XRC) != 0);
    file = ::memfd_create("xrc", 0);
    CHECK(file >= 0);
    // Nobody has made a domain by this file.
    CHECK(open_domain(side, file, 0) == nullptr);
    CHECK_EQUAL(errno, EAGAIN);
    domain = open_domain(side, file, O_CREAT);
    again = open_domain(side, file, 0);
    other = open_domain(side, -1, O_CREAT);
    CHECK(domain != nullptr && again != nullptr && other != nullptr);
    CHECK(open_domain(side, file, O_CREAT | O_EXCL) == nullptr);
    CHECK_EQUAL(errno, EINVAL);
    CHECK(open_domain(side, 100'000, O_CREAT) == nullptr);
    CHECK_EQUAL(errno, EBADF);
    sends = ibv_create_cq(side.context, 64, nullptr, nullptr, 0);
    receives = ibv_create_cq(side.context, 64, nullptr, nullptr, 0);
    CHECK(sends != nullptr && receives != nullptr);
    // The second handle of a domain is as good as the first.
    queues = {make_receives(side, domain, receives), make_receives(side, again, receives),
              make_receives(side, other, receives)};
    for (ibv_srq* queue : queues) CHECK(queue != nullptr);
    ibv_qp_init_attr_ex made{};
    made.qp_type = IBV_QPT_XRC_RECV;
    made.comp_mask = IBV_QP_INIT_ATTR_PD;
    made.pd = side.pd;
    CHECK(ibv_create_qp_ex(side.context, &made) == nullptr);
    CHECK_EQUAL(errno, EINVAL);
    made.comp_mask = IBV_QP_INIT_ATTR_XRCD;
    made.xrcd = domain;
    responder = ibv_create_qp_ex(side.context, &made);
    CHECK(responder != nullptr);
    made = {};
    made.qp_type = IBV_QPT_XRC_SEND;
    made.send_cq = sends;
    made.cap = {16, 0, 2, 0, 64};
    made.comp_mask = IBV_QP_INIT_ATTR_PD;
    made.pd = side.pd;
    if (extended) {
      made.comp_mask |= IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
      made.send_ops_flags = IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM | IBV_QP_EX_WITH_RDMA_WRITE;
    }
    requester = ibv_create_qp_ex(side.context, &made);
    CHECK(requester != nullptr);
    CHECK_EQUAL(ibv_close_xrcd(domain), EBUSY);
    CHECK_EQUAL(ibv_destroy_cq(receives), EBUSY);
  }
  ~Ends() {
    CHECK_EQUAL(ibv_destroy_qp(requester), 0);
    CHECK_EQUAL(ibv_destroy_qp(responder), 0);
    for (ibv_srq* queue : queues) CHECK_EQUAL(ibv_destroy_srq(queue), 0);
    for (ibv_xrcd* one : {domain, again, other}) CHECK_EQUAL(ibv_close_xrcd(one), 0);
    CHECK_EQUAL(ibv_destroy_cq(sends), 0);
    CHECK_EQUAL(ibv_destroy_cq(receives), 0);
    ::close(file);
  }
  Ends(const Ends&) = delete;
  Ends& operator=(const Ends&) = delete;

  void connect(const Buffer& buffer) {
    const uint32_t psn = static_cast<uint32_t>(side.seed * 7919 + 0xFFFFF0) & 0xFFFFFF;
    peer = side.exchange(
        {responder->qp_num, psn, buffer.region->rkey, requester->qp_num, buffer.address(), side.gid()});
    std::array<uint32_t, 3> numbers{};
    for (std::size_t i = 0; i < 3; ++i) CHECK_EQUAL(ibv_get_srq_num(queues[i], &numbers[i]), 0);
    side.tell(numbers.data(), sizeof numbers);
    side.hear(peers_queues.data(), sizeof peers_queues);
    to_rts(requester, peer, psn, peer.psn);
    to_rts(responder, peer, psn, peer.psn);
  }
  /// Through ibv_open_qp: the queue pair lives on when the handle that made it has gone.
  void change_handle() {
    ibv_qp_open_attr attributes{};
    attributes.comp_mask = IBV_QP_OPEN_ATTR_NUM | IBV_QP_OPEN_ATTR_XRCD | IBV_QP_OPEN_ATTR_TYPE;
    attributes.qp_num = responder->qp_num;
    attributes.qp_type = IBV_QPT_XRC_RECV;
    attributes.xrcd = other;
    CHECK(ibv_open_qp(side.context, &attributes) == nullptr);
    CHECK_EQUAL(errno, EINVAL);
    attributes.xrcd = again;
    attributes.qp_num ^= 0x80'0000;
    CHECK(ibv_open_qp(side.context, &attributes) == nullptr);
    CHECK_EQUAL(errno, EINVAL);
    attributes.qp_num = responder->qp_num;
    ibv_qp* opened = ibv_open_qp(side.context, &attributes);
    CHECK(opened != nullptr);
    ibv_qp_attr a{};
    ibv_qp_init_attr made{};
    CHECK_EQUAL(ibv_query_qp(opened, &a, IBV_QP_STATE, &made), 0);
    CHECK_EQUAL(a.qp_state, IBV_QPS_RTS);
    CHECK_EQUAL(a.dest_qp_num, peer.window_key);
    CHECK_EQUAL(ibv_destroy_qp(responder), 0);
    responder = opened;
  }
  void receive(std::size_t queue, uint64_t id, ibv_sge piece) {
    ibv_recv_wr wr{id, nullptr, &piece, 1}, *bad = nullptr;
    CHECK_EQUAL(ibv_post_srq_recv(queues[queue], &wr, &bad), 0);
  }
  void post(ibv_wr_opcode opcode, std::size_t queue, ibv_sge piece, uint64_t address) {
    ibv_send_wr wr{}, *bad = nullptr;
    wr.wr_id = 7;
    wr.opcode = opcode;
    wr.send_flags = IBV_SEND_SIGNALED;
    wr.sg_list = &piece;
    wr.num_sge = 1;
    wr.imm_data = 0x1234;
    if (opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
      wr.wr.atomic = {address, 5, 0, peer.rkey};
    } else {
      wr.wr.rdma.remote_addr = address;
      wr.wr.rdma.rkey = peer.rkey;
    }
    wr.qp_type.xrc.remote_srqn = peers_queues[queue];
    CHECK_EQUAL(ibv_post_send(requester, &wr, &bad), 0);
  }
  [[nodiscard]] static ibv_wc take(ibv_cq* cq) {
    const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(30);
    for (ibv_wc completion{};;) {
      const int got = ibv_poll_cq(cq, 1, &completion);
      CHECK(got >= 0 && std::chrono::steady_clock::now() < until);
      if (got == 1) return completion;
    }
  }
};

void traffic(Side& side, bool extended) {
  Buffer buffer(side, kBuffer, kAll);
  Ends ends(side, extended);
  ends.connect(buffer);
  std::size_t round = 0;
  for (const std::size_t size : {std::size_t{1}, std::size_t{1024}, std::size_t{1025}, std::size_t{30'001}}) {
    for (std::size_t queue = 0; queue < 2; ++queue, ++round) {
      const uint64_t seed = side.seed + size + queue;
      buffer.poison();
      if (side.client) buffer.fill(seed, 0, size);
      else ends.receive(queue, 100 + round, buffer.piece(kPlace * (1 + queue), kPlace));
      side.meet();
      if (!side.client) {
        const ibv_wc got = Ends::take(ends.receives);
        CHECK_EQUAL(got.status, IBV_WC_SUCCESS);
        CHECK_EQUAL(got.wr_id, 100 + round);
        CHECK_EQUAL(got.byte_len, size);
        CHECK_EQUAL(got.imm_data, 0x1234);
        CHECK_EQUAL(got.qp_num, ends.responder->qp_num);
        buffer.expect(seed, kPlace * (1 + queue), size);
        // Written before the message.
        buffer.expect(seed, 0, size);
        buffer.expect_poison(size, kPlace - size);
        buffer.expect_poison(kPlace * (2 - queue), kPlace);
      } else if (extended) {
        ibv_qp_ex* qp = ibv_qp_to_qp_ex(ends.requester);
        CHECK(qp != nullptr);
        ibv_wr_start(qp);
        qp->wr_id = 7;
        qp->wr_flags = IBV_SEND_SIGNALED;
        ibv_wr_rdma_write(qp, ends.peer.rkey, ends.peer.address);
        ibv_wr_set_xrc_srqn(qp, ends.peers_queues[queue]);
        ibv_wr_set_sge(qp, buffer.region->lkey, buffer.address(), static_cast<uint32_t>(size));
        ibv_wr_send_imm(qp, 0x1234);
        ibv_wr_set_xrc_srqn(qp, ends.peers_queues[queue]);
        ibv_wr_set_sge(qp, buffer.region->lkey, buffer.address(), static_cast<uint32_t>(size));
        CHECK_EQUAL(ibv_wr_complete(qp), 0);
      } else {
        ends.post(IBV_WR_RDMA_WRITE, queue, buffer.piece(0, size), ends.peer.address);
        // To the place of the second queue's receive: the same bytes either way.
        ends.post(queue == 0 ? IBV_WR_SEND_WITH_IMM : IBV_WR_RDMA_WRITE_WITH_IMM, queue,
                  buffer.piece(0, size), ends.peer.address + kPlace * 2);
      }
      if (side.client)
        for (int i = 0; i < 2; ++i) CHECK_EQUAL(Ends::take(ends.sends).status, IBV_WC_SUCCESS);
      side.meet();
    }
    if (round == 4) ends.change_handle();
  }
  // READ and an atomic.
  if (!side.client) buffer.fill(side.seed + 99, 0, 20'000);
  side.meet();
  if (side.client && !extended) {
    ends.post(IBV_WR_RDMA_READ, 1, buffer.piece(0, 20'000), ends.peer.address);
    CHECK_EQUAL(Ends::take(ends.sends).status, IBV_WC_SUCCESS);
    buffer.expect(side.seed + 99, 0, 20'000);
    uint64_t before = 0, after = 0;
    std::copy_n(buffer.bytes.begin(), 8, reinterpret_cast<uint8_t*>(&before));
    ends.post(IBV_WR_ATOMIC_FETCH_AND_ADD, 0, buffer.piece(64, 8), ends.peer.address);
    CHECK_EQUAL(Ends::take(ends.sends).status, IBV_WC_SUCCESS);
    ends.post(IBV_WR_RDMA_READ, 0, buffer.piece(128, 8), ends.peer.address);
    CHECK_EQUAL(Ends::take(ends.sends).status, IBV_WC_SUCCESS);
    CHECK(std::equal(&buffer.bytes[0], &buffer.bytes[8], &buffer.bytes[64]));
    std::copy_n(&buffer.bytes[128], 8, reinterpret_cast<uint8_t*>(&after));
    CHECK(after == before + 5);
  }
  side.meet();
}

/// A receive queue of another domain: refused, and both queue pairs end. Where the refusal is lost the client
/// only sees that nobody answers.
void stranger(Side& side) {
  Buffer buffer(side, kBuffer, kAll);
  Ends ends(side, false);
  ends.connect(buffer);
  buffer.poison();
  if (!side.client) ends.receive(2, 1, buffer.piece(0, 1000));
  side.meet();
  if (side.client) {
    ends.post(IBV_WR_SEND, 2, buffer.piece(0, 100), 0);
    CHECK_EQUAL(Ends::take(ends.sends).status, IBV_WC_REM_ACCESS_ERR);
  } else {
    ibv_async_event event{};
    CHECK_EQUAL(ibv_get_async_event(side.context, &event), 0);
    while (event.event_type == IBV_EVENT_COMM_EST) {
      ibv_ack_async_event(&event);
      CHECK_EQUAL(ibv_get_async_event(side.context, &event), 0);
    }
    CHECK_EQUAL(event.event_type, IBV_EVENT_QP_ACCESS_ERR);
    CHECK(event.element.qp == ends.responder);
    ibv_ack_async_event(&event);
    buffer.expect_poison(0, kBuffer);
    ibv_wc none{};
    CHECK_EQUAL(ibv_poll_cq(ends.receives, 1, &none), 0);
  }
  side.meet();
}

void plain(Side& side) {
  traffic(side, false);
}
void extended(Side& side) {
  traffic(side, true);
}

}  // namespace

const std::vector<Case> kXrcCases = {
    {"xrc", true, plain}, {"xrc_extended", true, extended}, {"xrc_refused", false, stranger}};

}  // namespace checker
