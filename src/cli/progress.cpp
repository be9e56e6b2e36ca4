// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "cli/progress.hpp"

#include <fmt/format.h>
#include <string>
#include <sys/ioctl.h>
#include <unistd.h>

namespace doorbell::cli {
namespace {

constexpr auto kInterval = std::chrono::milliseconds(100);
constexpr std::size_t kBar = 20;

/// The terminal's width in columns; a longer line would wrap and could not be removed.
std::size_t columns_of(std::FILE* out) {
  winsize size = {};
  if (ioctl(fileno(out), TIOCGWINSZ, &size) == 0 && size.ws_col > 0) return size.ws_col;
  return 80;
}

}  // namespace

void Progress::update(double fraction, std::string_view text) {
  if (!enabled_) return;
  const auto now = std::chrono::steady_clock::now();
  if (now < next_) return;
  next_ = now + kInterval;
  std::string line;
  if (fraction >= 0 && fraction <= 1) {
    const auto full = static_cast<std::size_t>(fraction * kBar);
    line = fmt::format("[{}{}] {:3.0f} %  ", std::string(full, '#'), std::string(kBar - full, '.'),
                       fraction * 100);
  }
  line += text;
  const std::size_t width = columns_of(out_) - 1;
  if (line.size() > width) line.resize(width);
  fmt::print(out_, "\r\x1b[K{}", line);
  std::fflush(out_);
  drawn_ = true;
}

void Progress::clear() {
  if (!drawn_) return;
  std::fputs("\r\x1b[K", out_);
  std::fflush(out_);
  drawn_ = false;
}

}  // namespace doorbell::cli
