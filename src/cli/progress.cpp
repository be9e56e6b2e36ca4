// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "cli/progress.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <cmath>

#include "cli/run_plan.hpp"
#include "cli/terminal.hpp"
#include "report/layout.hpp"

namespace doorbell::cli {
namespace {

constexpr auto kInterval = std::chrono::milliseconds(100);
constexpr std::size_t kBar = 20;

/// The terminal's width in columns; a longer line would wrap and could not be removed.
}  // namespace

void Pace::note(double now_s, double fraction, u64 operations) {
  const At now = {now_s, fraction, operations};
  const bool anew = !begun_ || fraction < last_.fraction || operations < last_.operations ||
                    std::isnan(fraction) != std::isnan(last_.fraction);
  if (!begun_ || operations < last_.operations) {
    rate_from_ = now;
    per_s_.reset();
  }
  if (anew) begin_ = now;
  begun_ = true;
  last_ = now;
  if (now_s - rate_from_.s < kRateS) return;
  if (operations > rate_from_.operations)
    per_s_ = static_cast<double>(operations - rate_from_.operations) / (now_s - rate_from_.s);
  else per_s_.reset();
  rate_from_ = now;
}

std::string Pace::text() const {
  std::string out;
  if (per_s_) {
    const report::Scale scale = report::scale_for(*per_s_);
    out = fmt::format("{}{}{} ops/s", report::digits(*per_s_ / scale.unit), *scale.prefix == 0 ? "" : " ",
                      scale.prefix);
  }
  const double spent = last_.s - begin_.s, done = last_.fraction - begin_.fraction;
  if (spent < kEstimateS || !(done >= kLeastShare) || last_.fraction > 1) return out;
  const double left = spent / done * (1 - last_.fraction);
  if (!out.empty()) out += ", ";
  return out + rough_time(left) + " left";
}

void Progress::update(double fraction, std::string_view text, u64 operations) {
  if (!enabled_) return;
  const auto now = std::chrono::steady_clock::now();
  pace_.note(std::chrono::duration<double>(now.time_since_epoch()).count(), fraction, operations);
  if (now < next_) return;
  next_ = now + kInterval;
  std::string line;
  if (fraction >= 0 && fraction <= 1) {
    const auto full = static_cast<std::size_t>(fraction * kBar);
    line = fmt::format("[{}{}] {:3.0f} %  ", std::string(full, '#'), std::string(kBar - full, '.'),
                       fraction * 100);
  }
  if (const std::string pace = pace_.text(); !pace.empty()) line += pace + "  ";
  line += report::printable(text);
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
