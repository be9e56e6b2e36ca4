// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// A fake command for tests of plans.
#pragma once

#include <doorbell/error.hpp>

#include <string>
#include <vector>

#include "sweep/plan.hpp"

namespace doorbell::sweep {

inline Subject sample_subject() {
  using options::Kind;
  Subject s;
  s.name = "rdma";
  s.table.add({.name = "op", .kind = Kind::choice, .default_text = "write", .choices = {"write", "read"}})
      .add({.name = "provider", .kind = Kind::choice, .default_text = "bnxt", .choices = {"bnxt", "ionic"}})
      .add({.name = "size",
            .aliases = {"bytes"},
            .kind = Kind::size,
            .default_text = "4Ki",
            .min = 1,
            .max = u64{1} << 30})
      .add({.name = "iterations", .kind = Kind::integer, .default_text = "10", .min = 1, .max = 1000})
      .add({.name = "device", .kind = Kind::text, .default_text = "model"})
      .add({.name = "inline-data", .kind = Kind::flag})
      .add({.name = "json", .kind = Kind::path})
      .add({.name = "quiet", .kind = Kind::flag});
  const options::OptionTable table = s.table;
  s.parse = [table](const std::vector<std::string>& words) {
    options::Options o(table);
    for (const std::string& word : words) {
      const auto equals = word.find('=');
      o.set(word.substr(2, equals == std::string::npos ? equals : equals - 2),
            equals == std::string::npos ? "" : word.substr(equals + 1));
    }
    if (o.flag("inline-data") && o.bytes("size") > 4096)
      throw Error("--inline-data", "inline data has at most 4Ki bytes");
    return o;
  };
  return s;
}

}  // namespace doorbell::sweep
