// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// slash_qdma_ctl0: the calls of abi.hpp, on the same driver model as those of other sockets.
#pragma once

#include <map>
#include <memory>

#include "qdma/slash/node_socket.hpp"

namespace doorbell::qdma::slash {

class QdmaSocket final : public NodeSocket {
 public:
  using NodeSocket::NodeSocket;
  ~QdmaSocket() override;

 private:
  struct Client {
    std::shared_ptr<DriverModel::Node> node;
    uid_t process = 0;  ///< as the loop takes turns
    bool control = false;
    std::shared_ptr<DriverModel::InFlight> in_flight = {};
  };
  void call(service::SocketId id, const Header& header, service::Message& message) override;
  void has_come(service::SocketId id, uid_t process) override;
  void has_gone(service::SocketId id) override;
  void finish(service::SocketId id, const Header& header, std::vector<u8> structure,
              DriverModel::Reply& result);
  void give_back(Client& client);
  std::map<service::SocketId, Client> clients_;
};

}  // namespace doorbell::qdma::slash
