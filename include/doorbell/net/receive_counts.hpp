// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// The counts of received packets: each packet counts in one class.
#pragma once

#include <doorbell/config.hpp>

namespace doorbell::net {

/// received = unique + duplicate + corrupt + misplaced + alien + short_.
struct ReceiveCounts {
  u64 received = 0;
  u64 unique = 0;  ///< good packets, each once
  u64 duplicate = 0;
  u64 corrupt = 0;    ///< a CRC or the data did not match; such a packet counts as lost too
  u64 misplaced = 0;  ///< a good packet of another flow, or with a sequence that the flow cannot have
  u64 alien = 0;      ///< not of this run
  u64 short_ = 0;     ///< fewer or more bytes than its header says
  u64 late = 0;       ///< unique, but longer on its way than allowed
  u64 held = 0;       ///< late because the receiving thread did not run, or was busy all the time
  u64 earlier = 0;    ///< unique, of a phase before the one in which they came
  u64 earlier_bytes = 0;
  u64 out_of_order = 0;  ///< unique, but behind a newer one
  u64 unique_bytes = 0;  ///< payload of the unique packets
  u64 checked = 0;       ///< unique packets whose data was checked
  u64 checked_bytes = 0;
  u64 polls = 0;
  u64 empty_polls = 0;
  u64 bursts = 0;

  [[nodiscard]] u64 classified() const { return unique + duplicate + corrupt + misplaced + alien + short_; }
  inline ReceiveCounts& operator+=(const ReceiveCounts& other);
  inline ReceiveCounts& operator-=(const ReceiveCounts& other);
};

/// One of the counts, by its name in messages. (nvcc writes a pointer to a member in a form that GCC warns
/// about, unless it has a name of its own.)
using ReceiveCountOf = u64 ReceiveCounts::*;
struct ReceiveCount {
  const char* key;
  ReceiveCountOf count;
};
inline constexpr ReceiveCount kReceiveCounts[] = {{"received", &ReceiveCounts::received},
                                                  {"unique", &ReceiveCounts::unique},
                                                  {"duplicate", &ReceiveCounts::duplicate},
                                                  {"corrupt", &ReceiveCounts::corrupt},
                                                  {"misplaced", &ReceiveCounts::misplaced},
                                                  {"alien", &ReceiveCounts::alien},
                                                  {"short", &ReceiveCounts::short_},
                                                  {"late", &ReceiveCounts::late},
                                                  {"held", &ReceiveCounts::held},
                                                  {"earlier", &ReceiveCounts::earlier},
                                                  {"earlier_bytes", &ReceiveCounts::earlier_bytes},
                                                  {"out_of_order", &ReceiveCounts::out_of_order},
                                                  {"unique_bytes", &ReceiveCounts::unique_bytes},
                                                  {"checked", &ReceiveCounts::checked},
                                                  {"checked_bytes", &ReceiveCounts::checked_bytes},
                                                  {"polls", &ReceiveCounts::polls},
                                                  {"empty_polls", &ReceiveCounts::empty_polls},
                                                  {"bursts", &ReceiveCounts::bursts}};

ReceiveCounts& ReceiveCounts::operator+=(const ReceiveCounts& o) {
  for (const ReceiveCount& c : kReceiveCounts) this->*c.count += o.*c.count;
  return *this;
}
ReceiveCounts& ReceiveCounts::operator-=(const ReceiveCounts& o) {
  for (const ReceiveCount& c : kReceiveCounts) this->*c.count -= o.*c.count;
  return *this;
}

}  // namespace doorbell::net
