// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Reads what dpdk-testpmd prints. Numbers that are compared with ours must not come from a text that has only
// changed its form, so everything that is not as expected is an Error.

#include <doorbell/error.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <sstream>

#include "net/dpdk/testpmd.hpp"

namespace doorbell::net::dpdk {

namespace {

constexpr std::string_view kDisplay = "NIC statistics for port ";
constexpr std::string_view kTotals = "+ Accumulated forward statistics for all ports+";

[[noreturn]] void not_understood(const std::string& why) {
  throw Error("dpdk-testpmd", "what it printed is not understood: " + why,
              "doorbell reads the statistics of DPDK 22.11", ExitCode::data);
}

/// Words of a text, one after the other.
class Words {
 public:
  explicit Words(std::string_view text) : in_(std::string(text)) {}

  /// The next word must be `name`.
  void skip(std::string_view name) {
    if (const std::string word = next(); word != name)
      not_understood(fmt::format("'{}' stands where '{}' belongs", word, name));
  }
  /// A name and its number.
  u64 number(std::string_view name) {
    skip(name);
    const std::string word = next();
    u64 n = 0;
    const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), n);
    if (error != std::errc() || end != word.data() + word.size())
      not_understood(fmt::format("{} '{}' is no number", name, word));
    return n;
  }
  void rule(char of) {
    const std::string word = next();
    if (word.empty() || !std::ranges::all_of(word, [of](char c) { return c == of; }))
      not_understood(fmt::format("'{}' stands where the statistics end", word));
  }

 private:
  std::string next() {
    std::string word;
    in_ >> word;
    return word;
  }
  std::istringstream in_;
};

}  // namespace

std::vector<TestpmdDisplay> testpmd_displays(std::string_view printed) {
  std::vector<TestpmdDisplay> all;
  for (std::size_t at = printed.find(kDisplay); at != std::string_view::npos;) {
    const std::size_t begin = at + kDisplay.size();
    at = printed.find(kDisplay, begin);
    // Its end is a line of the same characters that are around its title.
    const std::size_t title_end = printed.find('\n', begin);
    const std::size_t rule =
        title_end == std::string_view::npos ? title_end : printed.find("####", title_end);
    const std::size_t end = rule == std::string_view::npos ? rule : printed.find('\n', rule);
    if (end == std::string_view::npos || end > at) {
      // The last one may not have been printed to its end yet.
      if (at == std::string_view::npos) break;
      not_understood("a display of statistics has no end");
    }
    Words w(printed.substr(begin, end - begin));
    w.skip("0");
    w.rule('#');
    TestpmdDisplay d;
    d.rx_packets = w.number("RX-packets:");
    d.rx_missed = w.number("RX-missed:");
    w.number("RX-bytes:");
    d.rx_errors = w.number("RX-errors:");
    d.rx_no_buffer = w.number("RX-nombuf:");
    d.tx_packets = w.number("TX-packets:");
    d.tx_errors = w.number("TX-errors:");
    w.number("TX-bytes:");
    for (const char* const word : {"Throughput", "(since", "last", "show)"}) w.skip(word);
    d.rx_per_s = w.number("Rx-pps:");
    w.number("Rx-bps:");
    d.tx_per_s = w.number("Tx-pps:");
    w.number("Tx-bps:");
    w.rule('#');
    all.push_back(d);
  }
  return all;
}

TestpmdTotals testpmd_totals(std::string_view printed) {
  const std::size_t at = printed.find(kTotals);
  if (at == std::string_view::npos) not_understood("it has no accumulated statistics");
  if (printed.find(kTotals, at + 1) != std::string_view::npos)
    not_understood("it has two accumulated statistics");
  const std::size_t line = printed.find('\n', at);
  if (line == std::string_view::npos) not_understood("its accumulated statistics are empty");
  Words w(printed.substr(line));
  TestpmdTotals t;
  t.rx_packets = w.number("RX-packets:");
  t.rx_dropped = w.number("RX-dropped:");
  const u64 rx_total = w.number("RX-total:");
  t.tx_packets = w.number("TX-packets:");
  t.tx_refused = w.number("TX-dropped:");
  const u64 tx_total = w.number("TX-total:");
  w.rule('+');
  if (rx_total != t.rx_packets + t.rx_dropped || tx_total != t.tx_packets + t.tx_refused)
    not_understood("its totals are not the sums of their parts");
  return t;
}

}  // namespace doorbell::net::dpdk
