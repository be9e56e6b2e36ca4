// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "net/assembly/assembly_sink.hpp"

#include <doorbell/error.hpp>
#include <fmt/format.h>

#include <algorithm>

#include "system/clock.hpp"
#include "system/running_time.hpp"

namespace doorbell::net {

AssemblySink::AssemblySink(const AssemblyRequest& request, WindowConsumer& consumer)
    : request_(request), flows_(request.spreading, request.queue), consumer_(consumer) {
  for (const u32 f : flows_.all()) {
    AssemblerRequest w = request.windows;
    w.flow = f;
    if (request.ordered)
      gathers_.push_back(std::make_unique<Gather>(
          GatherRequest{.flow = f,
                        .data_bytes = w.data_bytes,
                        .window_bytes = request.window_bytes != 0 ? request.window_bytes
                                                                  : u64{w.data_bytes} * w.shape.packets,
                        .place = w.place,
                        .gpu = w.gpu,
                        .in_flight = w.in_flight,
                        .wait_ns = w.wait_ns},
          consumer));
    else assemblers_.push_back(std::make_unique<Assembler>(w, consumer));
  }
}

u64 AssemblySink::take(const Burst& burst, std::span<const u32> packet, std::span<const u16> flow,
                       std::span<const u64> number) {
  const u64 now = wall_ns();
  for (std::size_t i = 0; i < packet.size(); ++i) {
    const u32 p = packet[i];
    const u32 f = flows_.place(flow[i]);
    // Behind the header; of a split packet, what the first part holds beyond it and then the second part.
    Assembler::Data data{burst.data[p] + kHeaderBytes, burst.length[p] - kHeaderBytes};
    if (burst.split) {
      data.second = burst.body[p];
      data.second_bytes = burst.body_length[p];
      if (data.first_bytes == 0) data = {data.second, data.second_bytes};
    }
    if (!request_.ordered) {
      (void)assemblers_[f]->add(number[i], data, now);
    } else {
      (void)gathers_[f]->add(number[i], data.first, data.first_bytes, now,
                             request_.gpu_reads_packets ? data.first : nullptr);
    }
  }
  u64 mark = 0;
  if (const auto& gatherer = request_.windows.gatherer; gatherer != nullptr && !request_.ordered)
    mark = gatherer->launch();
  await_lent();
  idle(now);
  return mark;
}

void AssemblySink::await(u64 mark) {
  request_.windows.gatherer->wait(mark, request_.windows.wait_ns);
}

void AssemblySink::await_lent() {
  RunningTime time(wall_ns());
  for (const auto& g : gathers_)
    while (g->borrowed() != 0) {
      const u64 waited = time.look(wall_ns());
      if (waited >= request_.windows.wait_ns)
        throw Error(fmt::format("{} messages", g->borrowed()),
                    fmt::format("what takes them has given none back within {:.1f} s",
                                static_cast<double>(request_.windows.wait_ns) * 1e-9),
                    {}, ExitCode::data);
      consumer_.wait(std::min(request_.windows.wait_ns - waited, RunningTime::kMostNs / 2));
    }
}

void AssemblySink::idle(u64 now_ns) {
  for (const auto& a : assemblers_) a->poll(now_ns);
  if (!gathers_.empty()) consumer_.poll();
}

void AssemblySink::finish(std::span<const u64> sent) {
  for (std::size_t i = 0; i < assemblers_.size(); ++i) {
    const std::size_t f = flows_.all()[i];
    assemblers_[i]->finish(f < sent.size() ? sent[f] : 0);
  }
  for (const auto& g : gathers_) g->finish();
}

WindowCounts AssemblySink::counts() const {
  WindowCounts all;
  for (const auto& a : assemblers_) all += a->counts();
  for (const auto& g : gathers_) all += g->counts();
  return all;
}

u64 AssemblySink::wrong_length() const {
  u64 n = 0;
  for (const auto& a : assemblers_) n += a->wrong_length();
  for (const auto& g : gathers_) n += g->wrong_length();
  return n;
}

u64 AssemblySink::window_bytes() const {
  if (!assemblers_.empty()) return assemblers_.front()->window_bytes();
  return gathers_.empty() ? 0 : gathers_.front()->window_bytes();
}

}  // namespace doorbell::net
