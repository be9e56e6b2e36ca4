// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// The one exception type of set-up code. Hot paths return a status and never throw.
#pragma once

#include <stdexcept>
#include <string>
#include <utility>

namespace doorbell {

/// Process exit codes; the same on every subcommand.
enum class ExitCode : int {
  ok = 0,             ///< complete, and all data is right
  usage = 1,          ///< bad option, missing file, no permission, device busy
  data = 2,           ///< data, completion or timeout errors, or an impossible figure
  regression = 3,     ///< `compare` found one
  absent = 77,        ///< the hardware asked for is not here
  interrupted = 130,  ///< a signal ended the run; its partial result has no errors
};

/// An error: what failed, on what, why, and what to do about it.
///
/// `what()` is "WHAT: WHY" on one line; `hint()` may be empty. `code()` says which exit status the
/// command ends with when the error is not handled.
class Error : public std::runtime_error {
 public:
  /// `what` is the object, `why` the reason: one line each, without a full stop.
  Error(std::string what, const std::string& why, std::string hint = {}, ExitCode code = ExitCode::usage)
      : std::runtime_error(what + ": " + why),
        subject_(std::move(what)),
        hint_(std::move(hint)),
        code_(code) {}

  /// The first part of what(): the object alone.
  [[nodiscard]] const std::string& subject() const noexcept { return subject_; }
  /// How to mend it; may be empty.
  [[nodiscard]] const std::string& hint() const noexcept { return hint_; }
  /// ExitCode::absent where a device is not on this machine.
  [[nodiscard]] ExitCode code() const noexcept { return code_; }

 private:
  std::string subject_;
  std::string hint_;
  ExitCode code_;
};

}  // namespace doorbell
