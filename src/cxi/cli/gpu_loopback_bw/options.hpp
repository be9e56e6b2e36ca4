// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// The command line of `cxi_gpu_loopback_bw`: HPE's options as GNU getopt reads them, with HPE's error texts,
// and doorbell's additions. Additions never change what a documented command line means.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/command.hpp"

namespace doorbell::cli {

/// The program name under which doorbell runs this command.
inline constexpr const char* kLoopbackProgram = "cxi_gpu_loopback_bw";
/// The option that names the device, in messages.
inline constexpr const char* kDeviceOption = "--device";

/// Options, description and examples of the command, for its texts; the command has no run().
[[nodiscard]] Command cxi_gpu_loopback_bw_command();

/// The parsed command line.
struct LoopbackLine {
  enum class Action {
    run,
    help,
    version,
    refused,  ///< `message` gives the reason
    usage,    ///< getopt has printed the reason; the usage follows
  };
  Action action = Action::run;
  std::string message = {};  ///< without the program's name in front
  std::string hint = {};
  Options options;
};

/// Reads the options in their order, up to the first that is refused or that asks for a text. `words` begin
/// with the program's name. getopt prints its own errors on standard error, as in the original tool. Thread
/// rule: getopt's state belongs to the process.
[[nodiscard]] LoopbackLine parse_loopback(const OptionTable& table, const std::vector<std::string>& words);

/// The device that a run opens, and a remark on the choice.
struct LoopbackDevice {
  std::string spec;
  std::string note = {};  ///< empty if the name stands for itself
};
/// `environment` is the value of DOORBELL_CXI, or null. Throws Error for an invalid value.
[[nodiscard]] LoopbackDevice loopback_device(const std::string& name, const char* environment);

}  // namespace doorbell::cli
