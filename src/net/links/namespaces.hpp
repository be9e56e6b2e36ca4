// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Network namespaces: made without a name for one run, or kept under a name for many programs.
//
// A namespace without a name lives as long as something refers to it, and takes its interfaces along when it
// goes: a program that is killed leaves nothing behind, and no program meets another's.
#pragma once

#include <doorbell/config.hpp>

#include <functional>
#include <string>

#include "system/backend.hpp"
#include "system/descriptor.hpp"

namespace doorbell::net {

class Namespace {
 public:
  /// That of the calling thread.
  [[nodiscard]] static Namespace current();
  /// A new one, empty but for a loopback interface that is down. Throws Error without permission.
  [[nodiscard]] static Namespace create();
  /// The one that `ip netns` calls `name`. Throws Error when there is none.
  [[nodiscard]] static Namespace open(const std::string& name);

  /// Runs `f` inside and returns when it has; passes on what it throws. Unless the calling thread is inside
  /// already, `f` runs on a thread of its own, because a thread that has come back could leave things undone.
  void run(const std::function<void()>& f) const;
  [[nodiscard]] int fd() const { return fd_.get(); }
  [[nodiscard]] bool same(const Namespace& other) const { return id_ == other.id_; }
  /// Its inode, which no other namespace has while it lives.
  [[nodiscard]] u64 id() const { return id_; }
  /// How programs find it: "db_tx" for `ip netns exec`, or /proc/PID/fd/N for `nsenter --net=`; "" for that
  /// of the thread that asked for it.
  [[nodiscard]] const std::string& name() const { return name_; }

 private:
  Namespace(Descriptor fd, std::string name);
  Descriptor fd_;
  std::string name_;
  u64 id_ = 0;
};

/// Whether this process may make network namespaces and interfaces now, or could after
/// enter_user_namespace_if_needed(). Never throws, changes nothing.
[[nodiscard]] BackendStatus namespaces_status();

/// Without the capabilities that network namespaces need, gets them inside a new user namespace, in which the
/// process's user stays who it is. Call it before the process has a second thread: the kernel refuses later.
/// Nothing happens where the capabilities are there. Throws Error when it is refused.
void enter_user_namespace_if_needed();

/// Where named namespaces lie, as `ip netns` has it.
inline constexpr char kNamespaceFolder[] = "/run/netns";
[[nodiscard]] bool namespace_exists(const std::string& name);
/// Throws Error for a name that a namespace cannot have.
void check_namespace_name(const std::string& name);
/// Makes a namespace that stays. Throws Error: the name is taken or impossible, no permission.
void make_named_namespace(const std::string& name);
/// Takes the name away; the namespace itself goes when nothing uses it. False when there is no such name.
bool remove_named_namespace(const std::string& name);

}  // namespace doorbell::net
