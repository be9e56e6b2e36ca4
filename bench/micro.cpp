// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// The cost of the hot path's steps on this CPU, one at a time. A figure of a whole path is `doorbell nvme`'s
// business; these say where a change of it comes from.
#include <benchmark/benchmark.h>
#include <doorbell/nvme/queue_pair.hpp>
#include <doorbell/pattern.hpp>

#include <cstring>
#include <random>
#include <stdexcept>
#include <vector>

#include "measure/histogram.hpp"
#include "nvme/bench.hpp"
#include "nvme/null_controller.hpp"

namespace {

using namespace doorbell;

constexpr OneLane kLane;

std::vector<Word16> buffer(u64 bytes) {
  return std::vector<Word16>(bytes / sizeof(Word16));
}

// The bounds that memory sets, for comparison with the pattern's cost. 64 MiB and more are in no cache.
constexpr i64 kUncached = i64{256} << 20;

void copy_memory(benchmark::State& state) {
  const auto bytes = static_cast<u64>(state.range(0));
  auto from = buffer(bytes), to = buffer(bytes);
  for ([[maybe_unused]] auto _ : state) {
    std::memcpy(to.data(), from.data(), bytes);
    benchmark::ClobberMemory();
  }
  state.SetBytesProcessed(state.iterations() * state.range(0));
}
BENCHMARK(copy_memory)->Arg(512)->Arg(4096)->Arg(1 << 20)->Arg(kUncached);

void compare_memory(benchmark::State& state) {
  const auto bytes = static_cast<u64>(state.range(0));
  const auto one = buffer(bytes), other = buffer(bytes);
  for ([[maybe_unused]] auto _ : state) {
    benchmark::ClobberMemory();
    int differ = std::memcmp(one.data(), other.data(), bytes);
    benchmark::DoNotOptimize(differ);
    if (differ != 0) {
      state.SkipWithError("equal memory differs");
      break;
    }
  }
  state.SetBytesProcessed(state.iterations() * state.range(0));
}
BENCHMARK(compare_memory)->Arg(512)->Arg(4096)->Arg(1 << 20)->Arg(kUncached);

void pattern_fill(benchmark::State& state) {
  const auto bytes = static_cast<u64>(state.range(0));
  auto data = buffer(bytes);
  u64 sequence = 0;
  for ([[maybe_unused]] auto _ : state) {
    pattern::fill(kLane, data.data(), bytes, {.seed = 1, .address = 0, .sequence = ++sequence});
    benchmark::ClobberMemory();
  }
  state.SetBytesProcessed(state.iterations() * state.range(0));
}
BENCHMARK(pattern_fill)->Arg(512)->Arg(4096)->Arg(1 << 20)->Arg(kUncached);

void pattern_check(benchmark::State& state) {
  const auto bytes = static_cast<u64>(state.range(0));
  auto data = buffer(bytes);
  const pattern::Identity id{.seed = 1, .address = 0, .sequence = 1};
  pattern::fill(kLane, data.data(), bytes, id);
  for ([[maybe_unused]] auto _ : state) {
    const pattern::Checked c = pattern::check(kLane, data.data(), bytes, {.id = id});
    if (c.verdict != pattern::Verdict::ok) {
      state.SkipWithError("the check found an error where there is none");
      break;
    }
  }
  state.SetBytesProcessed(state.iterations() * state.range(0));
}
BENCHMARK(pattern_check)->Arg(512)->Arg(4096)->Arg(1 << 20)->Arg(kUncached);

/// Without AVX2: 16-byte vectors.
void pattern_check_plain(benchmark::State& state) {
  const auto bytes = static_cast<u64>(state.range(0));
  auto data = buffer(bytes);
  const pattern::Identity id{.seed = 1, .address = 0, .sequence = 1};
  pattern::fill(kLane, data.data(), bytes, id);
  const auto* words = reinterpret_cast<const u32*>(data.data());
  const u64 units = bytes / pattern::kUnitBytes;
  for ([[maybe_unused]] auto _ : state) {
    if (pattern::cpu::same_plain(words, units, id) != units) {
      state.SkipWithError("the check found an error where there is none");
      break;
    }
  }
  state.SetBytesProcessed(state.iterations() * state.range(0));
}
BENCHMARK(pattern_check_plain)->Arg(512)->Arg(1 << 20);

void histogram_record(benchmark::State& state) {
  constexpr std::size_t kSamples = 4096;
  std::mt19937_64 random(1);
  std::lognormal_distribution<double> latency(9, 1);
  std::vector<u64> samples(kSamples);
  for (u64& s : samples) s = static_cast<u64>(latency(random));
  measure::Histogram histogram;
  std::size_t i = 0;
  for ([[maybe_unused]] auto _ : state) histogram.record(samples[i++ % kSamples]);
  if (histogram.count() != static_cast<u64>(state.iterations())) state.SkipWithError("samples were lost");
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(histogram_record);

/// Post, ring, poll and free a batch against a device that completes at once in this thread.
void queue_pair_batch(benchmark::State& state) {
  constexpr u32 kEntries = 1024;
  const auto batch = static_cast<u32>(state.range(0));
  nvme::NullController device(kEntries);
  nvme::QueuePair<OneLane> queue(device.memory());
  u64 lba = 0;
  for ([[maybe_unused]] auto _ : state) {
    queue.post(kLane, batch, [&](u32 i) {
      return nvme::io_command(nvme::IoOpcode::read, static_cast<u16>(i), 1, lba + i, 1, 4096, 0);
    });
    queue.ring(kLane);
    device.poll();
    u32 done = 0;
    while (queue.poll(kLane).count > 0) ++done;
    queue.ring_cq(kLane);
    lba += batch;
    if (done != batch) {
      state.SkipWithError("completions are missing");
      break;
    }
  }
  state.SetItemsProcessed(state.iterations() * state.range(0));
}
BENCHMARK(queue_pair_batch)->Arg(1)->Arg(16)->Arg(64);

/// One queue between an initiator thread and the model's thread, nothing moved: commands a second.
void model_null_media(benchmark::State& state) {
  nvme::BenchOptions options;
  options.controller = "model:media=null";
  options.read_io = 1'000'000;
  options.batch = static_cast<u32>(state.range(0));
  options.in_flight = 4 * options.batch;
  options.verify = false;
  options.less_timing = true;
  double seconds = 0;
  for ([[maybe_unused]] auto _ : state) {
    const nvme::BenchResult result = nvme::run_bench(options, {});
    if (result.failed) {
      state.SkipWithError("the run failed");
      break;
    }
    // Opening the controller is not what is measured.
    seconds = result.cell().metrics.elapsed_s;
    state.SetIterationTime(seconds);
  }
  state.SetItemsProcessed(state.iterations() * static_cast<i64>(options.read_io));
}
BENCHMARK(model_null_media)->Arg(1)->Arg(16)->Arg(64)->UseManualTime()->Unit(benchmark::kMillisecond);

}  // namespace

BENCHMARK_MAIN();
