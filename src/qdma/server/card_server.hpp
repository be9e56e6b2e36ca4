// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Serves a software card to sockets that speak wire.hpp: `doorbell card serve`, and every card "model:..." of
// this process.
#pragma once

#include <doorbell/qdma/abi.hpp>

#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "system/descriptor.hpp"

namespace doorbell::qdma {

class ModelCard;

/// The most that all clients of a server hold together. A request beyond it gets EDQUOT.
struct ServerLimits {
  u32 connections = ~u32{0};
  u32 queue_pairs = kMaxQueuePairs;
  u32 descriptors = ~u32{0};  ///< transfer descriptors
  u64 host_bytes = ~u64{0};   ///< of host buffers that some process still has
};

/// Counts of what a server has done and holds, for tests and for its last line.
struct ServerCounts {
  u64 connections = 0;  ///< control sockets, now
  u64 descriptors = 0;  ///< transfer descriptors, now
  u64 buffers = 0;      ///< whose descriptor or mapping still exists, now
  u64 queue_pairs = 0;  ///< now
  u64 closing = 0;      ///< files that clients have sent, and their sockets, that are not closed yet
  u64 requests = 0;     ///< since the start
  u64 refused = 0;      ///< messages that were none of wire.hpp, and connections that were turned away
};

/// Gets a line about what a program of AMD's has asked for in vain. Not for long: the loop's thread calls it.
using SlashNotice = std::function<void(const std::string& line)>;

class CardServer {
 public:
  /// Serves in a thread of its own until destroyed.
  explicit CardServer(std::shared_ptr<ModelCard> card, const ServerLimits& limits = {});
  ~CardServer();
  CardServer(const CardServer&) = delete;
  CardServer& operator=(const CardServer&) = delete;

  /// A new control socket, as a program that opens the control node gets it. Any thread.
  [[nodiscard]] Descriptor connect();
  /// Also accepts connections at an AF_UNIX SEQPACKET path (mode 0600), which is removed at the end. A socket
  /// file that nothing listens at any more is replaced. Throws Error.
  void listen(const std::string& path);
  /// Also serves the three sockets of AMD's emulation in a folder, which is made if it is not there
  /// (slash/wire.hpp). Once. Throws Error.
  void listen_slash(const std::string& folder, const SlashNotice& notice = {});
  [[nodiscard]] ServerCounts counts() const;
  [[nodiscard]] ModelCard& card();

 private:
  class Loop;
  std::unique_ptr<Loop> loop_;
};

}  // namespace doorbell::qdma
