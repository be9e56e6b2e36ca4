// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// A test's expectations of an Error.
#pragma once

#include <doorbell/error.hpp>
#include <gtest/gtest.h>

#include <functional>
#include <string>

namespace doorbell::test {

/// The message and the hint with which `call` was refused; "no error" where it was not.
inline std::string error_of(const std::function<void()>& call, ExitCode code = ExitCode::usage) {
  try {
    call();
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), code) << e.what();
    return std::string(e.what()) + " / " + e.hint();
  }
  return "no error";
}

inline void expect_says(const std::string& said, const std::string& part) {
  EXPECT_NE(said.find(part), std::string::npos) << "'" << said << "' does not say '" << part << "'";
}

}  // namespace doorbell::test
