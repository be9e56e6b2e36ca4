// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// The card server's messages, any bytes of them, into the driver of a software card: it must not crash or
// hang, every call is answered once, and what is answered is a message.

#include <atomic>
#include <cstring>
#include <memory>
#include <thread>
#include <vector>

#include "fuzz/fuzz.hpp"
#include "qdma/server/driver_model.hpp"
#include "qdma/server/message.hpp"

using namespace doorbell;
using namespace doorbell::qdma;
using fuzz::require;

namespace {

constexpr u32 kNumbers[] = {kCallInfo,       kCallQpairAdd,  kCallQpairAddOld, kCallQpairOp,
                            kCallQpairGetFd, kCallBufCreate, kCallTransfer,    kCallTransfer};
constexpr u64 kAddresses[] = {kHbmBase,
                              kHbmBoundary,
                              kHbmBase + kHbmBytes,
                              kDdrBase,
                              kDdrBase + kDdrBytes,
                              kPdiBase,
                              kPdiBase + kPdiBytes,
                              0};

/// One for all inputs, because a card is 64 GiB of address space and threads.
std::shared_ptr<ModelCard> card() {
  static const std::shared_ptr<ModelCard> one = [] {
    model::Use use;
    use.faults.probability[static_cast<u32>(model::Fault::drop)] = 0.1;
    use.faults.probability[static_cast<u32>(model::Fault::error)] = 0.1;
    return make_model_card("model:clock=counted,bandwidth=10G,threads=1", use);
  }();
  return one;
}

struct Waiting {
  std::atomic<u32> calls{0}, replies{0};
  void settle() const {
    while (replies.load() != calls.load()) std::this_thread::yield();
  }
};

struct Session {
  DriverModel driver{card(), {.queue_pairs = 5, .buffers = {.buffers = 4, .bytes = 1 << 20}}};
  std::vector<std::shared_ptr<DriverModel::Node>> nodes{driver.open()};
  std::vector<Descriptor> buffers;
  std::vector<std::shared_ptr<DriverModel::InFlight>> transfers;
  Waiting waiting;

  void call(const std::shared_ptr<DriverModel::Node>& node, const service::Message& message,
            const wire::RequestHeader& header) {
    std::array<int, wire::kMaxDescriptors> descriptors{};
    for (std::size_t i = 0; i < message.files.size(); ++i) descriptors[i] = message.files[i].get();
    DriverModel::Reply control;
    const bool transfer = header.number == kCallTransfer;
    ++waiting.calls;
    std::atomic<bool> answered{false};
    // A transfer is answered when it has ended, and brings nothing to keep.
    auto in_flight = driver.call(
        node,
        {.number = header.number,
         .structure = message.bytes.subspan(sizeof header, header.bytes),
         .descriptors = std::span(descriptors).first(message.files.size()),
         .deadline_ns = header.deadline_ns},
        [this, transfer, &control, &answered](DriverModel::Reply r) {
          require(r.result >= 0 ? r.result <= static_cast<i64>(kMaxCallBytes) : r.result > -4096);
          require(r.part_count <= kMaxSubTransfers);
          const auto bytes = encode_reply({.bytes = static_cast<u32>(r.structure.size()), .result = r.result},
                                          r.structure, std::span(r.parts).first(r.part_count));
          require(bytes.size() <= wire::kMaxMessage);
          ++waiting.replies;
          if (transfer) return;
          control = std::move(r);
          answered = true;
        });
    if (in_flight) transfers.push_back(std::move(in_flight));
    if (transfer) return;
    while (!answered) std::this_thread::yield();
    if (control.node && nodes.size() < 8) nodes.push_back(std::move(control.node));
    if (control.descriptor.get() >= 0) buffers.push_back(std::move(control.descriptor));
  }
  ~Session() {
    for (const auto& t : transfers) driver.cancel(*t);
    waiting.settle();
    for (const auto& node : nodes) driver.close(*node);
    buffers.clear();
    require(driver.sweep_buffers() == 0);
    require(driver.queue_pairs() == 0);
  }
};

/// A structure that is right in most of its fields.
void plausible(FuzzedDataProvider& in, u32 number, std::vector<u8>& bytes) {
  const auto set = [&](u64 offset, auto value) {
    if (offset + sizeof value <= bytes.size()) std::memcpy(bytes.data() + offset, &value, sizeof value);
  };
  const auto few = [&](u32 most) { return in.ConsumeIntegralInRange<u32>(0, most); };
  set(0, static_cast<u32>(bytes.size()));
  switch (number) {
    case kCallQpairAdd:
    case kCallQpairAddOld:
      set(8, few(3));
      set(12, few(3));
      set(16, few(16));
      set(20, few(15));
      set(32, in.ConsumeBool() ? 0u : 1u << few(31));
      break;
    case kCallQpairOp:
      set(4, few(5) | few(2) << 8);
      set(8, few(3));
      break;
    case kCallQpairGetFd:
      set(4, few(5) | few(2) << 8);
      set(12, few(3));
      set(16, few(5));
      set(20, few(5));
      break;
    case kCallBufCreate:
      set(8, u64{few(16)} * 4096);
      break;
    case kCallTransfer:
      set(4, few(3));
      for (const u64 at : {8, 48}) {
        set(at, few(2));
        set(at + 4, few(3));
        set(at + 8, static_cast<std::int32_t>(few(2)));
        set(at + 16, u64{few(4)} * 4096);
        set(at + 24, in.PickValueInArray(kAddresses) + few(2) * 4096 - few(2) * 4096);
        set(at + 32, u64{few(5 * 4096)});
      }
      break;
    default:
      break;
  }
}

service::Message message_from(FuzzedDataProvider& in, const Session& session,
                              std::array<u8, wire::kMaxMessage>& space) {
  service::Message m;
  wire::RequestHeader h;
  h.number =
      in.ConsumeIntegralInRange<u32>(0, 15) == 0 ? in.ConsumeIntegral<u32>() : in.PickValueInArray(kNumbers);
  h.deadline_ns = in.ConsumeBool() ? 0 : in.ConsumeIntegral<u32>();
  std::vector<u8> structure(
      std::min<u32>(structure_size(h.number) + in.ConsumeIntegralInRange<u32>(0, 4), 512));
  plausible(in, h.number, structure);
  for (u32 i = in.ConsumeIntegralInRange<u32>(0, 2); i > 0 && !structure.empty(); --i)
    structure[in.ConsumeIntegralInRange<std::size_t>(0, structure.size() - 1)] = in.ConsumeIntegral<u8>();
  h.bytes = static_cast<u32>(structure.size());
  while (m.files.size() < wire::kMaxDescriptors && !session.buffers.empty() && in.ConsumeBool())
    m.files.emplace_back(
        Descriptor(dup(session.buffers[in.ConsumeIntegral<u8>() % session.buffers.size()].get())));
  h.descriptors = static_cast<u32>(m.files.size());
  std::memcpy(space.data(), &h, sizeof h);
  if (!structure.empty()) std::memcpy(space.data() + sizeof h, structure.data(), structure.size());
  std::size_t length = sizeof h + structure.size();
  if (in.ConsumeIntegralInRange<u32>(0, 15) == 0) {  // any bytes, of any length
    space[in.ConsumeIntegralInRange<u32>(0, 39)] = in.ConsumeIntegral<u8>();
    length = in.ConsumeIntegralInRange<u32>(1, wire::kMaxMessage);
    m.truncated = in.ConsumeBool();
    m.lost = in.ConsumeBool();
  }
  m.bytes = std::span(space).first(length);
  return m;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const u8* bytes, std::size_t size) {
  FuzzedDataProvider in(bytes, size);
  Session session;
  for (int step = 0; step < 200 && in.remaining_bytes() > 0; ++step) {
    std::array<u8, wire::kMaxMessage> space{};
    const service::Message message = message_from(in, session, space);
    wire::RequestHeader header;
    if (check_request(message, header) != 0) continue;
    require(sizeof header + header.bytes == message.bytes.size() &&
            message.bytes.size() <= wire::kMaxMessage);
    const auto node = session.nodes[in.ConsumeIntegral<u8>() % session.nodes.size()];
    session.call(header.number == kCallTransfer || in.ConsumeBool() ? node : session.nodes.front(), message,
                 header);
    if (in.ConsumeIntegralInRange<u32>(0, 7) == 0 && !session.transfers.empty())
      session.driver.cancel(*session.transfers[in.ConsumeIntegral<u8>() % session.transfers.size()]);
  }
  return 0;
}
