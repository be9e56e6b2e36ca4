// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Parts of the checker: a program of two processes that uses RDMA as any other does, by verbs.h and whatever
// libibverbs.so.1 it is run with, and compares every byte. It knows nothing of doorbell.
#pragma once

#include <infiniband/verbs.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace checker {

/// Ends the process with a sentence on standard error.
[[noreturn]] void fail(const char* file, int line, const std::string& what);
#define CHECK(condition)                                               \
  do {                                                                 \
    if (!(condition)) ::checker::fail(__FILE__, __LINE__, #condition); \
  } while (false)
#define CHECK_EQUAL(a, b)                                                                            \
  do {                                                                                               \
    const auto checked_a = static_cast<long long>(a), checked_b = static_cast<long long>(b);         \
    if (checked_a != checked_b)                                                                      \
      ::checker::fail(__FILE__, __LINE__,                                                            \
                      #a " is " + std::to_string(checked_a) + ", not " + std::to_string(checked_b)); \
  } while (false)

/// A byte that depends on everything, so that data of another place or time is noticed.
inline uint8_t pattern(uint64_t seed, uint64_t at) {
  uint64_t x = (seed + 1) * 0x9E3779B97F4A7C15 ^ (at + 1) * 0xD1B54A32D192ED03;
  x ^= x >> 29;
  x *= 0xBF58476D1CE4E5B9;
  return static_cast<uint8_t>(x >> 56);
}

/// The message of one side to the other before a case.
struct Card {
  uint32_t queue_pair, psn, rkey, window_key;
  uint64_t address;
  ibv_gid gid;
};

/// One of the two processes. Messages beside RDMA go over a socket pair.
struct Side {
  bool client = false;
  int socket = -1;
  uint64_t seed = 1;
  ibv_context* context = nullptr;
  ibv_pd* pd = nullptr;

  void tell(const void* bytes, std::size_t size) const;
  void hear(void* bytes, std::size_t size) const;
  /// Neither goes on before the other is here.
  void meet() const;
  [[nodiscard]] Card exchange(const Card& own) const;
  [[nodiscard]] ibv_gid gid() const;
};

/// Registered memory.
struct Buffer {
  std::vector<uint8_t> bytes;
  ibv_mr* region = nullptr;
  Buffer(const Side& side, std::size_t size, int access);
  ~Buffer();
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  void fill(uint64_t seed, std::size_t from, std::size_t size);
  void poison() { std::fill(bytes.begin(), bytes.end(), uint8_t{0xA5}); }
  /// That [from, from + size) is `seed`'s pattern, counted from `first`.
  void expect(uint64_t seed, std::size_t from, std::size_t size, std::size_t first = 0) const;
  /// That nothing was written there.
  void expect_poison(std::size_t from, std::size_t size) const;
  [[nodiscard]] ibv_sge piece(std::size_t from, std::size_t size) const;
  [[nodiscard]] uint64_t address() const { return reinterpret_cast<uint64_t>(bytes.data()); }
};

inline constexpr int kAll =
    IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;

struct Options {
  ibv_qp_type type = IBV_QPT_RC;
  bool shared_receives = false, events = false, extended = false;
  uint32_t depth = 64;
};

/// The attributes of a connected queue pair on its way to RTS; which of them count, masks say.
ibv_qp_attr connection(uint32_t queue_pair, const ibv_gid& to, uint32_t own_psn, uint32_t peer_psn);

/// A queue pair with its completion queue.
struct Link {
  const Side& side;
  Options options;
  ibv_comp_channel* channel = nullptr;
  ibv_cq* cq = nullptr;
  ibv_cq_ex* extended_cq = nullptr;
  ibv_srq* srq = nullptr;
  ibv_qp* qp = nullptr;
  Card peer{};

  Link(const Side& side, const Options& options);
  ~Link();
  Link(const Link&) = delete;
  Link& operator=(const Link&) = delete;

  /// Through the states to RTS, with the other side.
  void connect(const Buffer& buffer, uint32_t window_key = 0);
  void receive(uint64_t id, std::vector<ibv_sge> pieces);
  [[nodiscard]] ibv_send_wr request(ibv_wr_opcode opcode, uint64_t id) const;
  void post(ibv_send_wr wr, std::vector<ibv_sge> pieces);
  /// The next completion, whatever its status. Fails after half a minute without one.
  [[nodiscard]] ibv_wc take();
  /// The same, and that it is a success with this id.
  ibv_wc take_good(uint64_t id);
};

struct Case {
  const char* name;
  bool lossy;  ///< may be run where packets are lost
  void (*run)(Side& side);
};
extern const std::vector<Case> kReliableCases, kOtherCases, kXrcCases;

}  // namespace checker
