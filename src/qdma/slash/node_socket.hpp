// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// A socket file that stands for a node of the driver, as a protocol of SocketLoop.
#pragma once

#include <map>
#include <span>
#include <string>
#include <vector>

#include "qdma/server/books.hpp"
#include "qdma/server/driver_model.hpp"
#include "qdma/slash/message.hpp"
#include "service/local_socket.hpp"
#include "service/socket_loop.hpp"

namespace doorbell::qdma::slash {

/// The surroundings of a folder's sockets. Outlives them.
struct Surroundings {
  service::SocketLoop& loop;
  DriverModel& driver;
  ServerBooks& books;
  SlashNotice notice = {};
};

/// A file that is bound and not served yet.
struct BoundFile {
  service::SocketFile file;
  Descriptor socket;
};
/// Any thread. Throws Error.
[[nodiscard]] BoundFile bind_at(const std::string& path);

/// The loop's thread calls everything but the constructor and the destructor.
class NodeSocket : public service::Protocol {
 public:
  NodeSocket(const Surroundings& around, std::string path) : around_(around), path_(std::move(path)) {}
  NodeSocket(const NodeSocket&) = delete;
  NodeSocket& operator=(const NodeSocket&) = delete;

  [[nodiscard]] const std::string& path() const { return path_; }
  /// Whether its file is there, as that of a function that has not been removed.
  [[nodiscard]] bool is_there() const { return listener_ != 0; }
  void open(BoundFile bound);
  /// Its file goes, and its clients are disconnected.
  void remove();

  // Protocol
  service::SocketId next_socket() final { return around_.books.next_socket++; }
  int connect(service::SocketId id, service::Peer peer) final;
  std::vector<u8> refusal(int) final { return {}; }
  void message(service::SocketId id, service::Message m) final;
  void closed(service::SocketId id) final;
  void refused(std::string_view) final { ++around_.books.refused; }

 protected:
  /// A request, whose payload is a whole structure and whose call this socket or another one has. Every
  /// request gets one reply().
  virtual void call(service::SocketId id, const Header& header, service::Message& message) = 0;
  virtual void has_come(service::SocketId id, uid_t process) = 0;
  virtual void has_gone(service::SocketId id) = 0;

  /// A new socket for a client, which is served as this one's, too. Without one, `error` is an errno.
  [[nodiscard]] Descriptor open_pair(service::SocketId id, uid_t process, int& error);
  void reply(service::SocketId id, const Header& request, int error) { reply(id, request, -error, {}); }
  void reply(service::SocketId id, const Header& request, std::int32_t result, std::span<const u8> structure,
             Descriptor with = {});
  [[nodiscard]] static std::span<const u8> payload(const service::Message& m) {
    return m.bytes.subspan(sizeof(Header));
  }

  const Surroundings& around_;

 private:
  /// Says once what nobody has.
  void note_unknown(u32 number);
  const std::string path_;
  service::SocketFile file_;
  u64 listener_ = 0;
  std::map<service::SocketId, bool> clients_;  // whether it is a pair's end
  std::vector<u32> unknown_;                   // calls that have been noted
};

}  // namespace doorbell::qdma::slash
