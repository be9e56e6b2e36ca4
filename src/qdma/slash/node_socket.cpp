// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "qdma/slash/node_socket.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>

namespace doorbell::qdma::slash {

namespace {

/// The most unknown calls of a socket that are noted: a program may go through all numbers.
constexpr std::size_t kMostNoted = 16;
constexpr service::SocketKind kKind = {.longest = kMaxMessage};

}  // namespace

BoundFile bind_at(const std::string& path) {
  BoundFile bound;
  bound.socket = service::listen_at(path, fmt::format("listen at {}", path), {.mode = 0600});
  bound.file = service::SocketFile(path);
  return bound;
}

void NodeSocket::open(BoundFile bound) {
  file_ = std::move(bound.file);
  listener_ = around_.loop.listen(std::move(bound.socket), {this, kKind});
}

void NodeSocket::remove() {
  if (!is_there()) return;
  file_.remove();
  around_.loop.stop_listening(std::exchange(listener_, 0));
  while (!clients_.empty()) {
    const service::SocketId id = clients_.begin()->first;
    around_.loop.close(id);
    closed(id);
  }
}

int NodeSocket::connect(service::SocketId id, service::Peer peer) {
  ServerBooks& books = around_.books;
  if (books.connections >= books.limits.connections) {
    ++books.refused;
    return EDQUOT;
  }
  ++books.connections;
  clients_[id] = false;
  has_come(id, static_cast<uid_t>(peer.pid));
  return 0;
}

void NodeSocket::closed(service::SocketId id) {
  const auto client = clients_.extract(id);
  --(client.mapped() ? around_.books.descriptors : around_.books.connections);
  has_gone(id);
}

Descriptor NodeSocket::open_pair(service::SocketId id, uid_t process, int& error) {
  ServerBooks& books = around_.books;
  error = books.descriptors >= books.limits.descriptors ? EDQUOT : 0;
  if (error != 0) return {};
  Descriptor theirs = around_.loop.open_pair(id, process, error, {this, kKind});
  if (error != 0) return {};
  ++books.descriptors;
  clients_[id] = true;
  return theirs;
}

void NodeSocket::message(service::SocketId id, service::Message m) {
  Header header;
  if (const int error = check_request(m, header); error != 0) {
    ++around_.books.refused;
    // Bytes that are no message have no number that a reply could carry.
    if (error == EPROTO) return around_.loop.finish(id);
    return reply(id, header, error);
  }
  ++around_.books.requests;
  if (!is_call(header.number)) {
    note_unknown(header.number);
    return reply(id, header, ENOSYS);
  }
  if (payload(m).size() < size_of_structure(header.number)) return reply(id, header, EINVAL);
  call(id, header, m);
}

void NodeSocket::note_unknown(u32 number) {
  if (!around_.notice || unknown_.size() >= kMostNoted || std::ranges::count(unknown_, number) != 0) return;
  unknown_.push_back(number);
  around_.notice(fmt::format("{}: a program's call {:#010x} is none that this card has; it gets ENOSYS",
                             std::filesystem::path(path_).filename().string(), number));
}

void NodeSocket::reply(service::SocketId id, const Header& request, std::int32_t result,
                       std::span<const u8> structure, Descriptor with) {
  around_.loop.send(id, encode_reply(request, result, structure), std::move(with));
}

}  // namespace doorbell::qdma::slash
