// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// The kernel's counters of one network namespace.
#pragma once

#include <doorbell/config.hpp>

#include <istream>
#include <map>
#include <string>

namespace doorbell::net::sockets {

/// One protocol's counters in a file in the form of /proc/net/snmp: pairs of lines, names and then values.
/// Counters that cannot be read are left out.
[[nodiscard]] std::map<std::string, u64> snmp_counters(std::istream& from, const std::string& protocol);
/// The same, of the calling thread's network namespace.
[[nodiscard]] std::map<std::string, u64> snmp_counters(const std::string& protocol);

}  // namespace doorbell::net::sockets
