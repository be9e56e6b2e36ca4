// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// slash_ctl0: who the card is, and its BARs.
#pragma once

#include "qdma/slash/bars.hpp"
#include "qdma/slash/node_socket.hpp"

namespace doorbell::qdma::slash {

class ControlSocket final : public NodeSocket {
 public:
  using NodeSocket::NodeSocket;

 private:
  void call(service::SocketId id, const Header& header, service::Message& message) override;
  void has_come(service::SocketId, uid_t) override {}
  void has_gone(service::SocketId) override {}
  const Bars bars_;
};

}  // namespace doorbell::qdma::slash
