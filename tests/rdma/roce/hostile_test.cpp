// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Packets that no peer should send: malformed, out of place, of strangers, of chance. They are counted, and
// change no memory.
#include <gtest/gtest.h>

#include <random>

#include "rdma/roce/fake_wire.hpp"

namespace doorbell::roce::test {
namespace {

/// A packet to the second NIC, whose payload is `bytes` times EE.
Bytes craft(Pair& pair, Operation operation, std::size_t bytes, u32 psn = kFirstPsn, u32 length = ~0U,
            const std::function<void(Headers&)>& change = {}) {
  Headers h;
  h.operation = operation;
  h.queue_pair = pair.b_pair->number();
  h.psn = psn;
  h.wants_ack = true;
  h.range = {.address = pair.b.address(1024),
             .key = pair.b.keys.remote_key,
             .length = length == ~0U ? static_cast<u32>(bytes) : length};
  if (change) change(h);
  Bytes packet(kLongestHeaders + bytes + 4);
  const std::size_t headers = encode(h, bytes, packet.data());
  std::fill_n(packet.begin() + static_cast<std::ptrdiff_t>(headers), bytes, u8{0xEE});
  packet.resize(headers + bytes + pad_bytes(bytes));
  return packet;
}

struct Misfit {
  std::string name;
  std::vector<std::function<Bytes(Pair&)>> packets;  ///< the last one is refused
};

class RoceMisfits : public testing::TestWithParam<Misfit> {};

TEST_P(RoceMisfits, AreRefusedAsInvalid) {
  Pair pair;
  ASSERT_EQ(pair.error, 0);
  ASSERT_EQ(pair.b_pair->post_receive(5, std::vector{pair.b.sge(0, 1000)}), 0);
  const auto& packets = GetParam().packets;
  for (std::size_t i = 0; i + 1 < packets.size(); ++i)
    pair.b.carrier.inbox.emplace_back(pair.a.at, packets[i](pair));
  pair.b.nic->round_at(pair.now);
  ASSERT_EQ(pair.b_pair->state(), State::rts);
  const Bytes before = pair.b.memory;
  pair.b.carrier.inbox.emplace_back(pair.a.at, packets.back()(pair));
  pair.b.nic->round_at(pair.now);
  EXPECT_EQ(pair.b_pair->state(), State::error);
  EXPECT_TRUE(pair.b.was_told(Event::qp_request_error));
  EXPECT_EQ(pair.b.nic->counters().naks_sent[static_cast<std::size_t>(NakCode::invalid_request)], 1U);
  EXPECT_TRUE(before == pair.b.memory);
  const auto all = pair.b.poll();
  ASSERT_EQ(all.size(), 1U);
  EXPECT_EQ(all[0].status, Status::flushed);
}

using enum Operation;
std::function<Bytes(Pair&)> one(Operation operation, std::size_t bytes, u32 number = 0, u32 length = ~0U) {
  return [=](Pair& pair) { return craft(pair, operation, bytes, psn_after(kFirstPsn, number), length); };
}

const std::vector<Misfit> kMisfits = {
    {"write_middle_alone", {one(write_middle, kMtu)}},
    {"write_last_alone", {one(write_last, 10)}},
    {"send_middle_alone", {one(send_middle, kMtu)}},
    {"send_last_alone", {one(send_last, 10)}},
    {"write_first_short", {one(write_first, kMtu - 4, 0, 1000)}},
    {"write_first_long", {one(write_first, kMtu + 4, 0, 1000)}},
    {"write_first_of_a_short_message", {one(write_first, kMtu, 0, kMtu)}},
    {"write_only_long", {one(write_only, kMtu + 1)}},
    {"write_only_less_than_said", {one(write_only, 10, 0, 11)}},
    {"write_only_more_than_said", {one(write_only, 12, 0, 11)}},
    {"send_first_short", {one(send_first, kMtu - 1)}},
    {"send_only_long", {one(send_only, kMtu + 1)}},
    {"send_last_empty", {one(send_first, kMtu), one(send_last, 0, 1)}},
    {"send_last_long", {one(send_first, kMtu), one(send_last, kMtu + 1, 1)}},
    {"write_last_too_little", {one(write_first, kMtu, 0, 300), one(write_last, 43, 1)}},
    {"write_last_too_much", {one(write_first, kMtu, 0, 300), one(write_last, 45, 1)}},
    {"write_middle_at_the_end", {one(write_first, kMtu, 0, 2 * kMtu), one(write_middle, kMtu, 1)}},
    {"write_in_a_send", {one(send_first, kMtu), one(write_last, 10, 1)}},
    {"send_in_a_write", {one(write_first, kMtu, 0, 1000), one(send_middle, kMtu, 1)}},
    {"begins_in_a_message", {one(send_first, kMtu), one(send_only, 10, 1)}},
    {"read_in_a_message", {one(send_first, kMtu), one(read_request, 0, 1, 10)}},
    {"atomic_in_a_message", {one(write_first, kMtu, 0, 1000), one(fetch_add, 0, 1)}},
    {"read_too_long", {one(read_request, 0, 0, (1U << 31) + 1)}},
    {"atomic_unaligned", {[](Pair& pair) {
       return craft(pair, fetch_add, 0, kFirstPsn, 0, [](Headers& h) { h.range.address += 4; });
     }}},
};
INSTANTIATE_TEST_SUITE_P(All, RoceMisfits, testing::ValuesIn(kMisfits),
                         [](const auto& test) { return test.param.name; });

TEST(RoceHostile, AStrangersPacketsChangeNothing) {
  Pair pair;
  ASSERT_EQ(pair.b_pair->post_receive(5, std::vector{pair.b.sge(0, 1000)}), 0);
  const Bytes before = pair.b.memory;
  const Endpoint stranger{.address = pair.a.at.address + 7, .port = kPort};
  u64 sent = 0;
  for (u8 operation = 0; operation < 32; ++operation) {
    if (!shape_of(Service::rc, static_cast<Operation>(operation)).exists) continue;
    const std::size_t bytes = shape_of(Service::rc, static_cast<Operation>(operation)).payload ? 64 : 0;
    pair.b.carrier.inbox.emplace_back(stranger, craft(pair, static_cast<Operation>(operation), bytes));
    ++sent;
  }
  pair.b.nic->round_at(pair.now);
  EXPECT_EQ(pair.b.nic->counters().dropped, sent);
  EXPECT_EQ(pair.b.nic->counters().packets_sent, 0U);
  EXPECT_EQ(pair.b_pair->state(), State::rts);
  EXPECT_TRUE(before == pair.b.memory);
  // The same packet from the peer is carried out.
  pair.b.carrier.inbox.emplace_back(pair.a.at, craft(pair, write_only, 64));
  pair.b.nic->round_at(pair.now);
  EXPECT_EQ(pair.b.memory[1024], 0xEE);
}

TEST(RoceHostile, AcknowledgementsOfWhatWasNotSent) {
  Pair pair;
  SendRequest write;
  write.id = 1;
  write.opcode = WrOpcode::write;
  write.flags = kSignaled;
  write.remote_address = pair.b.address(0);
  write.remote_key = pair.b.keys.remote_key;
  pair.wire.fate = [](Endpoint, std::span<const u8>) { return Fate::drop; };
  ASSERT_EQ(pair.a_pair->post(write, std::vector{pair.a.sge(0, 600)}), 0);
  pair.a.nic->round_at(pair.now);
  for (const Operation operation : {acknowledge, atomic_acknowledge, read_response_only}) {
    for (const u32 ahead : {3U, 4U, 1000U, 0x7F'FFFFU, 0x80'0000U, 0xFF'FFFFU}) {
      for (u8 kind = 0; kind < 4; ++kind) {
        Bytes packet = craft(pair, operation, 0, psn_after(kFirstPsn, ahead), 0, [&](Headers& h) {
          h.queue_pair = pair.a_pair->number();
          h.ack.kind = static_cast<Acknowledge::Kind>(kind);
          h.ack.value = 2;
        });
        pair.a.carrier.inbox.emplace_back(pair.b.at, packet);
      }
    }
  }
  // Answers that fit no request in flight, of another kind.
  pair.a.carrier.inbox.emplace_back(pair.b.at,
                                    craft(pair, read_response_only, 0, kFirstPsn, 0,
                                          [&](Headers& h) { h.queue_pair = pair.a_pair->number(); }));
  pair.a.nic->round_at(pair.now);
  EXPECT_TRUE(pair.a.poll().empty());
  EXPECT_EQ(pair.a_pair->state(), State::rts);
  pair.wire.fate = nullptr;
  EXPECT_EQ(pair.next(pair.a).status, Status::success);
}

TEST(RoceHostile, DuplicateReadsAndAtomicsOfOtherPlacesAreNotAnswered) {
  Pair pair;
  const auto inject = [&](const Bytes& packet) {
    pair.b.carrier.inbox.emplace_back(pair.a.at, packet);
    const u64 before = pair.b.nic->counters().packets_sent;
    pair.b.nic->round_at(pair.now);
    return pair.b.nic->counters().packets_sent - before;
  };
  ASSERT_EQ(inject(craft(pair, read_request, 0, kFirstPsn, 700)), 3U);
  ASSERT_EQ(
      inject(craft(pair, fetch_add, 0, psn_after(kFirstPsn, 3), 0, [](Headers& h) { h.swap_or_add = 5; })),
      1U);
  const Bytes memory = pair.b.memory;
  // Within what was read before: answered again, from any packet on.
  EXPECT_EQ(inject(craft(pair, read_request, 0, kFirstPsn, 700)), 3U);
  const auto part = [](u64 by) { return [by](Headers& h) { h.range.address += by; }; };
  EXPECT_EQ(inject(craft(pair, read_request, 0, psn_after(kFirstPsn, 1), 444, part(256))), 2U);
  EXPECT_EQ(inject(craft(pair, read_request, 0, psn_after(kFirstPsn, 2), 188, part(512))), 1U);
  // More, elsewhere, or with another key: not.
  EXPECT_EQ(inject(craft(pair, read_request, 0, kFirstPsn, 701)), 0U);
  EXPECT_EQ(inject(craft(pair, read_request, 0, kFirstPsn, 700, part(8))), 0U);
  EXPECT_EQ(inject(craft(pair, read_request, 0, psn_after(kFirstPsn, 1), 445, part(256))), 0U);
  EXPECT_EQ(inject(craft(pair, read_request, 0, kFirstPsn, 700, [](Headers& h) { ++h.range.key; })), 0U);
  EXPECT_EQ(inject(craft(pair, read_request, 0, psn_after(kFirstPsn, 3), 100)), 0U);
  // An atomic's result is told again, and it is not carried out again.
  EXPECT_EQ(
      inject(craft(pair, fetch_add, 0, psn_after(kFirstPsn, 3), 0, [](Headers& h) { h.swap_or_add = 9; })),
      1U);
  EXPECT_EQ(inject(craft(pair, fetch_add, 0, kFirstPsn)), 0U);
  EXPECT_EQ(pair.b.nic->counters().replayed_atomics, 1U);
  // Forgotten after max_dest_rd_atomic others.
  for (u32 i = 0; i < 4; ++i)
    ASSERT_EQ(inject(craft(pair, read_request, 0, psn_after(kFirstPsn, 4 + i), 8)), 1U);
  EXPECT_EQ(inject(craft(pair, fetch_add, 0, psn_after(kFirstPsn, 3))), 0U);
  EXPECT_TRUE(memory == pair.b.memory);
}

TEST(RoceHostile, AFloodOfReadsNeedsNoMemoryAndEndsNothing) {
  Pair pair(Service::rc, {}, {});
  pair.b.carrier.fake_path(pair.a.at).most_under_way = 1;
  for (u32 i = 0; i < 500; ++i)
    pair.b.carrier.inbox.emplace_back(pair.a.at,
                                      craft(pair, read_request, 0, psn_after(kFirstPsn, 4 * i), 1000));
  pair.wire.fate = [](Endpoint, std::span<const u8>) { return Fate::drop; };
  for (u32 i = 0; i < 100; ++i) pair.b.nic->round_at(pair.now);
  EXPECT_EQ(pair.b_pair->state(), State::rts);
  EXPECT_LE(pair.b.nic->counters().packets_sent, 2U);
}

TEST(RoceHostile, PacketsOfChance) {
  for (const Service service : {Service::rc, Service::uc, Service::ud}) {
    Pair pair(service);
    ASSERT_EQ(pair.error, 0);
    const Bytes before_a = pair.a.memory;
    ASSERT_EQ(pair.b_pair->post_receive(5, std::vector{pair.b.sge(0, 4000)}), 0);
    const Bytes before = pair.b.memory;
    std::mt19937 random(7);
    const auto draw = [&](u32 most) { return static_cast<u32>(random() % (most + 1)); };
    constexpr u32 kPackets = 20000;
    u64 answers = 0;
    for (u32 i = 0; i < kPackets; ++i) {
      Bytes packet(draw(400));
      for (u8& byte : packet) byte = static_cast<u8>(draw(255));
      // Half of them are of the right service, version and partition, and for the queue pair that is there:
      // but their PSNs, keys and Q_Keys are of chance.
      if (packet.size() >= 12 && draw(1) == 0) {
        packet[0] = static_cast<u8>(static_cast<u32>(service) << 5 | (packet[0] & 0x1F));
        packet[1] &= 0xF0;
        packet[2] = packet[3] = 0xFF;
        packet[5] = static_cast<u8>(pair.b_pair->number() >> 16);
        packet[6] = static_cast<u8>(pair.b_pair->number() >> 8);
        packet[7] = static_cast<u8>(pair.b_pair->number());
        packet[9] = 0x40;  // of RC: far ahead
        packet.resize(packet.size() / 4 * 4);
      }
      // UC takes a message with any PSN, and its SENDs need no key.
      if (service == Service::uc && packet.size() >= 12) packet[0] = static_cast<u8>(0x26 + draw(5));
      // An answer to nothing is no request, and is not counted.
      Decoded decoded;
      if (!decode(packet, decoded) && !decoded.shape.request) ++answers;
      pair.b.carrier.inbox.emplace_back(pair.a.at, packet);
      if (i % 64 == 0) pair.b.nic->round_at(pair.now);
    }
    pair.b.nic->round_at(pair.now);
    EXPECT_TRUE(before == pair.b.memory);
    EXPECT_TRUE(before_a == pair.a.memory);
    EXPECT_EQ(pair.b_pair->state(), State::rts);
    EXPECT_TRUE(pair.b.poll().empty());
    const Counters all = pair.b.nic->counters();
    EXPECT_GE(all.dropped + all.out_of_order + all.dropped_queue_key + answers, kPackets);
    EXPECT_LT(answers, kPackets / 4);
  }
}

}  // namespace
}  // namespace doorbell::roce::test
