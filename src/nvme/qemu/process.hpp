// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// A QEMU process that hosts one NVMe device and no machine around it.
#pragma once

#include <optional>
#include <string>

#include "nvme/backends.hpp"
#include "nvme/qemu/config.hpp"
#include "system/child.hpp"
#include "system/file_lock.hpp"

namespace doorbell::nvme {

/// Whether the QEMU that would be started can host a remote device.
[[nodiscard]] BackendStatus qemu_status();

class QemuProcess {
 public:
  /// Starts it. Throws with ExitCode::absent when there is no QEMU that can do this.
  explicit QemuProcess(const QemuConfig& config, double start_limit_s = 30);

  /// The socket to it; the caller owns it. Closing it ends the process.
  [[nodiscard]] int take_socket();
  /// Returns after a round of its main loop that begins after the call: what earlier messages have scheduled
  /// has been run then. Gives up after `limit_s`, and at once when QEMU has ended. One thread at a time.
  void await_round(double limit_s) const;
  /// The last line that it wrote to standard error, or the signal that ended it; empty when there is neither.
  [[nodiscard]] std::string last_words();
  /// Throws that it ended unasked, with its last words.
  [[noreturn]] void refuse_ended(const std::string& subject);
  [[nodiscard]] pid_t pid() const { return child_->pid(); }

 private:
  Descriptor claim_;  ///< of a drive: a block device cannot be mounted while QEMU has it,
  FileLock lock_;     ///< and a file is locked
  std::optional<Child> child_;
  Descriptor monitor_;
  Descriptor socket_;  // closed first: that is what QEMU ends by
};

}  // namespace doorbell::nvme
