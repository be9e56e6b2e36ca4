// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "vfio_user/server.hpp"

#include "vfio_user/server_loop.hpp"

namespace doorbell::vfio_user {

nlohmann::ordered_json to_json(const ServerCounts& c) {
  return {{"connected", c.connected},
          {"clients", c.clients},
          {"messages", c.messages},
          {"refused", c.refused},
          {"malformed", c.malformed},
          {"turned_away", c.turned_away},
          {"stray_replies", c.stray_replies},
          {"unexpected_files", c.unexpected_files},
          {"unanswered", c.unanswered},
          {"dma_ranges", c.ranges},
          {"dma_ranges_by_message", c.remote_ranges},
          {"dma_files", c.files},
          {"dma_files_lost", c.files_lost},
          {"dma_reads_by_message", c.dma_reads},
          {"dma_writes_by_message", c.dma_writes},
          {"dma_messages_refused", c.dma_refused},
          {"interrupt_vectors", c.vectors},
          {"interrupts_raised", c.interrupts_raised},
          {"interrupts_delivered", c.interrupts_delivered},
          {"resets", c.resets}};
}

Server::Server(Device& device, const ServerOptions& options)
    : loop_(std::make_unique<Loop>(device, options)) {}
Server::~Server() = default;

void Server::listen(const std::string& path) {
  loop_->listen(path);
}
Descriptor Server::connect() {
  return loop_->connect_pair();
}
ServerCounts Server::counts() const {
  return loop_->counts();
}

}  // namespace doorbell::vfio_user
