// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Readings of a GPU's own counters, against a library that stands in for NVML.

#include "gpu/nvml.hpp"

#include <doorbell/error.hpp>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "errors.hpp"

namespace doorbell::gpu {
namespace {

constexpr const char* kPci = "0000:3b:00.0";

class NvmlReadings : public ::testing::Test {
 protected:
  void SetUp() override {
    log_ = std::filesystem::temp_directory_path() / ("doorbell-nvml-" + std::to_string(getpid()));
    std::filesystem::remove(log_);
    set("DOORBELL_LIBNVML", DOORBELL_FAKE_NVML);
    set("FAKE_NVML_PCI", kPci);
    set("FAKE_NVML_LOG", log_.c_str());
    unsetenv("FAKE_NVML_FAIL");
    info_.pci_address = kPci;
  }
  void TearDown() override {
    for (const char* name : {"DOORBELL_LIBNVML", "FAKE_NVML_PCI", "FAKE_NVML_LOG", "FAKE_NVML_FAIL"})
      unsetenv(name);
    std::filesystem::remove(log_);
  }
  static void set(const char* name, const char* value) { ASSERT_EQ(setenv(name, value, 1), 0); }
  [[nodiscard]] std::string calls() const {
    std::ifstream in(log_);
    std::stringstream text;
    text << in.rdbuf();
    return text.str();
  }

  std::filesystem::path log_;
  Info info_;
};

TEST_F(NvmlReadings, TheMeanIsThatOfTheWindow) {
  UtilisationMeter meter(info_);
  EXPECT_EQ(meter.why_not(), "");
  EXPECT_FALSE(meter.mean());
  constexpr u64 kMs = 1'000'000;
  meter.look(1000 * kMs);
  meter.look(1049 * kMs);  // too soon after the first
  meter.look(1050 * kMs);
  meter.look(1051 * kMs, /*last=*/true);
  const auto mean = meter.mean();
  ASSERT_TRUE(mean);
  EXPECT_EQ(mean->looks, 3u);
  // Readings go up by 10 and 1 each; which the first one is depends on what ran before in this process.
  const double first = mean->memory_percent - 1;
  EXPECT_DOUBLE_EQ(mean->sm_percent, 10 * mean->memory_percent);
  EXPECT_EQ(mean->memory_used_bytes, 600u);
  meter.begin();
  EXPECT_FALSE(meter.mean());
  meter.look(1052 * kMs);
  ASSERT_TRUE(meter.mean());
  EXPECT_EQ(meter.mean()->looks, 1u);
  EXPECT_DOUBLE_EQ(meter.mean()->memory_percent, first + 3);
}

TEST_F(NvmlReadings, TheLibraryIsClosedAgain) {
  { UtilisationMeter meter(info_); }
  EXPECT_EQ(calls(), "init\nby_pci\nshutdown\n");
}

TEST_F(NvmlReadings, WhatIsMissingIsSaid) {
  info_.pci_address = "0000:99:00.0";
  EXPECT_EQ(UtilisationMeter(info_).why_not(), "NVML: nvmlDeviceGetHandleByPciBusId: Not Found");
  EXPECT_EQ(calls(), "init\nshutdown\n");
  info_.pci_address = kPci;
  set("FAKE_NVML_FAIL", "init");
  EXPECT_EQ(UtilisationMeter(info_).why_not(), "NVML: nvmlInit: Not Supported");
  set("DOORBELL_LIBNVML", "/nowhere/libnvidia-ml.so.1");
  UtilisationMeter none(info_);
  test::expect_says(none.why_not(), "/nowhere/libnvidia-ml.so.1");
  none.look(1);
  EXPECT_FALSE(none.mean());
  info_.runtime = Runtime::hip;
  test::expect_says(UtilisationMeter(info_).why_not(), "not NVIDIA's");
}

TEST_F(NvmlReadings, ADriverThatStopsTellingEndsIt) {
  UtilisationMeter meter(info_);
  meter.look(1);
  set("FAKE_NVML_FAIL", "utilization");
  meter.look(2, true);
  meter.look(3, true);
  EXPECT_EQ(meter.why_not(), "NVML: nvmlDeviceGetUtilizationRates: Not Supported");
  ASSERT_TRUE(meter.mean());
  EXPECT_EQ(meter.mean()->looks, 1u);
}

}  // namespace
}  // namespace doorbell::gpu
