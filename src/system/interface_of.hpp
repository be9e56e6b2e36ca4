// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Which network interface has an IPv4 address. A header alone, for libraries that link nothing else of here.
#pragma once

#include <arpa/inet.h>
#include <doorbell/config.hpp>
#include <ifaddrs.h>
#include <net/if.h>

#include <memory>
#include <string>

namespace doorbell {

/// `address` in the host's order. The loopback interface has all of its network. Empty if none has it.
[[nodiscard]] inline std::string interface_of(u32 address) {
  ifaddrs* all = nullptr;
  if (::getifaddrs(&all) != 0) return {};
  const std::unique_ptr<ifaddrs, decltype(&::freeifaddrs)> list(all, &::freeifaddrs);
  const auto number = [](const sockaddr* a) {
    return ntohl(reinterpret_cast<const sockaddr_in*>(a)->sin_addr.s_addr);
  };
  for (const ifaddrs* one = all; one != nullptr; one = one->ifa_next) {
    if (one->ifa_addr == nullptr || one->ifa_addr->sa_family != AF_INET || one->ifa_netmask == nullptr)
      continue;
    const u32 mask = (one->ifa_flags & IFF_LOOPBACK) != 0 ? number(one->ifa_netmask) : ~u32{0};
    if (((number(one->ifa_addr) ^ address) & mask) == 0) return one->ifa_name;
  }
  return {};
}

}  // namespace doorbell
