// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "rdma/dropin/settings.hpp"

#include <arpa/inet.h>
#include <unistd.h>

#include <charconv>
#include <cstdlib>
#include <string_view>

namespace doorbell::dropin {

namespace {

bool number(std::string_view text, u64 least, u64 most, u64* into) {
  u64 value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < least || value > most) return false;
  *into = value;
  return true;
}

struct Row {
  const char* variable;
  const char* values;
  bool (*read)(std::string_view text, Settings& into);
};

constexpr Row kRows[] = {
    {kDevicesVariable, "1 to 16",
     [](std::string_view text, Settings& into) {
       u64 value = 0;
       if (!number(text, 1, kMostDevices, &value)) return false;
       into.devices = static_cast<u32>(value);
       return true;
     }},
    {kAddressVariable, "an IPv4 address of this machine, or auto",
     [](std::string_view text, Settings& into) {
       in_addr address{};
       if (text == "auto") return true;
       if (::inet_pton(AF_INET, std::string(text).c_str(), &address) != 1) return false;
       into.address = ntohl(address.s_addr);
       return into.address != 0 && into.address < 0xE000'0000 - kMostDevices;
     }},
    {kPortVariable, "1 to 65535",
     [](std::string_view text, Settings& into) {
       u64 value = 0;
       if (!number(text, 1, 65535, &value)) return false;
       into.port = static_cast<u16>(value);
       return true;
     }},
    {kCarrierVariable, "auto, ring or udp",
     [](std::string_view text, Settings& into) {
       into.carrier = text;
       return text == "auto" || text == "ring" || text == "udp";
     }},
    {kMtuVariable, "256, 512, 1024, 2048, 4096 or auto",
     [](std::string_view text, Settings& into) {
       u64 value = 0;
       if (text == "auto") return true;
       if (!number(text, 256, 4096, &value) || (value & (value - 1)) != 0) return false;
       into.mtu = static_cast<u32>(value);
       return true;
     }},
    {kFaultsVariable, "",
     [](std::string_view text, Settings& into) {
       into.faults = text;
       return true;
     }},
    {kSeedVariable, "a whole number",
     [](std::string_view text, Settings& into) { return number(text, 0, ~u64{0}, &into.seed); }},
    {kFaultLogVariable, "",
     [](std::string_view text, Settings& into) {
       into.fault_log = text;
       return true;
     }},
    {kTraceVariable, "",
     [](std::string_view text, Settings& into) {
       into.trace = text;
       return true;
     }},
    {kReportVariable, "",
     [](std::string_view text, Settings& into) {
       into.report = text;
       return true;
     }},
};

}  // namespace

bool read_settings(Settings& into, std::string& why) {
  for (const Row& row : kRows) {
    const char* text = ::secure_getenv(row.variable);
    if (text == nullptr || *text == '\0') continue;
    if (row.read(text, into)) continue;
    why = std::string(row.variable) + " is '" + text + "': give " + row.values;
    return false;
  }
  return true;
}

std::string named_file(const std::string& name) {
  const std::size_t at = name.find("%p");
  if (at == std::string::npos) return name;
  return name.substr(0, at) + std::to_string(::getpid()) + name.substr(at + 2);
}

}  // namespace doorbell::dropin
