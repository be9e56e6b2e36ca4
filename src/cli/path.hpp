// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// A path's description of itself. Everything that lists, shows or tries paths is made from these records. No
// file outside a path's folder names a path: src/cli/paths.cpp takes the names from the list in
// CMakeLists.txt.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "cli/command.hpp"
#include "cli/discover.hpp"
#include "cli/doctor_checks.hpp"
#include "cli/run_bench.hpp"
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
  std::string name;  ///< the value for the command's device option
  std::string summary;
};

/// A step of `doorbell demo`: one bench, whose cells are printed.
struct DemoStep {
  std::string title;
  Bench run;
};
/// The deadlines of demo steps: an operation that waits for a busy machine is no error of the path.
inline constexpr double kDemoTimeoutS = 60, kDemoLateAfterS = 50;

/// One kind of fault: what the model injected, and what the initiator found.
struct FaultCheck {
  u64 injected = 0;
  u64 found = 0;
  std::string found_as;
};

/// A program with a name of its own, whose manual page and completion are made with the others.
struct Program {
  Command texts;  ///< name, options, description, examples; it has no run()
  /// The same binary, if it is called by that name; null: the program is another binary.
  int (*run)(Context& context) = nullptr;
};

struct PathDescription {
  std::string title;  ///< the name in sentences: "NVMe"
  std::string work;   ///< what the path's initiators post: "NVMe commands"
  /// The command that measures this path; it has the path's name.
  Command command;
  /// Other commands for the path's devices.
  std::vector<Command> tools = {};
  std::vector<Program> programs = {};
  /// The back ends, in the order of `doorbell backends`. Never throws.
  std::vector<BackendState> (*backends)() = nullptr;
  std::vector<PathModel> models = {};
  /// The heading of the devices in `doorbell list`: "NVMe controllers".
  std::string devices_title;
  /// The devices of this machine; with another root, those of a simulated one. Never throws.
  std::vector<FoundDevice> (*devices)(const std::filesystem::path& root) = nullptr;
  /// The checks of `doorbell doctor` for this path. Paths may share checks.
  std::vector<Check (*)(const Machine&)> checks = {};
  /// The path's main jobs on its model; `gpu`: this machine has a GPU that can run kernels.
  std::vector<DemoStep> (*demo_steps)(bool gpu) = nullptr;
  /// Injects one kind of fault into the model. Deadlines and delays are `times` as long as on a quiet
  /// machine.
  FaultCheck (*check_fault)(model::Fault fault, double times, const measure::RunWatch& watch) = nullptr;

  [[nodiscard]] const std::string& name() const { return command.name; }
};

/// Every path, in the order of their display.
[[nodiscard]] const std::vector<PathDescription>& paths();

/// The commands whose outcome is a Result: each path's, and those of its tools that make one too.
[[nodiscard]] std::vector<const Command*> measuring_commands();

/// For PathDescription::backends: the rows of a path's table of back ends, with their state on this machine.
template <class Backends>
[[nodiscard]] std::vector<BackendState> states_of(const Backends& backends) {
  std::vector<BackendState> states;
  for (const auto& backend : backends) states.push_back({backend.name, backend.status()});
  return states;
}

}  // namespace doorbell::cli
