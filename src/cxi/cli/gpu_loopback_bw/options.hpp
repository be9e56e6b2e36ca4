// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// The command line of `cxi_gpu_loopback_bw`: HPE's options as GNU getopt reads them, with HPE's error texts,
// and what doorbell adds to them. Additions never change what a documented command line means.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/command.hpp"

namespace doorbell::cli {

/// The name under which the program is this command.
inline constexpr const char* kLoopbackProgram = "cxi_gpu_loopback_bw";

/// What the command is: options, description, examples. Its texts come from here; it has no run().
[[nodiscard]] Command cxi_gpu_loopback_bw_command();

/// What a command line says.
struct LoopbackLine {
  enum class Action {
    run,
    help,
    version,
    refused,  ///< with `message`
    usage,    ///< getopt has printed why; the usage follows
  };
  Action action = Action::run;
  std::string message = {};  ///< without the program's name in front
  std::string hint = {};
  Options options;
};

/// Reads the options in their order up to the first that is refused, or that asks for a text. `words` begin
/// with the program's name. What getopt refuses itself it prints on standard error, like the original. Thread
/// rule: getopt's state is the process's.
[[nodiscard]] LoopbackLine parse_loopback(const OptionTable& table, const std::vector<std::string>& words);

/// The device that a run opens, and what there is to say about the choice.
struct LoopbackDevice {
  std::string spec;
  std::string note = {};  ///< empty when the name means itself
};
/// `environment` is DOORBELL_CXI, or null. Throws Error for a value that means nothing.
[[nodiscard]] LoopbackDevice loopback_device(const std::string& name, const char* environment);

}  // namespace doorbell::cli
