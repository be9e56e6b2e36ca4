// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// The main of tests that need QEMU: skipped where there is none that can host a device.

#include <gtest/gtest.h>

#include <cstdio>

#include "nvme/backends.hpp"
#include "nvme/qemu/process.hpp"

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  const doorbell::BackendStatus status = doorbell::nvme::qemu_status();
  if (!status.usable) {
    std::printf("skipped: %s\n", status.detail.c_str());
    return 77;
  }
  return RUN_ALL_TESTS();
}
