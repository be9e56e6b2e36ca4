// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "net/flow/window_work.hpp"

#include <doorbell/error.hpp>
#include <fmt/format.h>

#include <algorithm>

#include "net/settings.hpp"

namespace doorbell::net {

namespace {

using Json = nlohmann::ordered_json;

constexpr u64 kMaxWindowBytes = u64{1} << 30;
constexpr u64 kWindowBytes = 8'192'000, kWindowPackets = 1024;

/// The nearest whole number of packets; an ordered stream's messages are cut, so that a window may be less
/// than one.
u32 packets_of(const WindowOptions& o, u64 data_bytes) {
  if (o.batch_bytes == 0 && o.packets != 0) return o.packets;
  // The published window: 1024 packets of 8000 bytes, and as many bytes of longer ones.
  if (o.batch_bytes == 0)
    return static_cast<u32>(std::clamp<u64>(kWindowBytes / data_bytes, 1, kWindowPackets));
  return static_cast<u32>(
      std::clamp<u64>((o.batch_bytes + data_bytes / 2) / data_bytes, 1, kMaxWindowPackets));
}

/// Packets lie end to end in a window, so a part of a number in one would shift those of the next.
void check_elements(const WindowOptions& o, u32 data_bytes, const std::string& setting) {
  const u32 element = o.workload == WorkloadKind::gemm_fp16 ? 2 : 4;
  if (o.workload == WorkloadKind::none || o.convert || data_bytes % element == 0) return;
  throw Error(setting,
              fmt::format("the {} bytes behind a packet's header are no whole number of floats of {} bytes",
                          data_bytes, element));
}

void check_conversion(const WindowOptions& o, u32 data_bytes, const std::string& setting) {
  if (!o.convert) return;
  const Conversion& c = *o.convert;
  if (data_bytes * 8 % bits_of(c.from) != 0)
    throw Error(setting,
                fmt::format("the {} bytes behind a packet's header are no whole number of integers of {} "
                            "bits",
                            data_bytes, bits_of(c.from)));
  if (o.workload == WorkloadKind::none) return;
  const Float wanted = o.workload == WorkloadKind::gemm_fp16 ? Float::fp16 : Float::fp32;
  if (c.to != wanted)
    throw Error(setting, fmt::format("{} computes with {}", name(o.workload),
                                     wanted == Float::fp16 ? "fp16" : "fp32"));
  if (c.from == Integer::int32 && c.to == Float::fp16)
    throw Error(setting, "most numbers of 32 bits are infinite in fp16: nothing can be computed of them");
}

}  // namespace

const std::vector<std::string>& conversion_names() {
  static const std::vector<std::string> names = {"int4:fp16",  "int4:bf16",  "int4:fp32",  "int8:fp16",
                                                 "int8:bf16",  "int8:fp32",  "int16:fp16", "int16:bf16",
                                                 "int16:fp32", "int32:fp16", "int32:bf16", "int32:fp32"};
  return names;
}
Conversion conversion(u32 name, bool big_endian) {
  return {static_cast<Integer>(name / 3), static_cast<Float>(name % 3), big_endian};
}
const std::string& name(const Conversion& c) {
  return conversion_names()[static_cast<u32>(c.from) * 3 + static_cast<u32>(c.to)];
}

WindowWork::WindowWork(const WindowWorkRequest& request) : r_(request), queues_(request.spreading.queues) {
  const WindowOptions& o = r_.options;
  const u32 data = r_.payload_bytes - kHeaderBytes;
  if (data == 0)
    throw Error(setting::payload,
                fmt::format("{} bytes are the header alone: there is nothing to assemble", r_.payload_bytes));
  window_packets_ = packets_of(o, data);
  check_elements(o, data, setting::payload);
  check_conversion(o, data, setting::convert);
  const u64 slot = o.convert ? converted_bytes(*o.convert, data) : data;
  window_bytes_ = u64{window_packets_} * slot;
  // Data that is gathered as it arrives is not converted; its packets have sequences too.
  const bool ordered = r_.ordered && !o.convert;
  // A message that is larger than what is asked for is cut into such pieces.
  if (ordered && o.batch_bytes > 0 && o.batch_bytes < data) window_bytes_ = o.batch_bytes;
  if (window_bytes_ > kMaxWindowBytes)
    throw Error(setting::window, fmt::format("{} packets of {} bytes are more than a window may have, 1 GiB",
                                             window_packets_, data));
  AssemblyRequest a;
  a.spreading = r_.spreading;
  a.ordered = ordered;
  a.window_bytes = ordered ? window_bytes_ : 0;
  AssemblerRequest& w = a.windows;
  w.shape.packets = window_packets_;
  w.shape.open = o.open;
  w.shape.timeout_ns = static_cast<u64>(o.timeout_s * 1e9);
  w.data_bytes = data;
  w.missing = o.missing;
  w.convert = o.convert;
  w.audit_every = o.convert ? o.check_every : 0;
  w.wait_ns = static_cast<u64>(r_.timeout_s * 1e9);
  const bool by_kernel = o.on_gpu && o.to_gpu == ToGpu::kernel && !ordered;
  if (by_kernel && !r_.pinned)
    throw Error(setting::to_gpu + " kernel", "a kernel reaches received packets in pinned memory only",
                fmt::format("add {} pinned, or use {} copy", setting::memory, setting::to_gpu));
  for (u32 q = 0; q < r_.spreading.queues; ++q) {
    Queue& queue = queues_[q];
    a.queue = q;
    WorkloadRequest work = {.bytes = window_bytes_,
                            .gemm_dim = o.gemm_dim,
                            .gpu = o.on_gpu ? r_.gpu : nullptr,
                            .check_every = o.check_every,
                            .missing = o.missing,
                            .limit_ns = w.wait_ns};
    if (by_kernel) {
      queue.gatherer = std::make_shared<GpuAssembly>(r_.gpu, window_packets_, o.convert);
      work.assembly = queue.gatherer->stream();
      w.gatherer = queue.gatherer;
      w.place = Place::gpu;
      w.gpu = r_.gpu;
    } else if (o.on_gpu) {
      w.place = Place::pinned;
      w.gpu = r_.gpu;
    }
    queue.workload = Workload::open(o.workload, work);
    WindowConsumer* consumer = queue.workload.get();
    if (w.audit_every != 0) {
      queue.check = std::make_unique<WindowCheck>(
          WindowCheckRequest{slot, o.missing, r_.gpu, queue.gatherer, w.wait_ns}, *consumer);
      consumer = queue.check.get();
    }
    if (o.on_gpu && !by_kernel) {
      queue.copy =
          std::make_unique<CopyStage>(r_.gpu, window_bytes_, window_packets_, *consumer, 2, 2, w.wait_ns);
      consumer = queue.copy.get();
    }
    queue.sink = std::make_unique<AssemblySink>(a, *consumer);
    shape_ = queue.workload->shape();
  }
}

std::vector<PacketSink*> WindowWork::sinks() const {
  std::vector<PacketSink*> all;
  for (const Queue& q : queues_) all.push_back(q.sink.get());
  return all;
}

void WindowWork::finish(const std::vector<u64>& sent) {
  // Each flow has windows of its own, the last of which may not be full.
  const u64 data = r_.payload_bytes - kHeaderBytes;
  const u64 pieces = r_.ordered && !r_.options.convert ? data / window_bytes_ : 0;
  for (const u64 n : sent) {
    due_ += pieces != 0 ? n * pieces : (n + window_packets_ - 1) / window_packets_;
    if (pieces != 0) left_over_bytes_ += n * (data - pieces * window_bytes_);
  }
  for (const Queue& q : queues_) {
    q.sink->finish(sent);
    windows_ += q.sink->counts();
    wrong_length_ += q.sink->wrong_length();
    work_ += q.workload->counts();
    if (!q.check) continue;
    conversions_checked_ += q.check->checked();
    conversions_failed_ += q.check->failed();
    conversions_in_part_ += q.check->in_part();
  }
}

Json WindowWork::json() const {
  const WindowOptions& o = r_.options;
  Json j = {{"workload", std::string(name(o.workload))},
            {"window_packets", window_packets_},
            {"window_bytes", window_bytes_},
            {"place", o.on_gpu ? "gpu" : "host"},
            {"missing_slots", o.missing == Missing::zero ? "zeroed" : "marked"},
            {"windows", windows_.windows},
            {"windows_due", due_},
            {"full", windows_.full},
            {"pushed_out", windows_.pushed_out},
            {"timed_out", windows_.timed_out},
            {"at_end", windows_.at_end},
            {"placed", windows_.placed},
            {"late", windows_.late},
            {"missing", windows_.missing},
            {"left_over_bytes", left_over_bytes_},
            {"wrong_length", wrong_length_}};
  if (o.on_gpu) j["to_gpu"] = o.to_gpu == ToGpu::kernel && (!r_.ordered || o.convert) ? "kernel" : "copy";
  if (o.convert) {
    j["convert"] = name(*o.convert);
    j["endian"] = o.convert->big_endian ? "big" : "little";
    j["conversions_checked"] = conversions_checked_;
    j["conversions_failed"] = conversions_failed_;
    j["zeros_checked_in_part"] = conversions_in_part_;
  }
  if (o.workload == WorkloadKind::none) return j;
  j["library"] = queues_.front().workload->library();
  j["n"] = shape_.n;
  j["transforms"] = shape_.batch;
  j["flop_per_run"] = shape_.flop;
  j["runs"] = work_.runs;
  j["skipped"] = work_.skipped;
  j["checked"] = work_.checked;
  j["failed"] = work_.failed;
  j["worst_error_of_allowed"] = work_.worst;
  j["timed_runs"] = work_.timed;
  j["busy_s"] = static_cast<double>(work_.busy_ns) * 1e-9;
  j["check_s"] = static_cast<double>(work_.check_ns) * 1e-9;
  j["tflops"] = work_.busy_ns > 0 ? Json(static_cast<double>(work_.timed) * static_cast<double>(shape_.flop) /
                                         static_cast<double>(work_.busy_ns) * 1e-3)
                                  : Json();
  return j;
}

}  // namespace doorbell::net
