// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "qdma/slash/qdma_socket.hpp"

#include <algorithm>
#include <array>
#include <cerrno>

namespace doorbell::qdma::slash {

namespace {

/// The value of BufCreate::transfer_hint here: one queue pair is enough. Programs for this socket expect it.
constexpr u32 kOneQueuePair = 1;

/// The caller's structure after the call: what the driver has written back of it.
void write_back(u32 number, std::span<const u8> by_driver, std::vector<u8>& structure) {
  std::copy_n(by_driver.begin(), std::min(by_driver.size(), structure.size()), structure.begin());
  BufCreate b;
  if (number != kCallBufCreate || by_driver.size() < sizeof b) return;
  std::memcpy(&b, structure.data(), sizeof b);
  b.transfer_hint = kOneQueuePair;
  std::memcpy(structure.data(), &b, sizeof b);
}

}  // namespace

QdmaSocket::~QdmaSocket() {
  for (auto& [id, client] : clients_) give_back(client);
}

void QdmaSocket::give_back(Client& client) {
  if (client.in_flight) around_.driver.cancel(*client.in_flight);
  around_.driver.close(*client.node);
}

void QdmaSocket::has_come(service::SocketId id, uid_t process) {
  clients_[id] = {.node = around_.driver.open(), .process = process, .control = true};
}

void QdmaSocket::has_gone(service::SocketId id) {
  auto client = clients_.extract(id);
  give_back(client.mapped());
}

void QdmaSocket::call(service::SocketId id, const Header& header, service::Message& message) {
  Client& client = clients_.at(id);
  const bool transfer = header.number == kCallTransfer;
  if (structure_size(header.number) == 0 ||
      (client.control ? transfer : !transfer && header.number != kCallBufCreate))
    return reply(id, header, EINVAL);
  std::array<int, kMaxDescriptors> files{};
  for (std::size_t f = 0; f < message.files.size(); ++f) files[f] = message.files[f].get();
  const auto structure = payload(message);
  // Replies come in the order of their requests, so the next one waits for this one.
  around_.loop.pause(id);
  // A call may outlive the loop.
  auto answer = [this, mail = around_.loop.mailbox(), id, header,
                 structure = std::vector<u8>(structure.begin(), structure.end())](DriverModel::Reply r) {
    mail->post([this, id, header, structure, r = std::make_shared<DriverModel::Reply>(std::move(r))] {
      finish(id, header, structure, *r);
    });
  };
  client.in_flight = around_.driver.call(client.node,
                                         {.number = header.number,
                                          .structure = structure,
                                          .descriptors = std::span(files).first(message.files.size()),
                                          .deadline_ns = kTransferLimitNs},
                                         std::move(answer));
}

void QdmaSocket::finish(service::SocketId id, const Header& header, std::vector<u8> structure,
                        DriverModel::Reply& r) {
  if (r.descriptor.get() >= 0) around_.books.buffer_made();
  const auto it = clients_.find(id);
  if (it == clients_.end()) {
    if (r.node) around_.driver.close(*r.node);
    return;
  }
  it->second.in_flight.reset();
  Descriptor with = std::move(r.descriptor);
  if (r.node) {
    int error = 0;
    const service::SocketId pair = next_socket();
    const uid_t process = it->second.process;
    with = open_pair(pair, process, error);
    if (error == 0) {
      clients_[pair] = {.node = std::move(r.node), .process = process};
    } else {
      r.result = -error;
      around_.driver.close(*r.node);
    }
  }
  write_back(header.number, r.structure, structure);
  const bool told = r.result >= 0 && header.number != kCallTransfer;
  reply(id, header, static_cast<std::int32_t>(r.result),
        told ? std::span<const u8>(structure) : std::span<const u8>(), std::move(with));
  around_.loop.resume(id);
}

}  // namespace doorbell::qdma::slash
