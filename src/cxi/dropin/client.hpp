// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// One process's objects on a Nic, and its requests.
#pragma once

#include <map>
#include <memory>
#include <span>
#include <vector>

#include "cxi/dropin/objects.hpp"

namespace doorbell::cxi::dropin {

/// Objects that are left at the end are destroyed, the newest first.
class Client {
 public:
  /// `foreign`: another process, whose requests name memory by files, and whose queues are not trusted.
  Client(Nic& nic, bool foreign) : nic_(nic), foreign_(foreign) {}
  ~Client();
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  /// `files`: what came with the request; those that an object needs are taken.
  [[nodiscard]] Reply answer(const Request& request, std::span<Descriptor> files) noexcept;
  [[nodiscard]] std::size_t objects() const { return objects_.size(); }

 private:
  /// A request that is being carried out.
  struct Asked {
    const Request& request;
    std::span<Descriptor> files;
    Reply reply;
    [[nodiscard]] u64 operator[](u32 i) const { return request.argument[i]; }
  };
  void perform(Asked& a);
  void get_service(Asked& a);
  void alloc_lni(Asked& a);
  void alloc_profile(Asked& a);
  void change_profile(Asked& a);
  void reserve_pids(Asked& a);
  void alloc_domain(Asked& a);
  void map(Asked& a);
  void alloc_wait_object(Asked& a);
  void alloc_event_queue(Asked& a);
  void resize_event_queue(Asked& a);
  void reserve_events(Asked& a);
  void alloc_command_queue(Asked& a);
  void alloc_counter(Asked& a);
  void move_writeback(Asked& a);
  void alloc_portals_entry(Asked& a);
  void map_portals_entry(Asked& a);
  void entry_status(Asked& a);
  void destroy(Asked& a);

  [[nodiscard]] Pieces memory(const Asked& a, u32 which, u64 at_least) const;
  /// The object of a handle. Throws CallError (EINVAL).
  template <class O>
  [[nodiscard]] O& find(u64 handle) const;
  /// Null for 0.
  template <class O>
  [[nodiscard]] O* find_or_none(u64 handle) const {
    return handle == 0 ? nullptr : &find<O>(handle);
  }
  template <class O, class... A>
  O& add(Asked& a, A&&... arguments);

  Nic& nic_;
  const bool foreign_;
  std::map<u32, std::unique_ptr<Object>> objects_;
  u32 next_ = 1;
};

}  // namespace doorbell::cxi::dropin
