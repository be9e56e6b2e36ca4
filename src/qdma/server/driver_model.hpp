// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// A model of the kernel's driver: the calls of abi.hpp, with their rules of size and their error numbers,
// over a software card. It knows no sockets; open files are its nodes.
#pragma once

#include <doorbell/qdma/abi.hpp>

#include <array>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <string_view>
#include <vector>

#include "qdma/model/model_card.hpp"
#include "qdma/peer/wire.hpp"
#include "qdma/server/buffers.hpp"

namespace doorbell::qdma {

/// The card's place on a bus. Function 1 of it is what DriverModel drives.
inline constexpr std::string_view kCardPlace = "0000:00:00";

struct DriverLimits {
  u32 queue_pairs = kMaxQueuePairs;
  HostBuffers::Limits buffers = {};
};

/// Any thread may call any function, but not from a Done.
class DriverModel {
 public:
  /// How long a transfer may take that says nothing else.
  static constexpr u64 kTransferLimitNs = 10'000'000'000;

  /// Runs work that may take long, sooner or later, here or in another thread.
  using Later = std::function<void(std::function<void()>)>;
  explicit DriverModel(std::shared_ptr<ModelCard> card, const DriverLimits& limits = {}, Later later = {});
  ~DriverModel();
  DriverModel(const DriverModel&) = delete;
  DriverModel& operator=(const DriverModel&) = delete;

  /// An open file: a control node, or a transfer descriptor with its queue pairs.
  class Node;
  /// A transfer or a buffer that has begun.
  class InFlight;

  struct Request {
    u32 number = 0;
    std::span<const u8> structure = {};
    std::span<const int> descriptors = {};  ///< to which buf_fd points; needed during call() only
    u64 deadline_ns = 0;                    ///< of a transfer, from now; 0: kTransferLimitNs
  };
  struct Reply {
    i64 result = 0;             ///< at least 0, or a negative errno
    std::vector<u8> structure;  ///< as the driver writes it back
    std::array<wire::SubReply, kMaxSubTransfers> parts{};
    u32 part_count = 0;
    Descriptor descriptor;       ///< a new buffer's
    std::shared_ptr<Node> node;  ///< a new transfer descriptor; its owner closes it
  };
  /// Called once for each call(), perhaps before that returns, by any thread.
  using Done = std::function<void(Reply)>;

  /// Opens the control node.
  [[nodiscard]] std::shared_ptr<Node> open();
  /// Closes a node. The queue pairs that a control node has added are deleted; a buffer that was asked for
  /// and is not finished is not made: its call ends with ECANCELED.
  void close(Node& node);
  /// Returns what cancel() takes, or null for what is neither a transfer nor a buffer, or was refused.
  std::shared_ptr<InFlight> call(const std::shared_ptr<Node>& node, const Request& request, Done done);
  /// Ends what has not ended of a transfer, or a buffer that is being made, with ECANCELED.
  void cancel(InFlight& call);

  [[nodiscard]] u32 queue_pairs() const;
  /// Buffers that some process still has.
  [[nodiscard]] u64 sweep_buffers() { return buffers_.sweep(); }
  [[nodiscard]] bool holds(const wire::HostBufferName& buffer) { return buffers_.holds(buffer); }
  [[nodiscard]] ModelCard& card() { return *card_; }

 private:
  struct QueuePair;
  using QueuePairs = std::array<std::shared_ptr<QueuePair>, kMaxQueuePairs>;
  /// A queue pair's number: index | generation << 8.
  [[nodiscard]] int find(u32 id, std::shared_ptr<QueuePair>& out) const;

  Reply info(u32 size);
  Reply add(Node& node, const QpairAdd& add, u32 known, u32 size);
  void operate(const QpairOp& op, u32 size, Done done);
  Reply get_fd(const QpairGetFd& request, u32 size);
  std::shared_ptr<InFlight> create_buffer(const std::shared_ptr<Node>& node, const BufCreate& request,
                                          u32 size, Done done);
  struct BufferCall;
  /// One part of a buffer; then those that have been asked for meanwhile have their turn.
  void make_part(const std::shared_ptr<BufferCall>& call);
  std::shared_ptr<InFlight> transfer(Node& node, const Transfer& t, const Request& request, Done& done,
                                     int& error);
  [[nodiscard]] int prepare(const Node& node, const SubXfer& x, const Request& request, InFlight& call,
                            u32 part);
  void remove(const std::shared_ptr<QueuePair>& pair, std::function<void()> quiet);

  const std::shared_ptr<ModelCard> card_;
  const DriverLimits limits_;
  const Later later_;
  HostBuffers buffers_;
  mutable std::mutex mutex_;
  QueuePairs pairs_;
  std::array<u32, kMaxQueuePairs> generations_{};
  u32 added_ = 0;
};

}  // namespace doorbell::qdma
