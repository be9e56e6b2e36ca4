// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// The faults that a model can inject.
#pragma once

#include <doorbell/config.hpp>

#include <array>
#include <string>
#include <string_view>
#include <vector>

namespace doorbell::model {

enum class Fault : u32 {
  drop,       ///< no completion
  delay,      ///< a completion that comes late
  error,      ///< a bad status
  corrupt,    ///< a changed byte in the data that a read delivers
  misplace,   ///< a read delivers good data of another address
  stale,      ///< a write is acknowledged but not done
  duplicate,  ///< a completion twice
  reorder,    ///< a completion after younger ones: legal
  removal,    ///< the device goes away
  none,
};
inline constexpr u32 kFaultKinds = static_cast<u32>(Fault::none);
[[nodiscard]] std::string_view name(Fault f);
/// Every kind's name, in order.
[[nodiscard]] const std::vector<std::string>& fault_names();

/// Probability of each kind, for each command to which it can apply.
struct FaultRates {
  std::array<double, kFaultKinds> probability{};
  [[nodiscard]] bool any() const;
  [[nodiscard]] double of(Fault f) const { return probability[static_cast<u32>(f)]; }
};

}  // namespace doorbell::model
