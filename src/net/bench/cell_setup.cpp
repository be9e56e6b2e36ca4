// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "net/bench/cell_setup.hpp"

#include <doorbell/error.hpp>
#include <doorbell/gpu.hpp>
#include <fmt/format.h>

#include <algorithm>

#include "net/flow/relay.hpp"
#include "net/raw/frames.hpp"
#include "net/settings.hpp"
#include "report/units.hpp"

namespace doorbell::net {

CoreMap map_cores(const BenchOptions& o, const CellSettings& c) {
  const std::vector<int> all = o.cores.empty() ? allowed_cores() : o.cores;
  const u32 tx = o.role == Role::receiver ? 0 : c.tx_queues;
  const u32 rx = o.role == Role::sender ? 0 : c.rx_queues;
  CoreMap map;
  if (all.size() < tx + rx) return map;
  map.tx.assign(all.begin(), all.begin() + tx);
  // A sender of the same machine, in another process, has the first ones.
  const bool from_the_end = o.role == Role::receiver && o.cores.empty();
  const auto first_rx = from_the_end ? all.end() - rx : all.begin() + tx;
  map.rx.assign(first_rx, first_rx + rx);
  return map;
}

StreamRequest stream_request(const BenchOptions& o, const CellSetup& s) {
  StreamRequest r;
  r.payload_bytes = static_cast<u32>(s.cell.payload);
  r.burst = s.cell.batch;
  r.flows = s.flows();
  r.rx_queues = s.cell.rx_queues;
  r.steering = o.steering;
  r.rss_fields = o.rss_fields;
  r.encapsulation = o.encapsulation;
  r.place = o.place;
  if (o.place == Place::gpu || (o.place == Place::pinned && o.windows.on_gpu)) r.gpu = gpu::open(o.gpu);
  r.split = o.split;
  r.segmentation = o.segmentation;
  r.busy_poll_us = o.busy_poll_us;
  r.block_timeout_ms = o.block_timeout_ms;
  r.socket_bytes = o.socket_bytes;
  r.engine = o.engine;
  r.device = o.device;
  r.provider = o.provider;
  r.has_tx = o.role != Role::receiver;
  r.has_rx = o.role != Role::sender;
  return r;
}

Polling polling_of(const BenchOptions& o, const CellSettings& c, const StreamKind& kind) {
  if (o.polling != "auto") return o.polling == "busy" ? Polling::busy : Polling::block;
  // A socket's empty poll is a system call, which the sender's core feels too.
  if (kind.sockets) return Polling::block;
  return allowed_cores().size() >= c.tx_queues + c.rx_queues ? Polling::busy : Polling::block;
}

ReceivingOptions receiving_options(const BenchOptions& o, const CellSetup& s, const Stream& stream) {
  const StreamKind& kind = kind_of(o);
  ReceivingOptions r;
  r.receiver.run_tag = s.run_tag;
  r.receiver.spreading = {s.flows(), s.cell.rx_queues, stream.queue_of_flow};
  r.receiver.burst = s.cell.batch;
  r.receiver.first_sequence = o.first_sequence;
  r.receiver.seed = o.seed;
  r.receiver.verify = o.verify;
  r.receiver.verify_below = o.verify_below();
  r.receiver.late_ns = o.one_clock ? static_cast<u64>(o.late_after_s * 1e9) : ~u64{0};
  // A histogram's update costs as much as a small packet's header.
  r.receiver.latency_every = s.cell.payload < 1024 ? 8 : 1;
  r.reliable = kind.reliable && !o.faults.any();
  r.timeout_s = o.timeout_s;
  r.settle_s = o.settle_s;
  r.polling = polling_of(o, s.cell, kind);
  r.cores = map_cores(o, s.cell).rx;
  if (o.windows.on)
    r.windows = std::make_shared<WindowWork>(
        WindowWorkRequest{.options = o.windows,
                          .spreading = r.receiver.spreading,
                          .payload_bytes = static_cast<u32>(s.cell.payload),
                          .ordered = kind.ordered && kind.reliable && !o.faults.any(),
                          .pinned = o.place == Place::pinned,
                          .timeout_s = o.timeout_s,
                          .gpu = o.windows.on_gpu ? gpu::open(o.gpu) : nullptr});
  return r;
}

SendingOptions sending_options(const BenchOptions& o, const CellSetup& s) {
  SendingOptions r;
  r.sender.run_tag = s.run_tag;
  r.sender.payload_bytes = static_cast<u32>(s.cell.payload);
  r.sender.batch = s.cell.batch;
  r.sender.first_sequence = o.first_sequence;
  r.sender.seed = o.seed;
  r.sender.fill = o.fill;
  r.sender.data_crc = o.verify;
  r.threads = s.cell.tx_queues;
  r.timeout_s = o.timeout_s;
  r.packets_per_s = packets_per_s(s.cell);
  r.polling = polling_of(o, s.cell, kind_of(o));
  r.cores = map_cores(o, s.cell).tx;
  return r;
}

double packets_per_s(const CellSettings& c) {
  return c.target_gbps * 1e9 / 8 / static_cast<double>(c.payload) / c.flows();
}

namespace {

void check_payload(const BenchOptions& o, const CellSettings& c, const StreamKind& kind, const Link& link) {
  const u64 most = kind.max_payload(link) + kind.overhead_bytes - overhead_bytes(o, kind);
  if (c.payload > most)
    throw Error(setting::payload,
                fmt::format("{} is not in {}..{}, what {} over {} carries in one {}", c.payload, kHeaderBytes,
                            most, kind.name, link.name(), kind.unit),
                kind.frames ? fmt::format("{} tcp carries more", setting::stream)
                            : fmt::format("{} {} fits", setting::payload, most));
}

}  // namespace

std::unique_ptr<Stream> open_stream(const BenchOptions& o, const CellSetup& s, Link& link) {
  const StreamKind& kind = kind_of(o);
  check_payload(o, s.cell, kind, link);
  const StreamRequest r = stream_request(o, s);
  std::unique_ptr<Stream> stream = kind.open(r, link);
  if (!o.faults.any()) return stream;
  for (u32 q = 0; q < stream->rx.size(); ++q)
    stream->rx[q] = std::make_unique<Relay>(RelayOptions{.rates = o.faults,
                                                         .seed = o.seed,
                                                         .delay_ns = static_cast<u64>(o.relay_delay_s * 1e9),
                                                         .queue = q,
                                                         .place = r.gpu ? r.place : Place::pageable,
                                                         .gpu = r.gpu},
                                            std::move(stream->rx[q]), s.cell.batch, s.cell.payload);
  return stream;
}

report::Cell new_cell(const BenchOptions& o, const CellSettings& c, const Link& link,
                      const std::string& engine, u32 batch) {
  report::Cell cell;
  cell.path = "net";
  cell.operation = report::kPacket;
  cell.device_kind = link.kind();
  cell.device_name = link.name();
  cell.cell["stream"] = o.stream;
  if (kind_of(o).frames) cell.cell["engine"] = engine;
  cell.cell["payload_bytes"] = c.payload;
  cell.cell["batch_packets"] = batch;
  cell.cell["tx_queues"] = c.tx_queues;
  cell.cell["rx_queues"] = c.rx_queues;
  return cell;
}

u32 overhead_bytes(const BenchOptions& o, const StreamKind& kind) {
  // The kind's bytes are for UDP over IPv4, and other encapsulations are raw frames'.
  return kind.overhead_bytes + raw::header_bytes(o.encapsulation) - raw::kUdp4Bytes;
}

}  // namespace doorbell::net
