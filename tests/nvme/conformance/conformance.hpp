// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// The duties of any NVMe controller, as named cases over a ControllerInterface. The software model runs them
// here; other controllers (QEMU's) run the same list.
#pragma once

#include <functional>
#include <memory>
#include <ostream>
#include <string>
#include <vector>

#include "nvme/controller_interface.hpp"

namespace doorbell::nvme::conformance {

/// A feature that a case needs beyond the specification's musts. A target without it leaves the case out.
enum Need : unsigned {
  nothing = 0,
  slow = 1u << 0,             ///< a device whose commands stay outstanding for some 10 ms
  cid_conflicts = 1u << 1,    ///< notices a cid that is in use
  check_order = 1u << 2,      ///< checks Create I/O Queue fields in the specification's order
  doorbell_events = 1u << 3,  ///< reports bad doorbell writes as asynchronous events
  shadow = 1u << 4,           ///< has Doorbell Buffer Config
  no_interrupts = 1u << 5,    ///< refuses interrupts: polled completion queues only
  one_namespace = 1u << 6,    ///< namespace 1 alone, and Identify of another is an error
  counts = 1u << 7,           ///< ControllerInterface::counters() counts invalid doorbell values
  iommu = 1u << 8,            ///< accesses outside the mapping are refused and answered, with permissions
  mdts = 1u << 9,             ///< has a largest transfer that is less than the commands' own limit
  checks_enable = 1u << 10,   ///< does not become ready with admin queues that cannot be used
  keeps_events = 1u << 11,    ///< an event waits until there is a request for it
  prp_low_bits = 1u << 12,    ///< refuses data that is not dword aligned and lists not qword aligned
  named_statuses = 1u << 13,  ///< refusals carry the status that the specification names, not a neighbour
  identify_lists = 1u << 14,  ///< Identify has lists of controllers, and pages by command set
  admin_extras = 1u << 15,    ///< what the model has beyond the musts: features, log pages, events, counts
  io_errors = 1u << 16,       ///< the error log has entries of I/O commands
};

/// A controller under test.
struct Target {
  unsigned has = nothing;
  /// A fresh device. `slow_commands`: with Need::slow, commands take 20 ms or more.
  std::function<std::unique_ptr<ControllerInterface>(bool slow_commands)> open;
};

struct Case {
  std::string name;  ///< an identifier
  unsigned needs;
  void (*run)(const Target& target);
};
inline void PrintTo(const Case& c, std::ostream* out) {
  *out << c.name;
}

/// Reports through GoogleTest's EXPECT and ASSERT; throws when a controller does not answer.
[[nodiscard]] const std::vector<Case>& cases();

}  // namespace doorbell::nvme::conformance
