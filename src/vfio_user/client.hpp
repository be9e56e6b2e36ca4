// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// The driver's end of vfio-user: a PCI device that another process serves at a socket.
#pragma once

#include <condition_variable>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "vfio_user/endpoint.hpp"

namespace doorbell::vfio_user {

/// Memory that the device reaches by messages.
class DmaTarget {
 public:
  virtual ~DmaTarget() = default;
  /// The place of [address, address + count), if all of it may be accessed so; else null. The client's thread
  /// calls it, and is done with the place before another call of the client's returns that takes it away.
  [[nodiscard]] virtual u8* dma(u64 address, u64 count, bool write) = 0;
};

/// A region as its server describes it.
struct RemoteRegion {
  RegionInfo info;
  std::vector<Area> areas;  ///< that may be mapped
  Descriptor file;          ///< to be mapped; without one there are no areas
};

/// Thread rule: any thread. A server that does not answer in time, or that answers something else, counts as
/// gone: each call then ends with ENODEV.
class Client {
 public:
  /// Connects and agrees on a version. `target`: may be null; then the device reaches only what is mapped
  /// with a descriptor. Throws Error that begins with `subject`; with ExitCode::absent where nothing listens.
  Client(const std::string& path, const std::string& subject, double timeout_s, DmaTarget* target = nullptr);
  ~Client();
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  /// The server's version and capabilities.
  [[nodiscard]] const Version& version() const { return version_; }
  [[nodiscard]] bool gone() const;
  [[nodiscard]] u64 messages() const;

  // 0, or an errno: the server's, or ENODEV.

  [[nodiscard]] int info(DeviceInfo& out);
  [[nodiscard]] int region(u32 index, RemoteRegion& out);
  [[nodiscard]] int irq(u32 index, IrqInfo& out);
  [[nodiscard]] int set_irqs(const IrqSet& set, std::span<const int> files = {});
  /// `file` -1: the device reaches it by messages.
  [[nodiscard]] int map(const DmaMap& what, int file);
  [[nodiscard]] int unmap(u64 address, u64 bytes);
  [[nodiscard]] int read(u32 region, u64 offset, std::span<u8> to);
  [[nodiscard]] int write(u32 region, u64 offset, std::span<const u8> from);
  /// Does not wait, and is not answered.
  void post_write(u32 region, u64 offset, std::span<const u8> from);
  [[nodiscard]] int reset();
  /// Any command, for what there is no call for. `answer`: its payload, and the descriptors that came with
  /// it.
  [[nodiscard]] int call(Command c, std::span<const u8> payload, std::span<const u8> data,
                         std::span<const int> files, Incoming& answer);

 private:
  struct Waiting {
    u16 id = 0;
    Command command = Command::version;
    bool done = false;
    Incoming answer = {};
  };
  void receive_all();
  void serve_dma(const Incoming& command);
  void lose(const std::string& why);

  u64 timeout_ns_;
  DmaTarget* target_;
  std::unique_ptr<Endpoint> endpoint_;
  Version version_;
  mutable std::mutex mutex_;
  std::condition_variable answered_;
  std::deque<Waiting*> waiting_;  ///< in the order of their commands, which is that of the answers
  std::mutex ordering_;           ///< a command is sent in the order in which it waits
  u16 next_id_ = 0;
  u64 messages_ = 0;
  bool gone_ = false;
  std::string why_;
  std::thread thread_;
};

}  // namespace doorbell::vfio_user
