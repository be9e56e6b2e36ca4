// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Cassini's structures one bit at a time: bits of a field change its value, other bits are ignored.

#include <doorbell/cxi/commands.hpp>
#include <doorbell/cxi/events.hpp>
#include <gtest/gtest.h>

#include <bit>
#include <cstring>
#include <random>
#include <vector>

#include "cxi/names.hpp"

namespace doorbell::cxi {
namespace {

struct WidthCounter {
  u64* total;
  template <class Place, class T>
  void operator()(Place, const T&) const {
    *total += static_cast<u64>(std::popcount(Place::kMask));
  }
};

template <u32 kCount>
u64 ones(const Words<kCount>& v) {
  u64 n = 0;
  for (const u64 w : v.w) n += static_cast<u64>(std::popcount(w));
  return n;
}

template <class T>
bool same_fields(const T& a, const T& b) {
  return std::memcmp(pack(a).w, pack(b).w, sizeof pack(a).w) == 0;
}

/// `bits` is how many bits of fields the structure has, counted by hand.
template <class T>
void expect_disjoint(u64 bits) {
  u64 widths = 0;
  const T any{};
  T::visit(any, WidthCounter{&widths});
  EXPECT_EQ(widths, bits);
  EXPECT_EQ(ones(used_bits<T>()), bits) << "two fields share a bit";
}

template <class T>
T random_fields(std::mt19937_64& random) {
  u64 words[T::kWords];
  for (u64& w : words) w = random();
  return unpack<T>(words);
}

/// Flips each bit of what `encoded` gives; `noticed(words)` says whether decoding notices.
template <class T, class Encode, class Noticed>
void flip_every_bit(const T& value, const Words<T::kWords>& claimed, Encode encoded, Noticed noticed) {
  const Words<T::kWords> good = encoded(value);
  ASSERT_FALSE(noticed(good.w));
  for (u32 k = 0; k < 64 * T::kWords; ++k) {
    Words<T::kWords> bad = good;
    bad.w[k / 64] ^= u64{1} << k % 64;
    const bool used = (claimed.w[k / 64] >> k % 64 & 1) != 0;
    EXPECT_EQ(noticed(bad.w), used) << "bit " << k % 8 << " of byte " << k / 8;
  }
}

template <class C>
void check_command(u64 bits) {
  expect_disjoint<C>(bits);
  std::mt19937_64 random(1);
  for (int round = 0; round < 20; ++round) {
    C command = random_fields<C>(random);
    if constexpr (requires { command.flags.restricted; })
      if (C::kWords == 4) command.flags.restricted = true;
    Words<C::kWords> claimed = used_bits<C>();
    claimed.w[0] |= 0xff;
    flip_every_bit(
        command, claimed, [](const C& c) { return encode(c); },
        [&](const u64* words) {
          C d;
          return !decode(words, d) || d.header() != command.header() || !same_fields(d, command);
        });
  }
}

TEST(CxiCommands, EveryBitBelongsToAFieldOrIsUnused) {
  check_command<NomatchDma>(5 + 3 + 11 + 32 + 56 + 57 + 32 + 11 + 11);
  check_command<FullDma>(5 + 3 + 11 + 32 + 56 + 57 + 32 + 11 + 11 + 20 + 8 + 32 + 64 * 3);
  check_command<CState>(3 + 11 + 32 + 5 + 64 + 11 + 11);
  check_command<CounterCommand>(3 * 11 + 48 + 7 + 2 + 48);
  check_command<Append>(2 + 11 + 15 + 11 + 16 + 3 + 1 + 57 + 56 + 24 + 32 + 64 + 64);
  check_command<Unlink>(2 + 11 + 16);
  check_command<SetState>(3 + 11 + 57 + 24);
  check_command<Lcid>(4);
}

TEST(CxiCommands, ValuesThatAreTooWideStayInTheirFields) {
  NomatchDma put;
  put.index_ext = put.lac = put.ct = put.eq = ~0u;
  put.remote_offset = put.local_addr = ~u64{0};
  const auto words = encode(put);
  const auto used = used_bits<NomatchDma>();
  for (u32 k = 0; k < 4; ++k) EXPECT_EQ(words.w[k] & ~used.w[k] & ~(k == 0 ? u64{0xff} : 0), 0u);
  EXPECT_TRUE(unpack<NomatchDma>(words.w).flags.restricted) << "forced";
  EXPECT_EQ(unpack<NomatchDma>(words.w).request_len, 0u);
}

TEST(CxiCommands, EachHeaderBelongsToOneCommand) {
  u32 known = 0;
  for (u32 byte = 0; byte < 256; ++byte) {
    u64 words[TrigDma::kWords] = {};
    words[0] = byte | 16u << 8;
    words[TrigDma::kDmaWord] = encode(NomatchDma{}).w[0];
    NomatchDma a;
    FullDma b;
    CState c;
    IdcPut d;
    CounterCommand e;
    TrigDma f;
    Append g;
    SetState h;
    Lcid i;
    const u32 takers = u32{decode(words, a)} + u32{decode(words, b)} + u32{decode(words, c)} +
                       u32{decode(words, d)} + u32{decode(words, e)} + u32{decode(words, f)} +
                       u32{decode(words, g)} + u32{decode(words, h)} + u32{decode(words, i)};
    EXPECT_LE(takers, 1u) << byte;
    known += takers;
    const CommandHeader head = header_of(byte);
    EXPECT_EQ(head.byte(), byte);
    EXPECT_EQ(head.units() * 32, 32u << (byte >> 2 & 3));
  }
  // Two nomatch, three full, one C_STATE, four sizes of IDC put, eight counter, three of queues, a trigger.
  EXPECT_EQ(known, 2u + 3 + 1 + 4 + 8 + 1 + 3);
}

TEST(CxiCommands, IdcPutsOfEveryLength) {
  std::vector<u8> payload(IdcPut::kMaxPayload);
  for (std::size_t i = 0; i < payload.size(); ++i) payload[i] = static_cast<u8>(i * 29 + 1);
  for (u32 bytes = 0; bytes <= IdcPut::kMaxPayload; ++bytes) {
    IdcPut put;
    put.dfa = 0x89abcdef;
    put.remote_offset = 0x00a1b2c3d4e5f607;
    put.bytes = bytes;
    put.payload = payload.data();
    const u32 size = command_units(put) * 32;
    EXPECT_GE(size, bytes + IdcPut::kHeaderBytes);
    if (size > 32) {
      EXPECT_LT(size / 2, bytes + IdcPut::kHeaderBytes) << "not the smallest command";
    }
    alignas(16) u64 words[32] = {};
    for (u32 p = 0; p < 2 * command_units(put); ++p) {
      const Word16 part = command_part(put, p);
      std::memcpy(words + 2 * p, &part, sizeof part);
    }
    IdcPut back;
    ASSERT_TRUE(decode(words, back));
    EXPECT_EQ(back.dfa, put.dfa);
    EXPECT_EQ(back.remote_offset, put.remote_offset);
    ASSERT_EQ(back.bytes, bytes);
    EXPECT_EQ(std::memcmp(back.payload, payload.data(), bytes), 0);
    // Each bit of the header that has a meaning.
    for (u32 k = 0; k < 128; ++k) {
      if ((k >= 16 && k < 32) || k >= 120) continue;  // bytes 2, 3 and 15
      words[k / 64] ^= u64{1} << k % 64;
      IdcPut other;
      EXPECT_TRUE(!decode(words, other) || other.dfa != put.dfa || other.remote_offset != put.remote_offset ||
                  other.bytes != bytes || header_of(words[0]).size_code != put.size_code())
          << k;
      words[k / 64] ^= u64{1} << k % 64;
    }
    words[0] = (words[0] & ~u64{0xff00}) | u64{IdcPut::kHeaderBytes - 1} << 8;
    EXPECT_FALSE(decode(words, back)) << "shorter than its header";
    if (size < 256) {
      words[0] = (words[0] & ~u64{0xff00}) | u64{size + 1} << 8;
      EXPECT_FALSE(decode(words, back)) << "longer than its command";
    }
  }
  EXPECT_EQ(idc_limit(true), 224u);
  EXPECT_EQ(idc_limit(false), 192u);
}

TEST(CxiCommands, ATriggeredDmaCarriesBothHalves) {
  std::mt19937_64 random(3);
  TrigDma c;
  c.when = CounterCommand::trig_event(17, 0x123456789abc, 33);
  c.dma = random_fields<NomatchDma>(random);
  c.dma.flags.restricted = true;
  Words<TrigDma::kWords> claimed;
  CounterFields::visit(c.when, FieldMarker{claimed.w});
  NomatchDma::visit(c.dma, FieldMarker{claimed.w + TrigDma::kDmaWord});
  claimed.w[0] |= 0xff;
  claimed.w[TrigDma::kDmaWord] |= 0xff;
  flip_every_bit(
      c, claimed, [](const TrigDma& t) { return encode(t); },
      [&](const u64* words) {
        TrigDma d;
        if (!decode(words, d)) return true;
        u64 a[3] = {}, b[3] = {};
        CounterFields::visit(c.when, FieldWriter{a});
        CounterFields::visit(d.when, FieldWriter{b});
        return std::memcmp(a, b, sizeof a) != 0 || !same_fields(d.dma, c.dma) || d.dma.opcode != c.dma.opcode;
      });
}

TEST(CxiCommands, EntryAddressesGoInAndComeOut) {
  for (u32 pid_bits = 6; pid_bits <= 9; ++pid_bits)
    for (const u32 idx : {0u, 1u, 31u, 32u, 40u, 255u})
      for (const u32 pid : {0u, 1u, (1u << pid_bits) - 1}) {
        const EntryAddress t = split_dfa(make_dfa(0xabcde, pid, pid_bits, idx), pid_bits);
        EXPECT_EQ(t.nid, 0xabcdeu);
        EXPECT_EQ(t.pid, pid);
        EXPECT_EQ(t.idx, idx);
      }
}

template <class E>
void check_event(EventType type, u64 bits) {
  expect_disjoint<E>(bits);
  std::mt19937_64 random(2);
  for (int round = 0; round < 20; ++round) {
    E event = random_fields<E>(random);
    event.type = type;
    event.return_code = ReturnCode::pt_disabled;
    Words<E::kWords> claimed = used_bits<E>();
    claimed.w[1] |= EventHead::Size::kMask << EventHead::Size::kShift;
    claimed.w[1] |= EventHead::Type::kMask << EventHead::Type::kShift;
    claimed.w[E::kWords - 1] |= EventHead::kCodeMask << EventHead::kCodeShift;
    EXPECT_EQ(ones(claimed), bits + 2 + 5 + 6) << "a field lies on the event's head";
    flip_every_bit(
        event, claimed, [](const E& e) { return encode_event(e); },
        [&](const u64* words) {
          E d;
          return !decode_event(words, d) || d.type != event.type || d.return_code != event.return_code ||
                 !same_fields(d, event);
        });
  }
}

TEST(CxiEvents, EveryBitBelongsToAFieldOrIsUnused) {
  constexpr u64 initiator = 64 + 32 + 2 + 3, target = 64 + 32 + 11 + 2 + 1 + 64 + 16 + 16;
  check_event<InitiatorEvent>(EventType::ack, initiator);
  check_event<InitiatorLongEvent>(EventType::reply, initiator + 30 + 48);
  check_event<TriggeredEvent>(EventType::triggered_op, 48 + 11);
  check_event<TriggeredLongEvent>(EventType::triggered_op, 48 + 11 + 30 + 48);
  check_event<CommandFailureEvent>(EventType::command_failure, 10 + 1 + 16 + 8);
  check_event<TargetEvent>(EventType::link, target + 20);
  check_event<TargetLongEvent>(EventType::put,
                               target + 2 + 30 + 2 + 32 + 32 + 56 + 57 + 16 + 16 + 4 + 4 + 3 + 8);
  check_event<StateChangeEvent>(EventType::state_change, 3 + 4 + 1 + 11);
  check_event<StateChangeLongEvent>(EventType::state_change, 3 + 4 + 1 + 11);
  check_event<NullEvent<2>>(EventType::null_event, 0);
}

template <class T>
void check_record(u64 bits) {
  expect_disjoint<T>(bits);
  std::mt19937_64 random(4);
  const T value = random_fields<T>(random);
  flip_every_bit(
      value, used_bits<T>(), [](const T& t) { return pack(t); },
      [&](const u64* words) { return !same_fields(unpack<T>(words), value); });
}

TEST(CxiRecords, EveryBitBelongsToAFieldOrIsUnused) {
  check_record<CommandQueueStatus>(16 + 16 + 8 + 6 + 3);
  check_record<EventQueueStatus>(2 * (30 + 48) + 1 + 2 + 2 + 3 * 26 + 1);
  check_record<EventQueueCsr>(26 + 4);
  check_record<CounterCounts>(48 + 7 + 1);
}

TEST(CxiNames, EveryReturnCodeHasItsOwn) {
  // By number; "" for those that the card leaves unused.
  constexpr std::array<std::string_view, 64> kNames = {"NO_EVENT",
                                                       "OK",
                                                       "UNDELIVERABLE",
                                                       "PT_DISABLED",
                                                       "DROPPED",
                                                       "PERM_VIOLATION",
                                                       "OP_VIOLATION",
                                                       "",
                                                       "NO_MATCH",
                                                       "UNCOR",
                                                       "UNCOR_TRNSNT",
                                                       "",
                                                       "",
                                                       "",
                                                       "",
                                                       "",
                                                       "NO_SPACE",
                                                       "",
                                                       "ENTRY_NOT_FOUND",
                                                       "NO_TARGET_CONN",
                                                       "NO_TARGET_MST",
                                                       "NO_TARGET_TRS",
                                                       "SEQUENCE_ERROR",
                                                       "NO_MATCHING_CONN",
                                                       "INVALID_DFA_FORMAT",
                                                       "VNI_NOT_FOUND",
                                                       "PTLTE_NOT_FOUND",
                                                       "PTLTE_SW_MANAGED",
                                                       "SRC_ERROR",
                                                       "MST_CANCELLED",
                                                       "HRP_CONFIG_ERROR",
                                                       "HRP_RSP_ERROR",
                                                       "HRP_RSP_DISCARD",
                                                       "INVALID_AC",
                                                       "PAGE_PERM_ERROR",
                                                       "ATS_ERROR",
                                                       "NO_TRANSLATION",
                                                       "PAGE_REQ_ERROR",
                                                       "PCIE_ERROR_POISONED",
                                                       "PCIE_UNSUCCESS_CMPL",
                                                       "AMO_INVAL_OP_ERROR",
                                                       "AMO_ALIGN_ERROR",
                                                       "AMO_FP_INVALID",
                                                       "AMO_FP_UNDERFLOW",
                                                       "AMO_FP_OVERFLOW",
                                                       "AMO_FP_INEXACT",
                                                       "ILLEGAL_OP",
                                                       "INVALID_ENDPOINT",
                                                       "RESTRICTED_UNICAST",
                                                       "CMD_ALIGN_ERROR",
                                                       "CMD_INVALID_ARG",
                                                       "INVALID_EVENT",
                                                       "ADDR_OUT_OF_RANGE",
                                                       "CONN_CLOSED",
                                                       "CANCELED",
                                                       "NO_MATCHING_TRS",
                                                       "NO_MATCHING_MST",
                                                       "DELAYED",
                                                       "AMO_LENGTH_ERROR",
                                                       "PKTBUF_ERROR",
                                                       "RESOURCE_BUSY",
                                                       "FLUSH_TRANSLATION",
                                                       "TRS_PEND_RSP",
                                                       ""};
  for (u32 code = 0; code < kNames.size(); ++code) {
    const std::string unused = "code " + std::to_string(code);
    EXPECT_EQ(name(static_cast<ReturnCode>(code)), kNames[code].empty() ? unused : kNames[code]) << code;
  }
}

TEST(CxiNames, EveryNumberHasOne) {
  EXPECT_EQ(name(EventType::triggered_op), "TRIGGERED_OP");
  EXPECT_EQ(name(static_cast<EventType>(22)), "type 22");
  EXPECT_EQ(name(PtlteState::enabled), "ENABLED");
  EXPECT_EQ(name(static_cast<PtlteState>(7)), "state 7");
}

}  // namespace
}  // namespace doorbell::cxi
