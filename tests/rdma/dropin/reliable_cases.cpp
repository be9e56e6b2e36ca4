// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Cases over reliable connections; those marked lossy are right whatever happens to packets.
#include <algorithm>
#include <chrono>
#include <cstring>
#include <random>
#include <thread>

#include "checker.hpp"

namespace checker {

namespace {

constexpr std::size_t kSizes[] = {0, 1, 2, 3, 5, 64, 1023, 1024, 1025, 4097, 65536, 300'001};
constexpr std::size_t kLargest = 300'001;

void writes(Side& side) {
  Buffer buffer(side, kLargest + 64, kAll);
  Link link(side, {});
  link.connect(buffer);
  uint64_t id = 1;
  for (const std::size_t size : kSizes) {
    buffer.poison();
    if (side.client) buffer.fill(side.seed + size, 0, size);
    side.meet();
    if (side.client) {
      ibv_send_wr wr = link.request(IBV_WR_RDMA_WRITE, id);
      wr.wr.rdma.remote_addr += 7;
      link.post(wr, size == 0 ? std::vector<ibv_sge>{} : std::vector{buffer.piece(0, size)});
      const ibv_wc done = link.take_good(id);
      CHECK_EQUAL(done.opcode, IBV_WC_RDMA_WRITE);
    }
    side.meet();
    if (!side.client) {
      buffer.expect_poison(0, 7);
      buffer.expect(side.seed + size, 7, size);
      buffer.expect_poison(7 + size, buffer.bytes.size() - size - 7);
    }
    side.meet();
    ++id;
  }
}

void reads(Side& side) {
  Buffer buffer(side, kLargest + 64, kAll);
  Link link(side, {});
  link.connect(buffer);
  for (const std::size_t size : kSizes) {
    buffer.poison();
    if (!side.client) buffer.fill(side.seed + size, 3, size);
    side.meet();
    if (side.client) {
      ibv_send_wr wr = link.request(IBV_WR_RDMA_READ, 100 + size);
      wr.wr.rdma.remote_addr += 3;
      link.post(wr, size == 0 ? std::vector<ibv_sge>{} : std::vector{buffer.piece(11, size)});
      CHECK_EQUAL(link.take_good(100 + size).opcode, IBV_WC_RDMA_READ);
      buffer.expect_poison(0, 11);
      buffer.expect(side.seed + size, 11, size);
      buffer.expect_poison(11 + size, buffer.bytes.size() - size - 11);
    }
    side.meet();
  }
}

/// Gathered from three places, scattered to three others; with an immediate every other time.
void sends_of(Side& side, const Options& options) {
  Buffer buffer(side, 1 << 16, kAll);
  Link link(side, options);
  link.connect(buffer);
  for (uint64_t round = 0; round < 12; ++round) {
    const std::size_t parts[3] = {1 + round * 3, 700 * round, 2000 - round};
    const std::size_t size = parts[0] + parts[1] + parts[2];
    buffer.poison();
    if (!side.client)
      link.receive(round, {buffer.piece(0, 1500), buffer.piece(2000, 1), buffer.piece(4000, 20'000)});
    side.meet();
    if (side.client) {
      std::vector<ibv_sge> pieces;
      std::size_t at = 0, done = 0;
      for (const std::size_t part : parts) {
        for (std::size_t i = 0; i < part; ++i) buffer.bytes[at + i] = pattern(side.seed + round, done + i);
        pieces.push_back(buffer.piece(at, part));
        at += part + 13;
        done += part;
      }
      ibv_send_wr wr = link.request(round % 2 == 0 ? IBV_WR_SEND : IBV_WR_SEND_WITH_IMM, round);
      wr.imm_data = static_cast<uint32_t>(0xABCD0000 + round);
      link.post(wr, pieces);
      CHECK_EQUAL(link.take_good(round).opcode, IBV_WC_SEND);
    } else {
      const ibv_wc got = link.take_good(round);
      CHECK_EQUAL(got.opcode, IBV_WC_RECV);
      CHECK_EQUAL(got.byte_len, size);
      CHECK_EQUAL(got.qp_num, link.qp->qp_num);
      CHECK_EQUAL(got.wc_flags & IBV_WC_WITH_IMM, round % 2 == 0 ? 0 : IBV_WC_WITH_IMM);
      if (round % 2 == 1) CHECK_EQUAL(got.imm_data, 0xABCD0000 + round);
      const std::size_t first = std::min<std::size_t>(size, 1500);
      buffer.expect(side.seed + round, 0, first);
      if (size > 1500) buffer.expect(side.seed + round, 2000, 1, 1500);
      if (size > 1501) buffer.expect(side.seed + round, 4000, size - 1501, 1501);
      buffer.expect_poison(4000 + (size > 1501 ? size - 1501 : 0), 10'000);
    }
    side.meet();
  }
}

void sends(Side& side) {
  sends_of(side, {});
}
void sends_shared(Side& side) {
  sends_of(side, {.shared_receives = true});
}
void sends_events(Side& side) {
  sends_of(side, {.events = true});
}
void sends_extended(Side& side) {
  sends_of(side, {.extended = true});
}

void write_immediate(Side& side) {
  Buffer buffer(side, 10'000, kAll);
  Link link(side, {});
  link.connect(buffer);
  buffer.poison();
  if (!side.client) link.receive(5, {});
  if (side.client) buffer.fill(side.seed, 0, 5000);
  side.meet();
  if (side.client) {
    ibv_send_wr wr = link.request(IBV_WR_RDMA_WRITE_WITH_IMM, 6);
    wr.imm_data = 0x01020304;
    link.post(wr, {buffer.piece(0, 5000)});
    link.take_good(6);
  } else {
    const ibv_wc got = link.take_good(5);
    CHECK_EQUAL(got.opcode, IBV_WC_RECV_RDMA_WITH_IMM);
    CHECK_EQUAL(got.imm_data, 0x01020304);
    CHECK_EQUAL(got.byte_len, 5000);
    buffer.expect(side.seed, 0, 5000);
    buffer.expect_poison(5000, 5000);
  }
}

/// Inline bytes may be changed as soon as the call returns.
void inlined(Side& side) {
  Buffer buffer(side, 4096, kAll);
  Link link(side, {});
  link.connect(buffer);
  buffer.poison();
  side.meet();
  if (side.client) {
    uint8_t bytes[64];
    for (uint64_t i = 0; i < 32; ++i) {
      for (std::size_t at = 0; at < sizeof bytes; ++at) bytes[at] = pattern(side.seed + i, at);
      ibv_send_wr wr = link.request(IBV_WR_RDMA_WRITE, i);
      wr.wr.rdma.remote_addr += i * 100;
      wr.send_flags |= IBV_SEND_INLINE;
      link.post(wr, {{reinterpret_cast<uint64_t>(bytes), sizeof bytes, 0}});
      std::memset(bytes, 0, sizeof bytes);
    }
    for (uint64_t i = 0; i < 32; ++i) link.take_good(i);
  }
  side.meet();
  if (!side.client)
    for (uint64_t i = 0; i < 32; ++i) {
      buffer.expect(side.seed + i, i * 100, 64);
      buffer.expect_poison(i * 100 + 64, 36);
    }
}

uint64_t& word(Buffer& buffer, std::size_t index) {
  return reinterpret_cast<uint64_t*>(buffer.bytes.data())[index];
}

/// Both sides add to one word, and take turns at another by compare and swap. A repeated packet must not
/// count twice.
void atomics(Side& side) {
  constexpr uint64_t kTimes = 200;
  Buffer buffer(side, 4096, kAll);
  Link link(side, {});
  link.connect(buffer);
  std::fill(buffer.bytes.begin(), buffer.bytes.end(), uint8_t{0});
  side.meet();
  if (side.client) {
    for (uint64_t i = 0; i < kTimes; ++i) {
      ibv_send_wr wr = link.request(IBV_WR_ATOMIC_FETCH_AND_ADD, i);
      wr.wr.atomic.compare_add = i + 1;
      link.post(wr, {buffer.piece(64, 8)});
      link.take_good(i);
      CHECK_EQUAL(word(buffer, 8), i * (i + 1) / 2);
      wr = link.request(IBV_WR_ATOMIC_CMP_AND_SWP, i);
      wr.wr.atomic.remote_addr += 8;
      wr.wr.atomic.compare_add = i % 3 == 0 ? ~uint64_t{0} : i == 1 ? 0 : word(buffer, 20);
      wr.wr.atomic.swap = i + 1;
      link.post(wr, {buffer.piece(72, 8)});
      CHECK_EQUAL(link.take_good(i).opcode, IBV_WC_COMP_SWAP);
      // Each third compares with what is never there.
      if (i % 3 != 0) word(buffer, 20) = i + 1;
      word(buffer, 30) = side.seed + i;
      wr = link.request(IBV_WR_ATOMIC_WRITE, i);
      wr.wr.rdma.remote_addr += 16;
      link.post(wr, {buffer.piece(240, 8)});
      word(buffer, 30) = 0;  // taken already
      CHECK_EQUAL(link.take_good(i).opcode, IBV_WC_ATOMIC_WRITE);
    }
  }
  side.meet();
  if (!side.client) {
    CHECK_EQUAL(word(buffer, 0), kTimes * (kTimes + 1) / 2);
    CHECK_EQUAL(word(buffer, 1), kTimes % 3 == 1 ? kTimes - 1 : kTimes);
    CHECK_EQUAL(word(buffer, 2), side.seed + kTimes - 1);
    CHECK_EQUAL(word(buffer, 3), 0);
  }
}

/// Many in flight, of all kinds, in random order and sizes; then every byte is compared.
void mixed(Side& side) {
  constexpr std::size_t kSlots = 16, kSlot = 20'000;
  constexpr uint64_t kRounds = 30;
  Buffer buffer(side, 2 * kSlots * kSlot, kAll);
  Link link(side, {});
  link.connect(buffer);
  std::mt19937_64 random(side.seed);
  for (uint64_t round = 0; round < kRounds; ++round) {
    buffer.poison();
    std::size_t sizes[kSlots];
    int kinds[kSlots];
    for (std::size_t i = 0; i < kSlots; ++i) {
      sizes[i] = 1 + random() % (round % 4 == 0 ? 100 : kSlot);
      kinds[i] = static_cast<int>(random() % 3);
    }
    // Lower half: what is sent or read; upper half: where it goes.
    for (std::size_t i = 0; i < kSlots; ++i) {
      const uint64_t seed = side.seed * 1000 + round * 100 + i;
      if (side.client ? kinds[i] != 1 : kinds[i] == 1) buffer.fill(seed, i * kSlot, sizes[i]);
      if (!side.client && kinds[i] == 2) link.receive(i, {buffer.piece((kSlots + i) * kSlot, sizes[i])});
    }
    side.meet();
    const auto check = [&](std::size_t i) {
      const uint64_t seed = side.seed * 1000 + round * 100 + i;
      buffer.expect(seed, (kSlots + i) * kSlot, sizes[i]);
      buffer.expect_poison((kSlots + i) * kSlot + sizes[i], kSlot - sizes[i]);
    };
    if (side.client) {
      for (std::size_t i = 0; i < kSlots; ++i) {
        const ibv_wr_opcode opcode = kinds[i] == 0   ? IBV_WR_RDMA_WRITE
                                     : kinds[i] == 1 ? IBV_WR_RDMA_READ
                                                     : IBV_WR_SEND;
        ibv_send_wr wr = link.request(opcode, i);
        wr.wr.rdma.remote_addr += (kinds[i] == 1 ? i : kSlots + i) * kSlot;
        // Completions of the others follow from those that ask.
        if (i % 2 == 0 && i + 1 < kSlots) wr.send_flags = 0;
        link.post(wr, {buffer.piece(((kinds[i] == 1 ? kSlots : 0) + i) * kSlot, sizes[i])});
      }
      for (std::size_t i = 1; i < kSlots; i += 2) link.take_good(i);
      for (std::size_t i = 0; i < kSlots; ++i)
        if (kinds[i] == 1) check(i);
    } else {
      for (std::size_t i = 0; i < kSlots; ++i)
        if (kinds[i] == 2) link.take_good(i);
    }
    side.meet();
    if (!side.client)
      for (std::size_t i = 0; i < kSlots; ++i)
        if (kinds[i] != 1) check(i);
    side.meet();
  }
}

/// The server posts its receives late: the sender is told to come again, as often as it takes.
void receiver_not_ready(Side& side) {
  Buffer buffer(side, 8192, kAll);
  Link link(side, {});
  link.connect(buffer);
  buffer.poison();
  if (side.client) {
    buffer.fill(side.seed, 0, 4000);
    link.post(link.request(IBV_WR_SEND, 1), {buffer.piece(0, 4000)});
    side.meet();
    link.take_good(1);
  } else {
    side.meet();
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    link.receive(9, {buffer.piece(0, 4096)});
    link.take_good(9);
    buffer.expect(side.seed, 0, 4000);
  }
}

/// Built call by call; a request that is aborted leaves nothing.
void extended_posting(Side& side) {
  Buffer buffer(side, 20'000, kAll);
  Link link(side, {.extended = true});
  link.connect(buffer);
  buffer.poison();
  if (!side.client) {
    link.receive(1, {buffer.piece(10'000, 100)});
    link.receive(2, {buffer.piece(10'100, 100)});
  }
  if (side.client) buffer.fill(side.seed, 0, 4000);
  side.meet();
  if (side.client) {
    ibv_qp_ex* qp = ibv_qp_to_qp_ex(link.qp);
    CHECK(qp != nullptr);
    const auto begin = [qp](uint64_t id) {
      qp->wr_id = id;
      qp->wr_flags = IBV_SEND_SIGNALED;
    };
    ibv_wr_start(qp);
    begin(77);
    ibv_wr_rdma_write(qp, link.peer.rkey, link.peer.address + 19'000);
    ibv_wr_set_sge(qp, buffer.region->lkey, buffer.address(), 500);
    ibv_wr_abort(qp);

    ibv_wr_start(qp);
    begin(1);
    ibv_wr_rdma_write(qp, link.peer.rkey, link.peer.address);
    const ibv_sge pieces[2] = {buffer.piece(0, 1000), buffer.piece(1000, 3000)};
    ibv_wr_set_sge_list(qp, 2, pieces);
    begin(2);
    uint8_t text[10];
    for (std::size_t i = 0; i < sizeof text; ++i) text[i] = pattern(side.seed + 5, i);
    ibv_wr_send_imm(qp, 42);
    ibv_wr_set_inline_data(qp, text, sizeof text);
    std::memset(text, 0, sizeof text);
    begin(3);
    ibv_wr_send(qp);
    ibv_wr_set_sge(qp, buffer.region->lkey, buffer.address(), 50);
    begin(4);
    ibv_wr_rdma_read(qp, link.peer.rkey, link.peer.address);
    ibv_wr_set_sge(qp, buffer.region->lkey, buffer.address() + 12'000, 4000);
    CHECK_EQUAL(ibv_wr_complete(qp), 0);
    for (uint64_t id = 1; id <= 4; ++id) link.take_good(id);
    buffer.expect(side.seed, 12'000, 4000);

    // A list that is too long is refused as a whole.
    ibv_wr_start(qp);
    for (uint64_t i = 0; i < 100; ++i) {
      begin(i);
      ibv_wr_rdma_write(qp, link.peer.rkey, link.peer.address + 19'000);
      ibv_wr_set_sge(qp, buffer.region->lkey, buffer.address(), 8);
    }
    CHECK_EQUAL(ibv_wr_complete(qp), ENOMEM);
  } else {
    ibv_wc got = link.take_good(1);
    CHECK_EQUAL(got.imm_data, 42);
    CHECK_EQUAL(got.byte_len, 10);
    buffer.expect(side.seed + 5, 10'000, 10);
    got = link.take_good(2);
    CHECK_EQUAL(got.byte_len, 50);
    buffer.expect(side.seed, 10'100, 50);
    buffer.expect(side.seed, 0, 4000);
  }
  side.meet();
  if (!side.client) buffer.expect_poison(18'000, 2000);
}

/// Queue pairs between two others' memory are out of reach: each wrong access is an error at both ends, and
/// changes nothing.
void refusals(Side& side) {
  enum Wrong { key, beyond, read_only, domain };
  for (const Wrong wrong : {key, beyond, read_only, domain}) {
    Buffer buffer(side, 4096, wrong == read_only ? IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ : kAll);
    Side other = side;
    other.pd = ibv_alloc_pd(side.context);
    CHECK(other.pd != nullptr);
    {
      Link link(wrong == domain && !side.client ? other : side, {});
      link.connect(buffer);
      buffer.poison();
      side.meet();
      if (side.client) {
        ibv_send_wr wr = link.request(IBV_WR_RDMA_WRITE, 1);
        if (wrong == key) wr.wr.rdma.rkey ^= 0x5500;
        if (wrong == beyond) wr.wr.rdma.remote_addr += 4090;
        link.post(wr, {buffer.piece(0, 100)});
        link.post(link.request(IBV_WR_RDMA_WRITE, 2), {buffer.piece(0, 100)});
        ibv_wc got = link.take();
        CHECK_EQUAL(got.status, IBV_WC_REM_ACCESS_ERR);
        CHECK_EQUAL(got.wr_id, 1);
        got = link.take();
        CHECK_EQUAL(got.status, IBV_WC_WR_FLUSH_ERR);
        ibv_qp_attr now{};
        ibv_qp_init_attr made{};
        CHECK_EQUAL(ibv_query_qp(link.qp, &now, IBV_QP_STATE, &made), 0);
        CHECK_EQUAL(now.qp_state, IBV_QPS_ERR);
      } else {
        ibv_async_event event{};
        CHECK_EQUAL(ibv_get_async_event(side.context, &event), 0);
        CHECK_EQUAL(event.event_type, IBV_EVENT_QP_ACCESS_ERR);
        CHECK(event.element.qp == link.qp);
        ibv_ack_async_event(&event);
        buffer.expect_poison(0, 4096);
      }
      side.meet();
    }
    CHECK_EQUAL(ibv_dealloc_pd(other.pd), 0);
  }
}

/// A queue of shared receives says once that few are left.
void shared_limit(Side& side) {
  Buffer buffer(side, 4096, kAll);
  Link link(side, {.shared_receives = true});
  link.connect(buffer);
  if (!side.client) {
    for (uint64_t i = 0; i < 8; ++i) link.receive(i, {buffer.piece(0, 64)});
    ibv_srq_attr limit{};
    limit.srq_limit = 4;
    CHECK_EQUAL(ibv_modify_srq(link.srq, &limit, IBV_SRQ_LIMIT), 0);
    CHECK_EQUAL(ibv_query_srq(link.srq, &limit), 0);
    CHECK_EQUAL(limit.srq_limit, 4);
  }
  side.meet();
  if (side.client) {
    for (uint64_t i = 0; i < 6; ++i) link.post(link.request(IBV_WR_SEND, i), {buffer.piece(0, 10)});
    for (uint64_t i = 0; i < 6; ++i) link.take_good(i);
  } else {
    for (int i = 0; i < 6; ++i) CHECK_EQUAL(link.take().status, IBV_WC_SUCCESS);
    ibv_async_event event{};
    CHECK_EQUAL(ibv_get_async_event(side.context, &event), 0);
    CHECK_EQUAL(event.event_type, IBV_EVENT_SRQ_LIMIT_REACHED);
    CHECK(event.element.srq == link.srq);
    ibv_ack_async_event(&event);
  }
  side.meet();
}

/// A window of type 2 over part of a region, which the peer invalidates by a send.
void window(Side& side) {
  Buffer buffer(side, 4096, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND);
  ibv_mw* mw = ibv_alloc_mw(side.pd, IBV_MW_TYPE_2);
  CHECK(mw != nullptr);
  {
    Link link(side, {});
    const uint32_t key = ibv_inc_rkey(mw->rkey);
    link.connect(buffer, key);
    buffer.poison();
    if (!side.client) {
      ibv_send_wr wr{};
      wr.wr_id = 1;
      wr.opcode = IBV_WR_BIND_MW;
      wr.send_flags = IBV_SEND_SIGNALED;
      wr.bind_mw.mw = mw;
      wr.bind_mw.rkey = key;
      wr.bind_mw.bind_info = {buffer.region, buffer.address() + 1000, 1000, IBV_ACCESS_REMOTE_WRITE};
      link.post(wr, {});
      CHECK_EQUAL(link.take_good(1).opcode, IBV_WC_BIND_MW);
      link.receive(2, {});
    }
    side.meet();
    if (side.client) {
      buffer.fill(side.seed, 0, 1000);
      ibv_send_wr wr = link.request(IBV_WR_RDMA_WRITE, 3);
      wr.wr.rdma.rkey = link.peer.window_key;
      wr.wr.rdma.remote_addr += 1000;
      link.post(wr, {buffer.piece(0, 1000)});
      link.take_good(3);
      ibv_send_wr last = link.request(IBV_WR_SEND_WITH_INV, 4);
      last.invalidate_rkey = link.peer.window_key;
      link.post(last, {});
      link.take_good(4);
      link.post(wr, {buffer.piece(0, 1000)});
      CHECK_EQUAL(link.take().status, IBV_WC_REM_ACCESS_ERR);
    } else {
      const ibv_wc got = link.take_good(2);
      CHECK_EQUAL(got.wc_flags & IBV_WC_WITH_INV, IBV_WC_WITH_INV);
      CHECK_EQUAL(got.invalidated_rkey, key);
      buffer.expect_poison(0, 1000);
      buffer.expect(side.seed, 1000, 1000);
      buffer.expect_poison(2000, 2096);
      // The client's last access.
      ibv_async_event event{};
      CHECK_EQUAL(ibv_get_async_event(side.context, &event), 0);
      CHECK_EQUAL(event.event_type, IBV_EVENT_QP_ACCESS_ERR);
      ibv_ack_async_event(&event);
    }
    side.meet();
  }
  CHECK_EQUAL(ibv_dealloc_mw(mw), 0);
}

}  // namespace

const std::vector<Case> kReliableCases = {
    {"write", true, writes},
    {"read", true, reads},
    {"send", true, sends},
    {"send_shared", true, sends_shared},
    {"send_events", true, sends_events},
    {"send_extended", true, sends_extended},
    {"write_immediate", true, write_immediate},
    {"inline", true, inlined},
    {"atomics", true, atomics},
    {"mixed", true, mixed},
    {"receiver_not_ready", true, receiver_not_ready},
    {"extended_posting", true, extended_posting},
    {"refusals", false, refusals},
    {"shared_limit", true, shared_limit},
    {"window", false, window},
};

}  // namespace checker
