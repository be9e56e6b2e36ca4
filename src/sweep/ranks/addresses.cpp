// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "sweep/ranks/addresses.hpp"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <unistd.h>

#include <array>
#include <charconv>
#include <doorbell/config.hpp>
#include <filesystem>
#include <fmt/format.h>
#include <fstream>
#include <memory>
#include <optional>
#include <stdexcept>
#include <system_error>

namespace doorbell::sweep {

namespace {

/// The bytes of a numeric address: 4 or 16; empty if it is none.
std::vector<u8> bytes_of(const std::string& address) {
  std::array<u8, 16> bytes{};
  if (::inet_pton(AF_INET, address.c_str(), bytes.data()) == 1) return {bytes.begin(), bytes.begin() + 4};
  if (::inet_pton(AF_INET6, address.c_str(), bytes.data()) == 1) return {bytes.begin(), bytes.end()};
  return {};
}

struct Network {
  std::vector<u8> bytes;
  u32 bits = 0;
};

Network network_of(const std::string& text) {
  const auto slash = text.find('/');
  const std::string length = slash == std::string::npos ? "" : text.substr(slash + 1);
  Network n{bytes_of(text.substr(0, slash)), 0};
  const auto parsed = std::from_chars(length.data(), length.data() + length.size(), n.bits);
  if (n.bytes.empty() || length.empty() || parsed.ec != std::errc{} ||
      parsed.ptr != length.data() + length.size() || n.bits > n.bytes.size() * 8)
    throw std::invalid_argument(fmt::format("'{}' is no network ADDRESS/BITS, such as 192.0.2.0/24", text));
  return n;
}

/// The text of an interface's address; empty for one that others cannot reach.
std::string text_of(const ifaddrs& a) {
  if (a.ifa_addr == nullptr || (a.ifa_flags & IFF_UP) == 0 || (a.ifa_flags & IFF_LOOPBACK) != 0) return "";
  std::array<char, INET6_ADDRSTRLEN> text{};
  const void* bytes = nullptr;
  if (a.ifa_addr->sa_family == AF_INET) {
    bytes = &reinterpret_cast<const sockaddr_in*>(a.ifa_addr)->sin_addr;
  } else if (a.ifa_addr->sa_family == AF_INET6) {
    const in6_addr& six = reinterpret_cast<const sockaddr_in6*>(a.ifa_addr)->sin6_addr;
    if (!IN6_IS_ADDR_LINKLOCAL(&six)) bytes = &six;
  }
  if (bytes == nullptr || ::inet_ntop(a.ifa_addr->sa_family, bytes, text.data(), text.size()) == nullptr)
    return "";
  return text.data();
}

}  // namespace

std::vector<std::string> own_addresses() {
  ifaddrs* raw = nullptr;
  if (::getifaddrs(&raw) != 0) return {};
  const std::unique_ptr<ifaddrs, decltype(&::freeifaddrs)> list(raw, &::freeifaddrs);
  std::vector<std::string> found;
  for (const int family : {AF_INET, AF_INET6})
    for (const ifaddrs* a = list.get(); a != nullptr; a = a->ifa_next)
      if (a->ifa_addr != nullptr && a->ifa_addr->sa_family == family)
        if (std::string text = text_of(*a); !text.empty()) found.push_back(std::move(text));
  return found;
}

void check_network(const std::string& network) {
  (void)network_of(network);
}

bool in_network(const std::string& address, const std::string& network) {
  const Network n = network_of(network);
  const std::vector<u8> bytes = bytes_of(address);
  if (bytes.size() != n.bytes.size()) return false;
  for (u32 bit = 0; bit < n.bits; ++bit)
    if (((bytes[bit / 8] ^ n.bytes[bit / 8]) >> (7 - bit % 8) & 1) != 0) return false;
  return true;
}

std::string network_stack() {
  std::ifstream file("/proc/sys/kernel/random/boot_id");
  std::string boot;
  std::getline(file, boot);
  std::error_code ignored;
  return boot + " " + std::filesystem::read_symlink("/proc/self/ns/net", ignored).string();
}

std::string host_name() {
  std::array<char, 256> name{};
  if (::gethostname(name.data(), name.size() - 1) != 0 || name[0] == '\0') return "unknown";
  return name.data();
}

}  // namespace doorbell::sweep
