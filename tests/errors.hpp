// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// What a test expects of an Error.
#pragma once

#include <doorbell/error.hpp>
#include <gtest/gtest.h>

#include <functional>
#include <string>

namespace doorbell::test {

/// What `call` was refused with and the hint that came with it; "no error" where there was none.
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
