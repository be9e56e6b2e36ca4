// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// The interface between the program and doorbell_dpdk.so. The plugin links DPDK and the program does not,
// so that it runs on machines without.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "net/dpdk/plan.hpp"
#include "net/raw/frames.hpp"
#include "net/stream.hpp"

namespace doorbell::net::dpdk {

inline constexpr u32 kPluginAbi = 2;
inline constexpr const char* kPluginFile = "doorbell_dpdk.so";
inline constexpr const char* kPluginEntry = "doorbell_dpdk_plugin";

/// Memory that the program has allocated, because only it knows GPUs.
struct PluginMemory {
  std::shared_ptr<void> owner;
  u8* host = nullptr;    ///< null for GPU memory
  u8* device = nullptr;  ///< for a GPU; null when it cannot reach it
  u64 bytes = 0;
};

struct OpenRequest {
  const StreamRequest& stream;
  Link& link;
  const Plan& plan;
  /// One a flow.
  std::vector<raw::FlowAddress> flows;
  std::function<PluginMemory(Place place, u64 bytes)> allocate;
  /// Settings in messages, which only the program can name.
  std::string link_setting = {}, memory_setting = {};
};

/// The first two members stay what they are in every version.
struct PluginTable {
  u32 abi = kPluginAbi;
  /// Changes with the headers that both sides include, and with the compiler.
  const char* build_id = nullptr;
  const char* dpdk_version = nullptr;  ///< "DPDK 22.11.11"
  /// Throws Error.
  std::unique_ptr<Stream> (*open)(const OpenRequest& request) = nullptr;
};

using PluginEntry = const PluginTable*();

}  // namespace doorbell::net::dpdk
