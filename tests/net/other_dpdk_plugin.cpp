// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// A plugin of another doorbell, as the program finds it when only one of the two has been replaced.

#include "net/dpdk/plugin.hpp"

namespace {

std::unique_ptr<doorbell::net::Stream> open(const doorbell::net::dpdk::OpenRequest&) {
  return nullptr;
}

}  // namespace

extern "C" __attribute__((visibility("default"))) const doorbell::net::dpdk::PluginTable*
doorbell_dpdk_plugin() {
  static const doorbell::net::dpdk::PluginTable table = {
      .abi = OTHER_ABI, .build_id = "another build", .dpdk_version = "DPDK 0", .open = open};
  return &table;
}
