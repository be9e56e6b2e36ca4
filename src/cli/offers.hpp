// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Values that only this machine knows, for Option::offers. Sysfs and the folders of doorbell are read; no
// device is opened.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "cli/discover.hpp"

namespace doorbell::cli {

/// How names of a back end's devices begin: of "model[:KEY=VALUE,...]" they are "model" and "model:", of
/// "server:PATH" it is "server:*". None of a syntax in words.
[[nodiscard]] std::vector<std::string> syntax_words(std::string_view syntax);
template <class Backends>
[[nodiscard]] std::vector<std::string> backend_words(const Backends& backends) {
  std::vector<std::string> all;
  for (const auto& b : backends)
    if (b.syntax != "none")  // it has no devices
      for (std::string& word : syntax_words(b.syntax)) all.push_back(std::move(word));
  return all;
}

/// The devices of a path as `doorbell list` finds them.
[[nodiscard]] std::vector<FoundDevice> found_devices(std::string_view path);
/// For a device option of a path whose devices go by the names in `doorbell list`: its models, how other
/// names begin (`beginnings`), and the devices.
[[nodiscard]] std::vector<std::string> device_words(std::string_view path,
                                                    std::vector<std::string> beginnings);
/// Adds a name that the system gave, if it can be offered.
void add_found(std::vector<std::string>* words, const std::string& name);

/// "plans/NAME" of each plan that comes with doorbell.
[[nodiscard]] std::vector<std::string> plan_words();
/// The words that `doorbell reproduce` takes: "all", the sources of these plans, the plans with a source, a
/// file.
[[nodiscard]] std::vector<std::string> reproduce_words();

}  // namespace doorbell::cli
