// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// The server as a protocol of SocketLoop: what each command does, in the order of their coming.
#pragma once

#include <array>
#include <atomic>
#include <deque>
#include <functional>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "service/local_socket.hpp"
#include "service/socket_loop.hpp"
#include "vfio_user/dma_maps.hpp"
#include "vfio_user/message_dma.hpp"
#include "vfio_user/server.hpp"

namespace doorbell::vfio_user {

/// The thread of the sockets never waits for the device: a worker does. While it does, commands wait in their
/// order, and answers to the device's DMA messages are taken.
class Server::Loop final : public service::Protocol {
 public:
  Loop(Device& device, const ServerOptions& options);
  ~Loop() override;

  [[nodiscard]] Descriptor connect_pair();
  void listen(const std::string& path);
  [[nodiscard]] ServerCounts counts() const;

 private:
  struct Queued {
    std::vector<u8> bytes;
    std::vector<service::ForeignFile> files;
  };
  struct Session {
    service::SocketId id = 0;
    service::Peer peer;
    bool greeted = false;
    u64 came_ns = 0;
    std::deque<Queued> queue;
    std::size_t queued_bytes = 0;
  };
  struct Answer {
    u32 error = 0;
    std::vector<u8> payload = {};
    Descriptor file = {};
    bool close = false;              ///< the client is disconnected behind it
    std::function<u32()> wait = {};  ///< what the worker does first: 0, or an errno
  };
  using Files = std::vector<service::ForeignFile>;

  // Protocol
  service::SocketId next_socket() override { return next_id_++; }
  int connect(service::SocketId id, service::Peer peer) override;
  std::vector<u8> refusal(int) override { return {}; }
  void message(service::SocketId id, service::Message m) override;
  void closed(service::SocketId id) override;
  void refused(std::string_view reason) override;

  void malformed(service::SocketId id, const service::Message& m);
  void run_next();
  void handle(std::span<const u8> bytes, Files& files);
  void finish(service::SocketId id, const Header& header, Answer answer);
  [[nodiscard]] Answer execute(const Header& header, std::span<const u8> payload, Files& files);
  [[nodiscard]] Answer agree(std::span<const u8> payload);
  [[nodiscard]] Answer dma_map(std::span<const u8> payload, Files files);
  [[nodiscard]] Answer dma_unmap(std::span<const u8> payload);
  [[nodiscard]] Answer device_info(std::span<const u8> payload) const;
  [[nodiscard]] Answer region_info(std::span<const u8> payload) const;
  [[nodiscard]] Answer irq_info(std::span<const u8> payload) const;
  [[nodiscard]] Answer set_irqs(std::span<const u8> payload, const Files& files);
  [[nodiscard]] Answer region_read(std::span<const u8> payload);
  [[nodiscard]] Answer region_write(std::span<const u8> payload);
  [[nodiscard]] Answer reset_device();
  [[nodiscard]] Answer write_config(u32 offset, std::span<const u8> data, std::vector<u8> payload);
  [[nodiscard]] u64 bytes_of_region(u32 region) const;
  void allow_interrupts();
  void tear_down();
  void promote();
  [[nodiscard]] Session* find(service::SocketId id);
  void give_up_waiting();
  void count_now();
  void log(service::Priority priority, std::string text, const service::Peer& who) const;

  Device& device_;
  ServerOptions options_;
  Interrupts interrupts_;
  ConfigSpace config_;
  service::SocketLoop loop_;
  MessageDma dma_;
  DmaMaps maps_;
  std::array<u8, ConfigSpace::kTableBytes> table_{};  ///< MSI-X's, of clients that keep it here
  std::optional<Session> current_;
  std::deque<Session> waiting_;  ///< clients that came while there was another one, for a short time
  bool busy_ = false;            ///< the worker has the device, the maps and the interrupts
  service::Timer second_{loop_, [this] { give_up_waiting(); }};
  u64 next_id_ = 1;
  std::mutex files_mutex_;
  std::vector<service::SocketFile> files_;
  // Written by the loop's thread.
  std::atomic<u64> clients_{0}, messages_{0}, refused_{0}, malformed_{0}, turned_away_{0}, stray_{0},
      unexpected_{0}, unanswered_{0}, resets_{0};
  std::atomic<bool> connected_{false};
  std::atomic<u64> ranges_{0}, remote_{0}, mapped_files_{0}, vectors_{0}, lost_{0};
  std::thread thread_;
};

}  // namespace doorbell::vfio_user
