// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// DPDK's environment (EAL): started once a process, and never in the way of the program's threads and
// signals.
#pragma once

#include <doorbell/config.hpp>

#include <functional>
#include <string>
#include <vector>

namespace doorbell::net::dpdk {

struct Eal {
  bool huge_pages = false;
  bool ports = false;  ///< it knows PCI devices
  u32 memory_mib = 0;  ///< without huge pages: all that there is
};

/// Starts it if that has not been done. Only these PCI devices are touched; without any, none is. Throws
/// Error: DPDK's reason, or it has been started for other devices.
const Eal& start_eal(const std::vector<std::string>& pci_addresses);

/// Throws Error with DPDK's reason: `error` (an errno, negative or not) and what it has logged last.
[[noreturn]] void dpdk_failed(const std::string& what, int error, const std::string& hint = {});
/// For calls that return a negative errno.
inline void check(int result, const std::string& what) {
  if (result < 0) dpdk_failed(what, result);
}

/// Makes the calling thread one of DPDK's, so that it has its own caches in front of buffer pools; undone
/// when the thread ends. Cheap from the second call on.
void use_thread();

/// Sleeps for at most `limit_ns`. Polled drivers wake no thread, so a thread without a core of its own looks
/// every 50 us.
void nap(u64 limit_ns);

/// Calls `work` in the thread in which DPDK handles events of devices, and waits until it is done. What it
/// throws ends the program. If that thread is stuck, it is called in this one after 10 s, beside such events.
void in_interrupt_thread(const std::function<void()>& work);

/// "db_rx_3": a name that nothing in this process has had.
[[nodiscard]] std::string unique_name(const std::string& stem);

}  // namespace doorbell::net::dpdk
