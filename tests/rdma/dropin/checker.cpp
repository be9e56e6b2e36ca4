// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "checker.hpp"

#include <poll.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace checker {

namespace {

const char* running = "";
bool is_client = false;

constexpr int kPatienceMs = 30'000;

}  // namespace

void fail(const char* file, int line, const std::string& what) {
  std::fprintf(stderr, "%s, %s: %s:%d: %s (errno: %s)\n", running, is_client ? "client" : "server", file,
               line, what.c_str(), std::strerror(errno));
  std::fflush(stderr);
  std::_Exit(1);
}

void Side::tell(const void* bytes, std::size_t size) const {
  CHECK(::write(socket, bytes, size) == static_cast<ssize_t>(size));
}

void Side::hear(void* bytes, std::size_t size) const {
  std::size_t got = 0;
  while (got < size) {
    pollfd one{socket, POLLIN, 0};
    CHECK(::poll(&one, 1, 2 * kPatienceMs) == 1);
    const ssize_t part = ::read(socket, static_cast<uint8_t*>(bytes) + got, size - got);
    CHECK(part > 0);
    got += static_cast<std::size_t>(part);
  }
}

void Side::meet() const {
  const char own = 'm';
  char other = 0;
  tell(&own, 1);
  hear(&other, 1);
  CHECK(other == 'm');
}

Card Side::exchange(const Card& own) const {
  Card other{};
  tell(&own, sizeof own);
  hear(&other, sizeof other);
  return other;
}

ibv_gid Side::gid() const {
  ibv_gid found{};
  CHECK(ibv_query_gid(context, 1, 0, &found) == 0);
  return found;
}

Buffer::Buffer(const Side& side, std::size_t size, int access) : bytes(size) {
  region = ibv_reg_mr(side.pd, bytes.data(), size, access);
  CHECK(region != nullptr);
}

Buffer::~Buffer() {
  CHECK(ibv_dereg_mr(region) == 0);
}

void Buffer::fill(uint64_t seed, std::size_t from, std::size_t size) {
  for (std::size_t i = 0; i < size; ++i) bytes[from + i] = pattern(seed, i);
}

void Buffer::expect(uint64_t seed, std::size_t from, std::size_t size, std::size_t first) const {
  for (std::size_t i = 0; i < size; ++i)
    if (bytes[from + i] != pattern(seed, first + i))
      fail(__FILE__, __LINE__, "byte " + std::to_string(i) + " of " + std::to_string(size) + " is wrong");
}

void Buffer::expect_poison(std::size_t from, std::size_t size) const {
  for (std::size_t i = 0; i < size; ++i)
    if (bytes[from + i] != 0xA5)
      fail(__FILE__, __LINE__, "byte " + std::to_string(from + i) + " was written");
}

ibv_sge Buffer::piece(std::size_t from, std::size_t size) const {
  CHECK(from + size <= bytes.size());
  return {address() + from, static_cast<uint32_t>(size), region->lkey};
}

Link::Link(const Side& its, const Options& its_options) : side(its), options(its_options) {
  if (options.events) {
    channel = ibv_create_comp_channel(side.context);
    CHECK(channel != nullptr);
  }
  const int entries = static_cast<int>(2 * options.depth);
  if (options.extended) {
    ibv_cq_init_attr_ex attributes{};
    attributes.cqe = static_cast<uint32_t>(entries);
    attributes.channel = channel;
    attributes.wc_flags = uint64_t{IBV_WC_STANDARD_FLAGS} | IBV_WC_EX_WITH_COMPLETION_TIMESTAMP;
    extended_cq = ibv_create_cq_ex(side.context, &attributes);
    CHECK(extended_cq != nullptr);
    cq = ibv_cq_ex_to_cq(extended_cq);
  } else {
    cq = ibv_create_cq(side.context, entries, nullptr, channel, 0);
  }
  CHECK(cq != nullptr);
  if (options.events) CHECK(ibv_req_notify_cq(cq, 0) == 0);
  if (options.shared_receives) {
    ibv_srq_init_attr attributes{};
    attributes.attr.max_wr = options.depth;
    attributes.attr.max_sge = 4;
    srq = ibv_create_srq(side.pd, &attributes);
    CHECK(srq != nullptr);
  }
  ibv_qp_init_attr_ex attributes{};
  attributes.send_cq = attributes.recv_cq = cq;
  attributes.srq = srq;
  attributes.cap = {options.depth, options.depth, 4, 4, 64};
  attributes.qp_type = options.type;
  attributes.pd = side.pd;
  attributes.comp_mask = IBV_QP_INIT_ATTR_PD;
  if (options.extended) {
    attributes.comp_mask |= IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
    attributes.send_ops_flags = IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_RDMA_READ | IBV_QP_EX_WITH_SEND |
                                IBV_QP_EX_WITH_SEND_WITH_IMM | IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD;
  }
  qp = ibv_create_qp_ex(side.context, &attributes);
  CHECK(qp != nullptr);
}

Link::~Link() {
  // An acknowledgement of this side may have been lost: it answers until the other side has it.
  side.meet();
  CHECK(ibv_destroy_cq(cq) == EBUSY);
  CHECK(ibv_destroy_qp(qp) == 0);
  if (srq != nullptr) CHECK(ibv_destroy_srq(srq) == 0);
  if (channel != nullptr) CHECK(ibv_destroy_comp_channel(channel) == EBUSY);
  CHECK(ibv_destroy_cq(cq) == 0);
  if (channel != nullptr) CHECK(ibv_destroy_comp_channel(channel) == 0);
}

ibv_qp_attr connection(uint32_t queue_pair, const ibv_gid& to, uint32_t own_psn, uint32_t peer_psn) {
  ibv_qp_attr a{};
  a.port_num = 1;
  a.path_mtu = IBV_MTU_1024;
  a.dest_qp_num = queue_pair;
  a.rq_psn = peer_psn;
  a.max_dest_rd_atomic = 8;
  a.min_rnr_timer = 1;
  a.ah_attr.is_global = 1;
  a.ah_attr.port_num = 1;
  a.ah_attr.grh.dgid = to;
  a.ah_attr.grh.hop_limit = 64;
  a.sq_psn = own_psn;
  a.timeout = 14;
  a.retry_cnt = 7;
  a.rnr_retry = 7;
  a.max_rd_atomic = 8;
  return a;
}

void Link::connect(const Buffer& buffer, uint32_t window_key) {
  const uint32_t psn = static_cast<uint32_t>(side.seed * 7919 + (side.client ? 0xFFFFF0 : 5)) & 0xFFFFFF;
  peer = side.exchange({qp->qp_num, psn, buffer.region->rkey, window_key, buffer.address(), side.gid()});
  const bool reliable = options.type == IBV_QPT_RC, datagrams = options.type == IBV_QPT_UD;
  ibv_qp_attr a = connection(peer.queue_pair, peer.gid, psn, peer.psn);
  a.qp_state = IBV_QPS_INIT;
  a.qkey = 0x11111111;
  a.qp_access_flags = reliable ? kAll : IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_LOCAL_WRITE;
  CHECK_EQUAL(ibv_modify_qp(qp, &a,
                            IBV_QP_STATE | IBV_QP_PORT | IBV_QP_PKEY_INDEX |
                                (datagrams ? IBV_QP_QKEY : IBV_QP_ACCESS_FLAGS)),
              0);
  a.qp_state = IBV_QPS_RTR;
  int mask = IBV_QP_STATE;
  if (!datagrams) mask |= IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;
  if (reliable) mask |= IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
  CHECK_EQUAL(ibv_modify_qp(qp, &a, mask), 0);
  a.qp_state = IBV_QPS_RTS;
  mask = IBV_QP_STATE | IBV_QP_SQ_PSN;
  if (reliable) mask |= IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC;
  CHECK_EQUAL(ibv_modify_qp(qp, &a, mask), 0);
  CHECK_EQUAL(qp->state, IBV_QPS_RTS);
}

void Link::receive(uint64_t id, std::vector<ibv_sge> pieces) {
  ibv_recv_wr wr{id, nullptr, pieces.data(), static_cast<int>(pieces.size())}, *bad = nullptr;
  CHECK_EQUAL(srq != nullptr ? ibv_post_srq_recv(srq, &wr, &bad) : ibv_post_recv(qp, &wr, &bad), 0);
}

ibv_send_wr Link::request(ibv_wr_opcode opcode, uint64_t id) const {
  ibv_send_wr wr{};
  wr.wr_id = id;
  wr.opcode = opcode;
  wr.send_flags = IBV_SEND_SIGNALED;
  const bool atomic = opcode == IBV_WR_ATOMIC_CMP_AND_SWP || opcode == IBV_WR_ATOMIC_FETCH_AND_ADD;
  if (atomic) {
    wr.wr.atomic.remote_addr = peer.address;
    wr.wr.atomic.rkey = peer.rkey;
  } else {
    wr.wr.rdma.remote_addr = peer.address;
    wr.wr.rdma.rkey = peer.rkey;
  }
  return wr;
}

void Link::post(ibv_send_wr wr, std::vector<ibv_sge> pieces) {
  wr.sg_list = pieces.data();
  wr.num_sge = static_cast<int>(pieces.size());
  ibv_send_wr* bad = nullptr;
  CHECK_EQUAL(ibv_post_send(qp, &wr, &bad), 0);
}

namespace {

int poll_extended(ibv_cq_ex* cq, ibv_wc* into) {
  ibv_poll_cq_attr attributes{};
  const int error = ibv_start_poll(cq, &attributes);
  if (error == ENOENT) return 0;
  CHECK_EQUAL(error, 0);
  into->wr_id = cq->wr_id;
  into->status = cq->status;
  into->opcode = ibv_wc_read_opcode(cq);
  into->byte_len = ibv_wc_read_byte_len(cq);
  into->wc_flags = ibv_wc_read_wc_flags(cq);
  into->imm_data = ibv_wc_read_imm_data(cq);
  into->qp_num = ibv_wc_read_qp_num(cq);
  into->src_qp = ibv_wc_read_src_qp(cq);
  CHECK(ibv_wc_read_completion_ts(cq) != 0);
  ibv_end_poll(cq);
  return 1;
}

}  // namespace

ibv_wc Link::take() {
  const auto until = std::chrono::steady_clock::now() + std::chrono::milliseconds(kPatienceMs);
  for (;;) {
    ibv_wc completion{};
    const int got =
        extended_cq != nullptr ? poll_extended(extended_cq, &completion) : ibv_poll_cq(cq, 1, &completion);
    CHECK(got >= 0);
    if (got == 1) return completion;
    if (channel != nullptr) {
      // Armed since before this poll: what it did not find makes the descriptor readable.
      pollfd one{channel->fd, POLLIN, 0};
      CHECK(::poll(&one, 1, kPatienceMs) == 1);
      ibv_cq* its = nullptr;
      void* cookie = nullptr;
      CHECK(ibv_get_cq_event(channel, &its, &cookie) == 0);
      CHECK(its == cq);
      ibv_ack_cq_events(its, 1);
      CHECK(ibv_req_notify_cq(cq, 0) == 0);
    }
    CHECK(std::chrono::steady_clock::now() < until);
  }
}

ibv_wc Link::take_good(uint64_t id) {
  const ibv_wc completion = take();
  if (completion.status != IBV_WC_SUCCESS)
    fail(__FILE__, __LINE__, std::string("completion: ") + ibv_wc_status_str(completion.status));
  CHECK_EQUAL(completion.wr_id, id);
  return completion;
}

namespace {

void run_side(Side& side, const std::vector<const Case*>& cases) {
  int devices = 0;
  ibv_device** list = ibv_get_device_list(&devices);
  CHECK(list != nullptr && devices > 0);
  side.context = ibv_open_device(list[0]);
  CHECK(side.context != nullptr);
  ibv_free_device_list(list);
  for (const Case* one : cases) {
    running = one->name;
    side.pd = ibv_alloc_pd(side.context);
    CHECK(side.pd != nullptr);
    side.meet();
    one->run(side);
    side.meet();
    CHECK_EQUAL(ibv_dealloc_pd(side.pd), 0);
    ++side.seed;
  }
  running = "end";
  CHECK_EQUAL(ibv_close_device(side.context), 0);
}

int usage() {
  std::fprintf(stderr,
               "checker [--lossy] [--list] [CASE]...: two processes check RDMA; --lossy: only the cases "
               "that hold where packets are lost\n");
  return 1;
}

}  // namespace

}  // namespace checker

int main(int argc, char** argv) {
  using namespace checker;
  std::vector<const Case*> known, wanted;
  bool lossy = false, list = false;
  for (const auto* cases : {&kReliableCases, &kOtherCases, &kXrcCases})
    for (const Case& one : *cases) known.push_back(&one);
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    if (word == "--lossy") lossy = true;
    else if (word == "--list") list = true;
    else {
      const auto found = std::ranges::find_if(known, [&](const Case* one) { return word == one->name; });
      if (found == known.end()) return usage();
      wanted.push_back(*found);
    }
  }
  if (wanted.empty()) wanted = known;
  if (lossy) std::erase_if(wanted, [](const Case* one) { return !one->lossy; });
  if (list) {
    for (const Case* one : wanted) std::puts(one->name);
    return 0;
  }
  int pair[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0) return 1;
  // Before the first call of verbs: each process has a device of its own.
  const pid_t child = ::fork();
  if (child < 0) return 1;
  is_client = child == 0;
  Side side;
  side.client = is_client;
  side.socket = pair[is_client ? 1 : 0];
  ::close(pair[is_client ? 0 : 1]);
  run_side(side, wanted);
  if (is_client) return 0;
  int status = 0;
  if (::waitpid(child, &status, 0) != child || status != 0) return 1;
  std::printf("%zu cases, all right\n", wanted.size());
  return 0;
}
