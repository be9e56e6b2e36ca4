// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// What a path says of itself. Whatever lists, shows or tries paths is made from these records, and no file
// outside a path's folder names one: src/cli/paths.cpp takes them from the list in CMakeLists.txt.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "cli/bench_outcome.hpp"
#include "cli/command.hpp"
#include "cli/discover.hpp"
#include "cli/doctor_checks.hpp"
#include "model/fault.hpp"
#include "system/backend.hpp"

namespace doorbell::cli {

/// A back end and whether this machine can use it.
struct BackendState {
  std::string name;
  BackendStatus status;
};

/// A software device.
struct PathModel {
  std::string name;  ///< as the command's option for a device takes it
  std::string summary;
};

/// A step of `doorbell demo`: one bench, whose cells are shown.
struct DemoStep {
  std::string title;
  Bench run;
};

/// One kind of fault: what the model did, and what the initiator found.
struct FaultCheck {
  u64 injected = 0;
  u64 found = 0;
  std::string found_as;
};

/// A program of a name of its own, as which the same binary runs when it is called so.
struct Program {
  Command texts;  ///< name, options, description, examples; it has no run()
  int (*run)(Context& context) = nullptr;
};

struct PathDescription {
  std::string title;  ///< in sentences: "NVMe"
  std::string work;   ///< what its initiators post: "NVMe commands"
  /// The command that measures it, which bears the path's name.
  Command command;
  /// Other commands for its devices.
  std::vector<Command> tools = {};
  std::vector<Program> programs = {};
  /// In the order of `doorbell backends`. Never throws.
  std::vector<BackendState> (*backends)() = nullptr;
  std::vector<PathModel> models = {};
  /// What the devices are called in `doorbell list`: "NVMe controllers".
  std::string devices_title;
  /// This machine's, or those of a made-up one with another root. Never throws.
  std::vector<FoundDevice> (*devices)(const std::filesystem::path& root) = nullptr;
  /// What `doorbell doctor` looks at because of this path. Paths may share checks.
  std::vector<Check (*)(const Machine&)> checks = {};
  /// The path's main jobs on its model; `gpu`: one that can run kernels is here.
  std::vector<DemoStep> (*demo_steps)(bool gpu) = nullptr;
  /// Injects one kind of fault into the model.
  FaultCheck (*check_fault)(model::Fault fault, const measure::RunWatch& watch) = nullptr;

  [[nodiscard]] const std::string& name() const { return command.name; }
};

/// Every path, in the order in which they are shown.
[[nodiscard]] const std::vector<PathDescription>& paths();

/// For PathDescription::backends: what a path's table of back ends says of this machine.
template <class Backends>
[[nodiscard]] std::vector<BackendState> states_of(const Backends& backends) {
  std::vector<BackendState> states;
  for (const auto& backend : backends) states.push_back({backend.name, backend.status()});
  return states;
}

}  // namespace doorbell::cli
