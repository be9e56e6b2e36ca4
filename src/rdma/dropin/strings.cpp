// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Names of enumerations, rates, and files of sysfs: what libibverbs has beside devices.
#include <fcntl.h>
#include <unistd.h>

#include <cstdlib>
#include <iterator>
#include <string>

#include "rdma/dropin/objects.hpp"

namespace doorbell::dropin {

namespace {

template <std::size_t N>
const char* name_in(const char* const (&names)[N], int value, const char* other) {
  return value >= 0 && static_cast<std::size_t>(value) < N && names[value] != nullptr ? names[value] : other;
}

struct Rate {
  ibv_rate rate;
  int times_2500;  ///< 0: no multiple of it
  int mbps;
};
constexpr Rate kRates[] = {
    {IBV_RATE_2_5_GBPS, 1, 2500},     {IBV_RATE_5_GBPS, 2, 5000},         {IBV_RATE_10_GBPS, 4, 10000},
    {IBV_RATE_20_GBPS, 8, 20000},     {IBV_RATE_30_GBPS, 12, 30000},      {IBV_RATE_40_GBPS, 16, 40000},
    {IBV_RATE_60_GBPS, 24, 60000},    {IBV_RATE_80_GBPS, 32, 80000},      {IBV_RATE_120_GBPS, 48, 120000},
    {IBV_RATE_14_GBPS, 6, 14062},     {IBV_RATE_56_GBPS, 22, 56250},      {IBV_RATE_112_GBPS, 45, 112500},
    {IBV_RATE_168_GBPS, 67, 168750},  {IBV_RATE_25_GBPS, 10, 25781},      {IBV_RATE_100_GBPS, 40, 103125},
    {IBV_RATE_200_GBPS, 80, 206250},  {IBV_RATE_300_GBPS, 120, 309375},   {IBV_RATE_28_GBPS, 11, 28125},
    {IBV_RATE_50_GBPS, 20, 53125},    {IBV_RATE_400_GBPS, 160, 425000},   {IBV_RATE_600_GBPS, 240, 637500},
    {IBV_RATE_800_GBPS, 320, 850000}, {IBV_RATE_1200_GBPS, 480, 1275000},
};

}  // namespace

}  // namespace doorbell::dropin

using namespace doorbell::dropin;

DOORBELL_VERBS const char* ibv_node_type_str(ibv_node_type type) {
  static const char* const kNames[] = {nullptr,
                                       "InfiniBand channel adapter",
                                       "InfiniBand switch",
                                       "InfiniBand router",
                                       "iWARP NIC",
                                       "usNIC",
                                       "usNIC UDP",
                                       "unspecified"};
  return name_in(kNames, type, "unknown");
}

DOORBELL_VERBS const char* ibv_port_state_str(ibv_port_state state) {
  static const char* const kNames[] = {"no state change (NOP)", "down", "init", "armed", "active",
                                       "active defer"};
  return name_in(kNames, state, "unknown");
}

DOORBELL_VERBS const char* ibv_event_type_str(ibv_event_type type) {
  static const char* const kNames[] = {"CQ error",
                                       "local work queue catastrophic error",
                                       "invalid request local work queue error",
                                       "local access violation work queue error",
                                       "communication established",
                                       "send queue drained",
                                       "path migrated",
                                       "path migration request error",
                                       "local catastrophic error",
                                       "port active",
                                       "port error",
                                       "LID change",
                                       "P_Key change",
                                       "SM change",
                                       "SRQ catastrophic error",
                                       "SRQ limit reached",
                                       "last WQE reached",
                                       "client reregistration",
                                       "GID table change",
                                       "work queue fatal error"};
  return name_in(kNames, type, "unknown");
}

DOORBELL_VERBS const char* ibv_wc_status_str(ibv_wc_status status) {
  static const char* const kNames[] = {"success",
                                       "local length error",
                                       "local QP operation error",
                                       "local EE context operation error",
                                       "local protection error",
                                       "Work Request Flushed Error",
                                       "memory management operation error",
                                       "bad response error",
                                       "local access error",
                                       "remote invalid request error",
                                       "remote access error",
                                       "remote operation error",
                                       "transport retry counter exceeded",
                                       "RNR retry counter exceeded",
                                       "local RDD violation error",
                                       "remote invalid RD request",
                                       "aborted error",
                                       "invalid EE context number",
                                       "invalid EE context state",
                                       "fatal error",
                                       "response timeout error",
                                       "general error",
                                       "TM error",
                                       "TM software rendezvous"};
  return name_in(kNames, status, "unknown");
}

DOORBELL_VERBS int ibv_rate_to_mult(ibv_rate rate) {
  for (const Rate& row : kRates)
    if (row.rate == rate) return row.times_2500;
  return -1;
}

DOORBELL_VERBS ibv_rate mult_to_ibv_rate(int times) {
  for (const Rate& row : kRates)
    if (row.times_2500 == times) return row.rate;
  return IBV_RATE_MAX;
}

DOORBELL_VERBS int ibv_rate_to_mbps(ibv_rate rate) {
  for (const Rate& row : kRates)
    if (row.rate == rate) return row.mbps;
  return -1;
}

DOORBELL_VERBS ibv_rate mbps_to_ibv_rate(int mbps) {
  for (const Rate& row : kRates)
    if (row.mbps == mbps) return row.rate;
  return IBV_RATE_MAX;
}

DOORBELL_VERBS const char* ibv_get_sysfs_path() {
  static const std::string path = [] {
    const char* text = ::secure_getenv("SYSFS_PATH");
    std::string found = text != nullptr && *text != '\0' ? text : "/sys";
    while (found.size() > 1 && found.back() == '/') found.pop_back();
    return found;
  }();
  return path.c_str();
}

DOORBELL_VERBS int ibv_read_sysfs_file(const char* folder, const char* name, char* into, std::size_t bytes) {
  if (bytes == 0) return -1;
  const std::string path = std::string(folder) + "/" + name;
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return -1;
  const ssize_t got = ::read(file, into, bytes);
  ::close(file);
  if (got < 0) return -1;
  std::size_t length = static_cast<std::size_t>(got);
  if (length > 0 && into[length - 1] == '\n') --length;
  if (length < bytes) into[length] = '\0';
  return static_cast<int>(length);
}

/// How providers made themselves known before rdma-core; none is needed.
DOORBELL_VERBS void ibv_register_driver(const char*, void*) {}
