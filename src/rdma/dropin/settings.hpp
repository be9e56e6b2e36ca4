// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// The settings of the drop-in library. A program that knows nothing of it has no options for them: they come
// from the environment, which `doorbell run rdma` sets.
#pragma once

#include <doorbell/config.hpp>

#include <string>

namespace doorbell::dropin {

inline constexpr const char* kDevicesVariable = "DOORBELL_VERBS_DEVICES";
inline constexpr const char* kAddressVariable = "DOORBELL_VERBS_ADDRESS";
inline constexpr const char* kPortVariable = "DOORBELL_VERBS_PORT";
inline constexpr const char* kCarrierVariable = "DOORBELL_VERBS_CARRIER";
inline constexpr const char* kMtuVariable = "DOORBELL_VERBS_MTU";
inline constexpr const char* kFaultsVariable = "DOORBELL_VERBS_FAULTS";
inline constexpr const char* kSeedVariable = "DOORBELL_VERBS_SEED";
inline constexpr const char* kFaultLogVariable = "DOORBELL_VERBS_FAULT_LOG";
inline constexpr const char* kTraceVariable = "DOORBELL_VERBS_TRACE";
inline constexpr const char* kReportVariable = "DOORBELL_VERBS_REPORT";

inline constexpr u32 kMostDevices = 16;
/// The word of kReportVariable for standard error.
inline constexpr const char* kReportToStderr = "-";

struct Settings {
  u32 devices = 1;
  u32 address =
      0;  ///< of the first device, in the host's order, each other's one more; 0: free ones in 127.77/16
  u16 port = 4791;
  std::string carrier = "auto";
  u32 mtu = 0;  ///< bytes; 0: the largest that the address's interface has
  std::string faults;
  u64 seed = 1;
  std::string fault_log;  ///< a file's name; empty: none
  std::string trace;      ///< a file's name; empty: none
  std::string report;     ///< a file's name, or kReportToStderr; empty: none
};

/// From the environment. False, with a sentence in `why`, for a variable that has no meaning.
[[nodiscard]] bool read_settings(Settings& into, std::string& why);

/// A file's name in which %p stands for the process.
[[nodiscard]] std::string named_file(const std::string& name);

}  // namespace doorbell::dropin
