// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include <doorbell/error.hpp>
#include <doorbell/net/window_receiver.hpp>
#include <fmt/format.h>

#include "net/assembly/assembly_sink.hpp"
#include "net/assembly/copy_stage.hpp"
#include "net/flow/receiver.hpp"
#include "system/clock.hpp"

namespace doorbell::net {

namespace {

AssemblyRequest assembly_of(const StreamQueues& stream, const WindowReceiverRequest& r) {
  const StreamRequest& s = stream.request();
  if (s.place == Place::gpu)
    throw Error("windows of packets in GPU memory", "a CPU cannot put them together",
                "receive into pinned memory");
  if (s.payload_bytes <= kHeaderBytes)
    throw Error(fmt::format("a payload of {} bytes", s.payload_bytes),
                "there is nothing behind the header to assemble");
  AssemblyRequest a;
  a.queue = r.queue;
  a.spreading = {s.flows, s.rx_queues, stream.queue_of_flow()};
  a.windows.shape = r.shape;
  a.windows.data_bytes = s.payload_bytes - kHeaderBytes;
  a.windows.missing = r.missing;
  a.windows.place = r.place == Place::gpu ? Place::pinned : r.place;
  a.windows.gpu = r.gpu;
  a.windows.in_flight = r.in_flight;
  a.windows.convert = r.convert;
  a.windows.wait_ns = r.wait_ns;
  // The sink counts packets from the flow's first.
  a.windows.shape.first_sequence = 0;
  return a;
}

ReceiverOptions receiver_of(const StreamQueues& stream, const WindowReceiverRequest& r) {
  ReceiverOptions o;
  o.run_tag = r.run_tag;
  o.queue = r.queue;
  o.spreading = {stream.request().flows, stream.request().rx_queues, stream.queue_of_flow()};
  o.burst = stream.request().burst;
  o.first_sequence = r.shape.first_sequence;
  o.verify = r.verify;
  return o;
}

u64 slot_bytes_of(const AssemblyRequest& a) {
  return a.windows.convert ? converted_bytes(*a.windows.convert, a.windows.data_bytes) : a.windows.data_bytes;
}

}  // namespace

struct WindowReceiver::Parts {
  Parts(StreamQueues& stream, const WindowReceiverRequest& r, WindowConsumer& consumer)
      : assembly(assembly_of(stream, r)) {
    WindowConsumer* next = &consumer;
    if (r.place == Place::gpu) {
      if (!r.gpu) throw Error("windows in GPU memory", "no GPU is given", "gpu::open() opens one");
      copy = std::make_unique<CopyStage>(r.gpu, slot_bytes_of(assembly) * r.shape.packets, r.shape.packets,
                                         consumer, 2, r.in_flight, r.wait_ns);
      next = copy.get();
    }
    sink = std::make_unique<AssemblySink>(assembly, *next);
    receiver = std::make_unique<Receiver>(receiver_of(stream, r), stream.rx(r.queue), sink.get());
  }

  AssemblyRequest assembly;
  std::unique_ptr<AssemblySink> sink;
  std::unique_ptr<CopyStage> copy;  // goes before the sink, whose windows it copies
  std::unique_ptr<Receiver> receiver;
};

WindowReceiver::WindowReceiver(StreamQueues& stream, const WindowReceiverRequest& request,
                               WindowConsumer& consumer)
    : parts_(std::make_unique<Parts>(stream, request, consumer)) {}
WindowReceiver::~WindowReceiver() = default;

u32 WindowReceiver::step() {
  const u32 n = parts_->receiver->step();
  if (n == 0) parts_->sink->idle(wall_ns());
  return n;
}

void WindowReceiver::finish(const std::vector<u64>& sent) {
  parts_->receiver->settle();
  parts_->sink->finish(sent);
}

const ReceiveCounts& WindowReceiver::counts() const {
  return parts_->receiver->counts();
}
WindowCounts WindowReceiver::windows() const {
  return parts_->sink->counts();
}
u64 WindowReceiver::lost(u32 flow, u64 sent) const {
  if (!parts_->receiver->owns(flow))
    throw Error(fmt::format("flow {}", flow), "it arrives at another receive queue");
  const ArrivalMap& map = parts_->receiver->map(flow);
  return map.lost(map.start() + sent);
}
u64 WindowReceiver::slot_bytes() const {
  return slot_bytes_of(parts_->assembly);
}
u64 WindowReceiver::window_bytes() const {
  return slot_bytes() * parts_->assembly.windows.shape.packets;
}

}  // namespace doorbell::net
