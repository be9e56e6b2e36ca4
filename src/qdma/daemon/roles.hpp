// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Who may do what: a file of roles, users and groups.
//
//   [role:operator]
//   rights = query-devices, qdma, buffer
//   [user:*]
//   roles = operator
//
// A client has the rights of all sections that fit it: its user's (by name or number), its groups', user:*.
#pragma once

#include <doorbell/config.hpp>
#include <sys/types.h>

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "service/peer.hpp"

namespace doorbell::qdma::daemon {

/// Bits; the names are upstream's. Those that belong to no request of this daemon are read and have no
/// effect.
enum Right : u32 {
  kQueryDevices = 1,
  kBarAccess = 2,
  kQdma = 4,
  kBuffer = 8,
  kDesignWrite = 16,
  kCfgmemProgram = 32,
  kClock = 64,
  kPcieHotplug = 128,
  kRawMemAccess = 256,
  kAllRights = 511,
};
/// "query-devices, qdma"; "none".
[[nodiscard]] std::string rights_text(u32 rights);

using service::Peer;

/// Numbers of names; empty for a name that the system does not know.
struct NameService {
  std::function<std::optional<uid_t>(const std::string&)> user;
  std::function<std::optional<gid_t>(const std::string&)> group;
  /// The system's (getpwnam_r, getgrnam_r).
  [[nodiscard]] static NameService system();
};

class Roles {
 public:
  /// Root and the daemon's own user may do everything, others may ask for devices and open buffers.
  [[nodiscard]] static Roles defaults(uid_t own);
  /// Throws Error, naming `file` and the line. A user or group that the system does not know is a warning:
  /// its roles are granted to no one.
  [[nodiscard]] static Roles parse(const std::string& file, std::string_view text, const NameService& names);
  [[nodiscard]] static Roles read(const std::string& file, const NameService& names);

  [[nodiscard]] u32 rights(const Peer& peer) const;
  [[nodiscard]] const std::vector<std::string>& warnings() const { return warnings_; }

 private:
  u32 everyone_ = 0;
  std::map<uid_t, u32> users_;
  std::map<gid_t, u32> groups_;
  std::vector<std::string> warnings_;
};

}  // namespace doorbell::qdma::daemon
