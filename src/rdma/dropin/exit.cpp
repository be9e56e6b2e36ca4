// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// The end of the program, or of the library where a program unloads it: the linker keeps it (-z nodelete).
#include "rdma/dropin/devices.hpp"
#include "rdma/dropin/report.hpp"

namespace {

/// Later than the handlers that the program registered, which may use its devices.
__attribute__((destructor)) void at_exit() {
  if (!doorbell::dropin::Devices::made()) return;
  doorbell::dropin::write_report();
  doorbell::dropin::Devices::get().at_exit();
}

}  // namespace
