// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "rdma/roce/fault_log.hpp"

#include <doorbell/error.hpp>
#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include "system/clock.hpp"

namespace doorbell::roce {

FaultLog::FaultLog(const std::string& file) : begun_ns_(wall_ns()) {
  if (file.empty()) return;
  file_ = Descriptor(::open(file.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644));
  if (!on()) throw Error("fault log " + file, std::string("it cannot be written: ") + std::strerror(errno));
}

void FaultLog::line(const std::string& text) const {
  if (!on()) return;
  std::array<char, 32> time;
  const int n =
      std::snprintf(time.data(), time.size(), "%.6f s ", 1e-9 * static_cast<double>(wall_ns() - begun_ns_));
  // One call: lines of several writers do not mix.
  const std::string whole = std::string(time.data(), static_cast<std::size_t>(n)) + text + '\n';
  static_cast<void>(!::write(file_.get(), whole.data(), whole.size()));
}

}  // namespace doorbell::roce
