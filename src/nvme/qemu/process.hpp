// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// A QEMU process that hosts one NVMe device and no machine around it.
#pragma once

#include <sys/types.h>

#include <string>

#include "nvme/backends.hpp"
#include "nvme/qemu/config.hpp"

namespace doorbell::nvme {

/// Whether the QEMU that would be started can host a remote device.
[[nodiscard]] BackendStatus qemu_status();

class QemuProcess {
 public:
  /// Starts it. Throws with ExitCode::absent when there is no QEMU that can do this.
  explicit QemuProcess(const QemuConfig& config, double start_limit_s = 30);
  ~QemuProcess();
  QemuProcess(const QemuProcess&) = delete;
  QemuProcess& operator=(const QemuProcess&) = delete;

  /// The socket to it; the caller owns it. Closing it ends the process.
  [[nodiscard]] int take_socket();
  /// The last line that it printed; empty when there is none.
  [[nodiscard]] std::string last_words() const;
  [[nodiscard]] pid_t pid() const { return pid_; }

 private:
  /// What the other constructor goes on from: when that throws, the destructor still runs.
  QemuProcess() = default;
  void end();

  pid_t pid_ = -1;
  int socket_ = -1;
  int output_ = -1;  ///< memfd with what it prints
};

}  // namespace doorbell::nvme
