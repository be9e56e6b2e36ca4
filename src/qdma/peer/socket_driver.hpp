// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// A card behind sockets that speak wire.hpp.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "qdma/driver.hpp"
#include "qdma/peer/socket_channel.hpp"
#include "service/patience.hpp"

namespace doorbell::qdma {

class CardServer;

class SocketDriver : public Driver {
 public:
  /// `control`: a connected socket, on which no hello has been said. With a `server`, which is then this
  /// process's, the card has counters. Throws Error if the other end speaks another version.
  SocketDriver(Descriptor control, std::string name, std::shared_ptr<CardServer> server = nullptr,
               const Patience& patience = {});
  ~SocketDriver() override;

  [[nodiscard]] std::string kind() const override { return "model"; }
  [[nodiscard]] std::string name() const override { return name_; }
  using Driver::call;
  [[nodiscard]] CallResult call(int fd, u32 number, std::span<u8> structure,
                                const CallOptions& options) override;
  [[nodiscard]] bool descriptors_are_sockets() const override { return true; }
  void cancel(int fd, u64 tag) override;
  [[nodiscard]] std::optional<bool> still_held(const wire::HostBufferName& buffer) override;
  [[nodiscard]] std::unique_ptr<CallEngine> uring_engine(int fd) override;
  void close(int fd) override;
  [[nodiscard]] std::string why(int error) const override;
  [[nodiscard]] nlohmann::ordered_json counters() override;
  /// Takes over a transfer descriptor that came another way than by QPAIR_GET_FD.
  void adopt(int fd);

 protected:
  /// For a card whose control node is no such socket: the calls on it are the derived class's.
  SocketDriver(std::string name, std::string who, const Patience& patience);
  /// Notes what has ended the wait for an answer. Returns it.
  int note_over(int over);
  /// The errno that has ended a wait, if nothing more is to be asked; 0 else.
  [[nodiscard]] int given_up() const;

  const Patience patience_;

 private:
  [[nodiscard]] std::shared_ptr<SocketChannel> channel_of(int fd);

  std::string name_;
  std::string who_ = "the card's server";  ///< who answers calls
  std::atomic<int> over_{0};               ///< what has ended a wait for an answer
  std::shared_ptr<CardServer> server_;
  Descriptor control_;
  std::shared_ptr<SocketChannel> control_channel_;
  std::mutex mutex_;
  std::map<int, std::shared_ptr<SocketChannel>> channels_;
};

/// Connects to the card server at `path`. Throws Error.
[[nodiscard]] Descriptor connect_to(const std::string& path, const Patience& patience = {});

}  // namespace doorbell::qdma
