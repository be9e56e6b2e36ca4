// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// From an option's text to its value: in range, or refused with a reason.

#include <cmath>
#include <stdexcept>
#include <string>
#include <variant>

#include "fuzz/fuzz.hpp"
#include "options/option.hpp"
#include "options/spec.hpp"

using namespace doorbell;
using namespace doorbell::options;
using fuzz::require;

namespace {

OptionTable table() {
  OptionTable t;
  t.add({.name = "flag", .kind = Kind::flag})
      .add({.name = "integer", .kind = Kind::integer, .min = 3, .max = u64{1} << 40})
      .add({.name = "any", .kind = Kind::integer})
      .add({.name = "size", .kind = Kind::size, .min = 512, .max = u64{1} << 50})
      .add({.name = "seconds", .kind = Kind::seconds, .min = 0, .max = 3600})
      .add({.name = "real", .kind = Kind::real, .min = -1, .max = 1})
      .add({.name = "choice", .kind = Kind::choice, .min = 0, .max = 1, .choices = {"on", "off", "sample=P"}})
      .add({.name = "list", .kind = Kind::list, .min = 0, .max = 1, .choices = {"drop", "delay"}})
      .add({.name = "text", .kind = Kind::text})
      .add({.name = "path", .kind = Kind::path});
  return t;
}

void check(const Option& o, const Value& v) {
  if (o.name == "integer") {
    const u64 n = std::get<u64>(v);
    require(n >= 3 && n <= u64{1} << 40);
  } else if (o.name == "size") {
    const u64 n = std::get<u64>(v);
    require(n >= 512 && n <= u64{1} << 50);
  } else if (o.name == "seconds") {
    require(std::get<double>(v) >= 0 && std::get<double>(v) <= 3600);
  } else if (o.name == "real") {
    require(std::abs(std::get<double>(v)) <= 1);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const u8* data, std::size_t size) {
  static const OptionTable options = table();
  const std::string text(reinterpret_cast<const char*>(data), size);
  for (const Option& o : options.all()) {
    try {
      check(o, convert(o, text));
    } catch (const std::invalid_argument& e) {
      require(e.what()[0] != '\0');
    }
  }
  try {
    (void)parse_spec("fuzz", options, "x:" + text);
  } catch (const std::runtime_error&) {
    // Refused with a reason.
  }
  return 0;
}
