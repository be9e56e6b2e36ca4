// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// The kernel's driver (/dev/slash_qdma_ctlN), by ioctl() and io_uring commands.
#pragma once

#include <memory>
#include <string>

#include "qdma/driver.hpp"

namespace doorbell::qdma {

/// The system calls below a KernelDriver; tests put a layer of their own there.
struct SystemCalls {
  void* context = nullptr;
  /// A descriptor, or -1 with errno.
  int (*open)(void* context, const char* path) = nullptr;
  /// As ioctl(), which returns an int.
  int (*ioctl)(void* context, int fd, unsigned long number, void* structure) = nullptr;
  void (*close)(void* context, int fd) = nullptr;
  u64 (*now_ns)(void* context) = nullptr;
  /// The descriptors are the kernel's files: io_uring commands may reach them.
  bool kernel_files = false;
};
[[nodiscard]] const SystemCalls& real_system_calls();

class KernelDriver : public Driver {
 public:
  /// Opens the node. Throws Error.
  explicit KernelDriver(const std::string& node, const SystemCalls& system = real_system_calls());
  ~KernelDriver() override;

  [[nodiscard]] std::string kind() const override { return "hardware"; }
  [[nodiscard]] std::string name() const override { return "kernel:" + node_; }
  using Driver::call;
  /// One result for a whole transfer. The structure is passed in its full size, whatever the caller's.
  [[nodiscard]] CallResult call(int fd, u32 number, std::span<u8> structure,
                                const CallOptions& options) override;
  [[nodiscard]] bool descriptors_are_sockets() const override { return false; }
  [[nodiscard]] bool keeps_deadlines() const override { return false; }
  [[nodiscard]] std::unique_ptr<CallEngine> uring_engine(int fd) override;
  void close(int fd) override { system_.close(system_.context, fd); }

 private:
  [[nodiscard]] i64 issue(int fd, u32 number, std::span<u8> structure);

  std::string node_;
  SystemCalls system_;
  int fd_ = -1;
};

/// The driver gives up a blocking transfer after this long, and calls it EIO.
inline constexpr u64 kKernelTransferLimitNs = 10'000'000'000;
/// A transfer's result, as the library reports it: what the driver calls EIO after its limit is ETIMEDOUT.
[[nodiscard]] i64 kernel_transfer_result(i64 result, u64 took_ns);

/// io_uring commands on a transfer descriptor of the kernel's driver; null if the kernel has none, or none
/// for this file.
[[nodiscard]] std::unique_ptr<CallEngine> uring_commands(int fd);

/// The nodes of this machine.
[[nodiscard]] std::vector<std::string> kernel_nodes(const std::string& folder = "/dev");

}  // namespace doorbell::qdma
