// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "net/assembly/assembler.hpp"

#include <doorbell/error.hpp>
#include <doorbell/net/packet.hpp>

#include <cstring>

#include "net/assembly/reference_conversion.hpp"

namespace doorbell::net {

Assembler::Assembler(const AssemblerRequest& request, WindowConsumer& consumer)
    : flow_(request.flow),
      data_bytes_(request.data_bytes),
      missing_(request.missing),
      convert_(request.convert),
      slot_bytes_(convert_ ? converted_bytes(*convert_, data_bytes_) : data_bytes_),
      wait_ns_(request.wait_ns),
      gatherer_(request.place == Place::gpu ? request.gatherer : nullptr),
      tracker_(request.shape),
      buffers_(request.place, request.gpu, request.shape.open + request.in_flight,
               slot_bytes_ * request.shape.packets, request.shape.packets),
      consumer_(consumer),
      buffer_of_(request.shape.open, kNone),
      audit_every_(request.audit_every),
      slot_crcs_(audit_every_ != 0 ? u64{buffers_.count()} * request.shape.packets : 0) {
  if (request.place == Place::gpu && gatherer_ == nullptr)
    throw Error("windows in GPU memory", "a CPU cannot put packets together there");
}

Placing Assembler::add(u64 sequence, const Data& data, u64 now_ns) {
  // An integer that lies in both places would be converted wrongly.
  if (data.first_bytes + u64{data.second_bytes} != data_bytes_ ||
      (convert_ && u64{data.first_bytes} * 8 % bits_of(convert_->from) != 0 && data.second_bytes != 0)) {
    ++wrong_length_;
    return Placing::wrong_length;
  }
  const auto deliver_closed = [this](const ClosedWindow& w) { deliver(w); };
  const Placement p = tracker_.place(sequence, now_ns, deliver_closed);
  if (p.what != Placing::placed) return p.what;
  if (p.first) buffer_of_[p.ring] = new_buffer();
  const u64 at = p.slot * slot_bytes_;
  put(data.first, data.first_bytes, buffer_of_[p.ring], at);
  if (data.second_bytes != 0)
    put(data.second, data.second_bytes, buffer_of_[p.ring],
        at + (convert_ ? converted_bytes(*convert_, data.first_bytes) : data.first_bytes));
  if (audit_every_ != 0 && p.window % audit_every_ == 0) audit(data, buffer_of_[p.ring], p.slot);
  if (tracker_.full()) tracker_.close_full(deliver_closed);
  return p.what;
}

void Assembler::audit(const Data& data, u32 buffer, u32 slot) {
  u32& crc = slot_crcs_[u64{buffer} * tracker_.shape().packets + slot];
  if (!convert_) {
    crc = crc32c(data.second, data.second_bytes, crc32c(data.first, data.first_bytes));
    return;
  }
  expected_.clear();
  reference_conversion(*convert_, data.first, data.first_bytes, expected_);
  reference_conversion(*convert_, data.second, data.second_bytes, expected_);
  crc = crc32c(expected_.data(), expected_.size());
}

void Assembler::put(const u8* data, u32 bytes, u32 buffer, u64 at) {
  if (gatherer_ != nullptr) gatherer_->add(data, buffers_.device(buffer) + at, bytes);
  else if (convert_) convert(OneLane{}, *convert_, data, bytes, buffers_.host(buffer) + at);
  else std::memcpy(buffers_.host(buffer) + at, data, bytes);
}

void Assembler::poll(u64 now_ns) {
  tracker_.expire(now_ns, [this](const ClosedWindow& w) { deliver(w); });
  consumer_.poll();
}

void Assembler::finish(u64 total_packets) {
  tracker_.finish([this](const ClosedWindow& w) { deliver(w); }, total_packets);
  consumer_.finish();
}

u32 Assembler::new_buffer() {
  if (!buffers_.available()) consumer_.poll();
  if (!buffers_.available()) wait_for_buffer(buffers_, consumer_, wait_ns_);
  return buffers_.acquire();
}

void Assembler::deliver(const ClosedWindow& closed) {
  u32 buffer = buffer_of_[closed.ring];
  if (buffer == kNone) buffer = new_buffer();
  buffer_of_[closed.ring] = kNone;
  Window window = buffers_.describe(buffer, closed, slot_bytes_);
  window.flow = flow_;
  if (audit_every_ != 0 && closed.index % audit_every_ == 0) {
    const u32 packets = tracker_.shape().packets;
    window.slot_crcs = std::span(slot_crcs_).subspan(u64{buffer} * packets, packets);
  }
  // The consumer's work follows what is in the gatherer's stream.
  if (gatherer_ != nullptr) gatherer_->launch();
  if (missing_ == Missing::zero) zero_missing(window);
  consumer_.take(window);
}

/// Where nearly all is lost, few of the missing slots hold anything.
void Assembler::zero_missing(const Window& window) {
  bool any = false;
  buffers_.zero_missing(window, [&](u32 first, u32 slots) {
    any = true;
    if (gatherer_ == nullptr)
      std::memset(buffers_.host(window.buffer) + first * slot_bytes_, 0, slots * slot_bytes_);
  });
  if (any && gatherer_ != nullptr) gatherer_->zero_missing(window, slot_bytes_);
}

}  // namespace doorbell::net
