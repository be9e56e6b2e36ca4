// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// The devices of this process, and the contexts that are open.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_set>
#include <vector>

#include "rdma/dropin/objects.hpp"
#include "rdma/dropin/settings.hpp"

namespace doorbell::dropin {

/// One a process, made at the first call and never destroyed: threads may be in it when the program exits.
class Devices {
 public:
  static Devices& get();
  /// Whether get() has been called.
  [[nodiscard]] static bool made();

  /// Empty where a setting is wrong, which has been said.
  [[nodiscard]] std::vector<std::unique_ptr<Device>>& list() { return list_; }
  [[nodiscard]] const Settings& settings() const { return settings_; }

  /// nullptr with errno.
  ibv_context* open(Device& device);
  void close(Context& context);
  /// A context of the same device as the one whose command descriptor, or a copy of it, is `descriptor`.
  ibv_context* import(int descriptor);
  [[nodiscard]] Mr* region(Context& context, u32 handle);
  [[nodiscard]] Pd* domain(Context& context, u32 handle);
  [[nodiscard]] Dm* memory(Context& context, u32 handle);
  /// Held while a domain of XRC is looked for and made.
  [[nodiscard]] std::unique_lock<std::mutex> locked() { return std::unique_lock(mutex_); }
  /// With locked(): the device's domain of a file; nullptr for none.
  [[nodiscard]] std::shared_ptr<XrcDomain> xrc_domain(Context& context, u64 device, u64 inode);
  /// Does `work` with a handle of the device's queue pair of this number, if it is a responder of XRC; nobody
  /// ends it meanwhile.
  void with_xrc_responder(Context& context, u32 number, const std::function<void(Qp&)>& work);

  /// When the program ends: what peers still wait for leaves.
  void at_exit();

  // Around fork().
  void before_fork();
  void after_fork_in_parent();
  void after_fork_in_child();

 private:
  Devices();
  ibv_context* open_locked(Device& device);
  /// The object of the same device with this handle, whatever context made it; nullptr for none.
  template <class Object>
  Object* find(Context& context, std::unordered_set<Object*> Context::*objects, u32 handle);

  std::mutex mutex_;
  Settings settings_;
  std::vector<std::unique_ptr<Device>> list_;
  /// By device. One stays until the program ends: a device that is opened again has the address that it had.
  std::vector<std::shared_ptr<Adapter>> adapters_;
  std::unordered_set<Context*> contexts_;
};

}  // namespace doorbell::dropin
