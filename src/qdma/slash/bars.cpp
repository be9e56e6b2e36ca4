// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "qdma/slash/bars.hpp"

#include <doorbell/error.hpp>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>

#include <cerrno>

#include "system/sealed_memory.hpp"
#include "system/sysfs.hpp"

namespace doorbell::qdma::slash {

Bars::Bars() {
  for (u32 bar = 0; bar < kCount; ++bar) {
    if (kBytes[bar] == 0) continue;
    Descriptor file = sealed_memory(fmt::format("slash_bar{}", bar).c_str(), kBytes[bar]);
    if (file.get() < 0)
      throw Error("software card", fmt::format("memory for BAR {}: {}", bar, reason(errno)));
    files_[bar] = std::move(file);
  }
}

Descriptor Bars::open(u32 bar, int& error) const {
  error = EINVAL;
  if (bytes(bar) == 0) return {};
  Descriptor file(::open(fmt::format("/proc/self/fd/{}", files_[bar].get()).c_str(), O_RDWR | O_CLOEXEC));
  error = file.get() < 0 ? errno : 0;
  return file;
}

}  // namespace doorbell::qdma::slash
