// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// slash_hotplug: takes functions of the card away and brings them back. What the card has in its memory
// stays.
#pragma once

#include <array>
#include <deque>
#include <functional>
#include <optional>
#include <string_view>

#include "qdma/slash/node_socket.hpp"

namespace doorbell::qdma::slash {

/// The functions that a call is about, by their numbers; or an errno: EINVAL for no place, ENODEV for none of
/// this card.
struct Functions {
  std::vector<u32> numbers = {};
  int error = 0;
};
[[nodiscard]] Functions functions_at(const Place& place);

class HotplugSocket final : public NodeSocket {
 public:
  static constexpr u32 kFunctions = 3;
  /// The sockets that stand for functions 0, 1 and 2; null: nothing does.
  using Sockets = std::array<NodeSocket*, kFunctions>;
  HotplugSocket(const Surroundings& around, std::string path, const Sockets& functions)
      : NodeSocket(around, std::move(path)), functions_(functions) {}

 private:
  struct Call {
    service::SocketId id = 0;
    Header header;
    Functions functions;
  };
  void call(service::SocketId id, const Header& header, service::Message& message) override;
  void has_come(service::SocketId, uid_t) override {}
  void has_gone(service::SocketId) override {}
  void go_on();
  /// Brings back what is not there. `done` gets 0 or an errno.
  void rescan(std::function<void(int error)> done);

  const Sockets functions_;
  std::deque<Call> waiting_;  // one of each client at most
  bool busy_ = false;
};

}  // namespace doorbell::qdma::slash
