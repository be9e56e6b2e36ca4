// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// A table of options as a command has one, and what its parser says to some words.
#pragma once

#include <doorbell/error.hpp>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "cli/option.hpp"
#include "cli/parse.hpp"

namespace doorbell::cli {

inline OptionTable sample_table() {
  OptionTable table;
  table
      .add({.name = "batch-size",
            .letter = 'b',
            .kind = Kind::integer,
            .default_text = "1",
            .min = 1,
            .max = 1024,
            .help = "batch",
            .group = "Work"})
      .add({.name = "count",
            .aliases = {"number", "how-many"},
            .kind = Kind::integer,
            .help = "count",
            .group = "Work"})
      .add({.name = "at-least", .kind = Kind::integer, .min = 5, .help = "min", .group = "Work"})
      .add({.name = "block",
            .kind = Kind::size,
            .default_text = "4Ki",
            .min = 512,
            .max = u64{1} << 20,
            .help = "block",
            .group = "Work"})
      .add({.name = "any-size", .kind = Kind::size, .help = "size", .group = "Work"})
      .add({.name = "pause", .kind = Kind::real, .max = 2.5, .help = "pause", .group = "Work", .unit = "ns"})
      .add({.name = "pattern",
            .kind = Kind::choice,
            .default_text = "sequential",
            .choices = {"sequential", "random"},
            .help = "order",
            .group = "Work"})
      .add({.name = "controller",
            .letter = 'c',
            .default_text = "model",
            .help = "who answers",
            .group = "Work"})
      .add({.name = "infinite", .letter = 'i', .kind = Kind::flag, .help = "go on", .group = "Work"});
  add_common_options(table);
  return table;
}

using Words = std::vector<std::string>;

inline Options parsed(const Words& words) {
  return parse("doorbell nvme", sample_table(), words);
}

/// The message that `words` are refused with; empty when they are accepted.
inline std::string refusal(const Words& words, const OptionTable& table = sample_table()) {
  try {
    static_cast<void>(parse("doorbell nvme", table, words));
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ExitCode::usage);
    EXPECT_NE(e.hint(), "");
    return e.what();
  }
  return {};
}

}  // namespace doorbell::cli
