// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Clients of the daemon that send anything: on connections and on transfer descriptors, in any order, with
// jobs that end whenever. Whatever they did, nothing is left when they have gone.

#include <cstdio>

#include "fuzz/fuzz.hpp"
#include "qdma/daemon_fakes.hpp"

using namespace doorbell;
using namespace doorbell::qdma;
using namespace doorbell::qdma::daemon;
using fuzz::require;

namespace {

u64 fuzzed_messages = 0;

struct FuzzWorld {
  FakeOutlet outlet;
  FakeWorkers workers;
  FakeLog log;
  std::shared_ptr<FakeCard> card = std::make_shared<FakeCard>();
  Service service;
  std::vector<SocketId> clients;

  explicit FuzzWorld(const Roles& roles)
      : service(card,
                {.quotas = {.connections = 3,
                            .queue_pairs = 6,
                            .buffers = 4,
                            .descriptors = 6,
                            .card_bytes = 1 << 30,
                            .host_bytes = 1 << 20},
                 .limits = {.control = 2, .transfers = 3, .transfers_per_client = 2},
                 .max_connections = 5,
                 .max_revoked = 2},
                roles, outlet, workers, log) {}
};

const Roles& fuzz_roles() {
  static const Roles roles =
      Roles::parse("roles",
                   "[role:a]\nrights=query-devices qdma buffer raw-mem-access\n[role:b]\nrights=qdma buffer\n"
                   "[user:0]\nroles=a\n[user:1]\nroles=b\n",
                   {});
  return roles;
}

/// Numbers that mean something more often than not.
u64 some_number(FuzzedDataProvider& in) {
  static constexpr u64 kKnown[] = {0,
                                   1,
                                   2,
                                   3,
                                   4096,
                                   65536,
                                   4097,
                                   64ull << 20,
                                   512ull << 20,
                                   kHbmBase,
                                   kDdrBase,
                                   kDdrBase + kAllocationUnit,
                                   kHbmBoundary,
                                   36,
                                   24,
                                   88,
                                   ~u64{0},
                                   4096 + 1};
  return in.ConsumeBool() ? kKnown[in.ConsumeIntegralInRange<std::size_t>(0, std::size(kKnown) - 1)]
                          : in.ConsumeIntegral<u64>();
}

/// A structure of words, some of them known, cut to `bytes`.
std::vector<u8> some_body(FuzzedDataProvider& in, std::size_t bytes) {
  std::vector<u8> body;
  const bool narrow = in.ConsumeBool();
  while (body.size() < bytes) {
    const u64 word = some_number(in);
    const auto* const at = reinterpret_cast<const u8*>(&word);
    body.insert(body.end(), at, at + (narrow ? 4 : 8));
  }
  body.resize(bytes);
  return body;
}

std::vector<u8> some_request(FuzzedDataProvider& in) {
  if (in.ConsumeIntegralInRange<u32>(0, 9) == 0)
    return in.ConsumeBytes<u8>(in.ConsumeIntegralInRange<std::size_t>(0, 96));
  const auto all = opcodes();
  const Opcode o = all[in.ConsumeIntegralInRange<std::size_t>(0, all.size() - 1)];
  std::vector<u8> body = some_body(in, *body_bytes(o));
  // The device of most is 0, and a structure inside begins with its size.
  if (body.size() >= 8 && o != Opcode::device_by_bdf && o != Opcode::hello && in.ConsumeBool()) {
    std::memset(body.data(), 0, 4);
    if (o == Opcode::queue_pair_add || o == Opcode::host_buffer) body[4] = o == Opcode::host_buffer ? 24 : 36;
  }
  std::vector<u8> message = request_message(o, in.ConsumeIntegral<u32>(), body);
  if (in.ConsumeIntegralInRange<u32>(0, 15) == 0 && !message.empty())
    message[in.ConsumeIntegralInRange<std::size_t>(0, message.size() - 1)] ^= in.ConsumeIntegral<u8>();
  return message;
}

std::vector<u8> some_call(FuzzedDataProvider& in, u32 descriptors) {
  static constexpr u32 kNumbers[] = {kCallTransfer, kCallTransfer, kCallBufCreate,
                                     wire::kCancel, kCallInfo,     wire::kHello};
  const u32 number = kNumbers[in.ConsumeIntegralInRange<std::size_t>(0, std::size(kNumbers) - 1)];
  std::vector<u8> body;
  if (number == kCallTransfer && in.ConsumeBool()) {
    Transfer t{.count = in.ConsumeIntegralInRange<u32>(0, 3)};
    for (SubXfer& x : t.xfers)
      x = {.qpair_index = in.ConsumeIntegralInRange<u32>(0, 2),
           .direction = in.ConsumeIntegralInRange<u32>(0, 3),
           .buf_fd = in.ConsumeIntegralInRange<std::int32_t>(-1, 2),
           .buf_offset = some_number(in),
           .dev_addr = some_number(in),
           .length = some_number(in)};
    const auto bytes = bytes_of(t);
    body.assign(bytes.begin(), bytes.end());
  } else {
    body = some_body(in, in.ConsumeIntegralInRange<std::size_t>(0, 120));
  }
  wire::RequestHeader header{.number = number,
                             .sequence = in.ConsumeIntegralInRange<u64>(0, 4),
                             .deadline_ns = in.ConsumeBool() ? 0 : in.ConsumeIntegral<u64>(),
                             .bytes = static_cast<u32>(body.size()),
                             .descriptors = descriptors};
  if (in.ConsumeIntegralInRange<u32>(0, 15) == 0) header.bytes ^= in.ConsumeIntegral<u8>();
  if (in.ConsumeIntegralInRange<u32>(0, 31) == 0) header.magic ^= in.ConsumeIntegral<u8>();
  std::vector<u8> message(sizeof header);
  std::memcpy(message.data(), &header, sizeof header);
  message.insert(message.end(), body.begin(), body.end());
  if (in.ConsumeIntegralInRange<u32>(0, 31) == 0)
    message.resize(in.ConsumeIntegralInRange<std::size_t>(0, message.size()));
  return message;
}

void one_step(FuzzWorld& w, FuzzedDataProvider& in) {
  switch (in.ConsumeIntegralInRange<u32>(0, 10)) {
    case 0: {
      const SocketId id = w.service.next_socket();
      if (w.service.connect(id, {.pid = 1, .uid = in.ConsumeIntegralInRange<uid_t>(0, 2), .groups = {}}) == 0)
        w.clients.push_back(id);
      return;
    }
    case 1: {
      if (w.clients.empty()) return;
      const auto at = in.ConsumeIntegralInRange<std::size_t>(0, w.clients.size() - 1);
      w.service.closed(w.clients[at]);
      w.clients.erase(w.clients.begin() + static_cast<std::ptrdiff_t>(at));
      return;
    }
    case 2: {
      if (w.outlet.pairs.empty()) return;
      const auto at = in.ConsumeIntegralInRange<std::size_t>(0, w.outlet.pairs.size() - 1);
      w.service.closed(w.outlet.pairs[at]);
      return;
    }
    case 10:
      static_cast<void>(w.service.end_silent(in.ConsumeBool() ? ~u64{0} : 1));
      return;
    case 3:
    case 4:
      if (!w.workers.jobs.empty()) w.workers.run_one();
      return;
    case 5:
    case 6: {
      if (w.outlet.pairs.empty()) return;
      const SocketId id =
          w.outlet.pairs[in.ConsumeIntegralInRange<std::size_t>(0, w.outlet.pairs.size() - 1)];
      const u32 descriptors = in.ConsumeIntegralInRange<u32>(0, 2);
      const std::vector<u8> bytes = some_call(in, descriptors);
      Message m{.bytes = bytes, .truncated = in.ConsumeIntegralInRange<u32>(0, 31) == 0};
      for (u32 i = 0; i < descriptors; ++i) m.files.emplace_back(Descriptor(kNoFile));
      ++fuzzed_messages;
      w.service.message(id, std::move(m));
      return;
    }
    default: {
      if (w.clients.empty()) return;
      const SocketId id = w.clients[in.ConsumeIntegralInRange<std::size_t>(0, w.clients.size() - 1)];
      if (w.outlet.paused.contains(id)) return;  // as the sockets do
      const std::vector<u8> bytes = some_request(in);
      ++fuzzed_messages;
      w.service.message(id, {.bytes = bytes, .truncated = in.ConsumeIntegralInRange<u32>(0, 63) == 0});
      return;
    }
  }
}

void say_how_many() {
  std::fprintf(stderr, "stat::fuzzed_messages: %llu\n", static_cast<unsigned long long>(fuzzed_messages));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const u8* data, std::size_t size) {
  [[maybe_unused]] static const int registered = std::atexit(say_how_many);
  FuzzedDataProvider in(data, size);
  FuzzWorld w(fuzz_roles());
  if (in.ConsumeBool()) w.card->fail_delete = in.ConsumeBool() ? EIO : 0;
  for (u32 i = 0; i < 200 && in.remaining_bytes() > 0; ++i) one_step(w, in);
  w.service.close_all();
  w.workers.run_all();
  const Gauges g = w.service.gauges();
  require(w.service.idle() && g.queue_pairs == 0 && g.descriptors == 0);
  require(g.held.connections == 0 && g.held.queue_pairs == 0 && g.held.buffers == 0 &&
          g.held.card_bytes == 0);
  if (w.card->fail_delete == 0) require(g.card_memory_used == 0 && w.card->queues.empty());
  for (const SocketId id : w.outlet.pairs) w.service.closed(id);
  require(w.service.gauges().held == Holdings{} && w.service.gauges().revoked_descriptors == 0);
  // No transfer has gone where its descriptor may not: a fake card's queue pairs belong to one client each.
  for (const auto& [fd, t] : w.card->transfers)
    require(t.count >= 1 && t.count <= 2 && t.xfers[0].length > 0);
  return 0;
}
