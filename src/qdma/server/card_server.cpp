// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "qdma/server/card_server.hpp"

#include "qdma/server/loop.hpp"

namespace doorbell::qdma {

CardServer::CardServer(std::shared_ptr<ModelCard> card, const ServerLimits& limits)
    : loop_(std::make_unique<Loop>(std::move(card), limits)) {}
CardServer::~CardServer() = default;

Descriptor CardServer::connect() {
  return loop_->connect();
}
void CardServer::listen(const std::string& path) {
  loop_->listen(path);
}
void CardServer::listen_slash(const std::string& folder, const SlashNotice& notice) {
  loop_->listen_slash(folder, notice);
}
ServerCounts CardServer::counts() const {
  return loop_->counts();
}
ModelCard& CardServer::card() {
  return loop_->card();
}

}  // namespace doorbell::qdma
