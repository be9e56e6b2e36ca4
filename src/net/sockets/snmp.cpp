// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "net/sockets/snmp.hpp"

#include <charconv>
#include <fstream>
#include <sstream>

namespace doorbell::net::sockets {

std::map<std::string, u64> snmp_counters(std::istream& from, const std::string& protocol) {
  std::map<std::string, u64> out;
  const std::string title = protocol + ":";
  std::string names, values;
  while (std::getline(from, names)) {
    if (!names.starts_with(title + " ")) continue;
    if (!std::getline(from, values) || !values.starts_with(title + " ")) break;
    std::istringstream name_list(names.substr(title.size())), value_list(values.substr(title.size()));
    for (std::string name, value; name_list >> name && value_list >> value;) {
      u64 number = 0;
      const auto parsed = std::from_chars(value.data(), value.data() + value.size(), number);
      if (parsed.ec == std::errc{} && parsed.ptr == value.data() + value.size()) out[name] = number;
    }
    break;
  }
  return out;
}

std::map<std::string, u64> snmp_counters(const std::string& protocol) {
  // /proc/net is that of the process's first thread, whatever the namespace of this one.
  std::ifstream file("/proc/thread-self/net/snmp");
  return snmp_counters(file, protocol);
}

}  // namespace doorbell::net::sockets
