// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// The software card by itself, whose time passes as its test says.
#pragma once

#include <doorbell/error.hpp>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <memory>
#include <vector>

#include "errors.hpp"
#include "eventually.hpp"
#include "qdma/model/model_card.hpp"

namespace doorbell::qdma::rig {

using model::Fault;
using test::eventually;

inline constexpr auto kPut = Direction::host_to_card;
inline constexpr auto kGet = Direction::card_to_host;
inline constexpr u64 kMiB = 1 << 20;

struct Job : CardRequest {
  std::atomic<bool> over{false};
  std::atomic<u32>* ends = nullptr;  // counts the ends of several jobs
  u32 place = 0;                     // in their order
  Job(std::shared_ptr<CardQueue> q, Direction d, u8* at, u64 card_address, u64 n) {
    queue = std::move(q);
    direction = d;
    host = at;
    address = card_address;
    bytes = n;
    ended = [](CardRequest& r) {
      Job& job = static_cast<Job&>(r);
      if (job.ends != nullptr) job.place = job.ends->fetch_add(1);
      job.over.store(true);
    };
  }
};

class CardRig {
 public:
  explicit CardRig(const std::string& keys = {}, const model::FaultRates& faults = {})
      : card(make_model_card(keys.empty() ? "model" : "model:" + keys, use_of(faults))) {}

  std::shared_ptr<CardQueue> queue(u32 index, CardQueueShape shape = {}) {
    shape.index = index;
    shape.channel = index & 1;
    auto q = std::make_shared<CardQueue>(shape);
    card->start(*q);
    return q;
  }
  void submit(std::vector<Job*> jobs) {
    std::vector<CardRequest*> requests(jobs.begin(), jobs.end());
    card->submit(requests);
  }
  /// All at once; returns how long the card took by its clock.
  u64 run(std::vector<Job*> jobs) {
    const u64 begin = card->now();
    submit(jobs);
    for (Job* j : jobs) EXPECT_TRUE(eventually([&] { return j->over.load(); }));
    return card->now() - begin;
  }
  u64 run_one(const std::shared_ptr<CardQueue>& q, Direction d, std::vector<u8>& host, u64 address) {
    Job job(q, d, host.data(), address, host.size());
    const u64 ns = run({&job});
    EXPECT_EQ(job.error, 0);
    EXPECT_EQ(job.moved, host.size());
    return ns;
  }
  u64 counted(Fault f) { return counters_of(*card)["injected"][std::string(model::name(f))].get<u64>(); }

  std::shared_ptr<ModelCard> card;

 private:
  static model::Use use_of(const model::FaultRates& faults) {
    model::Use use;
    use.faults = faults;
    return use;
  }
};

inline model::FaultRates only(Fault f, double p) {
  model::FaultRates r;
  r.probability[static_cast<u32>(f)] = p;
  return r;
}

inline std::vector<u8> pattern_of(u64 bytes, u64 seed) {
  std::vector<u8> v(bytes);
  for (u64 i = 0; i < bytes; ++i) v[i] = static_cast<u8>((i + seed) * 0x9e3779b97f4a7c15u >> 56);
  return v;
}

}  // namespace doorbell::qdma::rig
