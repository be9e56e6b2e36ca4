// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// An open verbs device, which its memory regions and queue pairs keep open.
#pragma once

#include <thread>

#include "rdma/verbs/library.hpp"
#include "rdma/verbs/nic.hpp"
#include "system/descriptor.hpp"

namespace doorbell::rdma {

/// Throws an Error of the form "it cannot ...: Invalid argument".
[[noreturn]] void verbs_failed(const std::string& what, int error, const std::string& hint = {});

class VerbsContext {
 public:
  explicit VerbsContext(const VerbsConfig& config);
  ~VerbsContext();
  VerbsContext(const VerbsContext&) = delete;
  VerbsContext& operator=(const VerbsContext&) = delete;

  VerbsLibrary verbs;
  ibv_context* context = nullptr;
  ibv_pd* pd = nullptr;
  RdmaDeviceFacts facts;
  std::filesystem::path sysfs;
  ibv_device_attr attributes = {};
  u32 port = 1;
  ibv_port_attr port_attributes = {};
  ibv_gid_entry gid = {};

  [[nodiscard]] u32 active_mtu() const { return 128u << port_attributes.active_mtu; }
  [[nodiscard]] bool ethernet() const { return port_attributes.link_layer == IBV_LINK_LAYER_ETHERNET; }

 private:
  void open(const VerbsConfig& config);
  void choose_port(const VerbsConfig& config);
  void choose_gid(const VerbsConfig& config);
  [[nodiscard]] ibv_port_attr query_port(u32 number) const;
  void close() noexcept;
};

/// Reads the asynchronous events of a device: queue pairs cannot be destroyed before their events are read.
class VerbsEvents {
 public:
  explicit VerbsEvents(std::shared_ptr<const VerbsContext> context);
  ~VerbsEvents();
  VerbsEvents(const VerbsEvents&) = delete;
  VerbsEvents& operator=(const VerbsEvents&) = delete;

  [[nodiscard]] const u32* alive() const { return &alive_; }
  [[nodiscard]] nlohmann::ordered_json counts() const;

 private:
  static constexpr u32 kKinds = 32;
  void run();
  void drain();

  std::shared_ptr<const VerbsContext> context_;
  u32 alive_ = 1;
  u32 counts_[kKinds] = {};
  Descriptor wake_;
  std::thread thread_;
};

}  // namespace doorbell::rdma
