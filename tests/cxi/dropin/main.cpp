// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// The program of tests on libcxi.so.1. With DOORBELL_TEST_CXI_SERVED its Cassini is a server's, to which the
// library connects as from another process; else it is the library's own.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <memory>

#include "cxi/dropin/server.hpp"

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  const bool listing = testing::GTEST_FLAG(list_tests);
  if (std::getenv("DOORBELL_TEST_CXI_SERVED") == nullptr || listing) return RUN_ALL_TESTS();
  const std::string path =
      (std::filesystem::temp_directory_path() / ("cxi-served-" + std::to_string(::getpid()))).string();
  doorbell::cxi::ModelConfig config;
  config.rests = true;
  doorbell::cxi::dropin::Server server(config, path);
  ::setenv(doorbell::cxi::dropin::kServerVariable, path.c_str(), 1);
  return RUN_ALL_TESTS();
}
