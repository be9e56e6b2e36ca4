// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// The ethtool calls, for what rtnetlink cannot say or set: offloads, channels, a driver's name and its own
// counters.

#include <doorbell/error.hpp>
#include <fmt/format.h>
#include <linux/ethtool.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <sys/ioctl.h>

#include <algorithm>
#include <memory>

#include "net/links/netlink.hpp"
#include "system/sysfs.hpp"

namespace doorbell::net::netlink {

namespace {

/// A command whose struct ends in an array: its fixed part and room for the array's bytes.
template <class T>
class WithArray {
 public:
  explicit WithArray(u32 command, std::size_t array_bytes)
      : words_((sizeof(T) + array_bytes + sizeof(u64) - 1) / sizeof(u64)) {
    get()->cmd = command;
  }
  [[nodiscard]] T* get() { return reinterpret_cast<T*>(words_.data()); }
  T* operator->() { return get(); }

 private:
  std::vector<u64> words_;  // aligned for all of them
};

/// The most names that a set may have: the largest drivers have a few thousand.
constexpr u32 kMostStrings = 1u << 16;

}  // namespace

int Interfaces::ethtool(const std::string& interface, void* command) {
  ifreq request{};
  check_interface_name("interface", interface);
  std::copy(interface.begin(), interface.end(), request.ifr_name);
  request.ifr_data = static_cast<char*>(command);
  // Every socket passes the calls of interfaces on, that of rtnetlink as well.
  return ioctl(socket_.get(), SIOCETHTOOL, &request) == 0 ? 0 : errno;
}

std::string Interfaces::driver(const std::string& interface) {
  ethtool_drvinfo info{};
  info.cmd = ETHTOOL_GDRVINFO;
  if (ethtool(interface, &info) != 0) return {};
  return {info.driver, std::find(info.driver, std::end(info.driver), '\0')};
}

bool Interfaces::gro(const std::string& interface) {
  ethtool_value value{ETHTOOL_GGRO, 0};
  return ethtool(interface, &value) == 0 && value.data != 0;
}

void Interfaces::set_gro(const std::string& interface, bool on) {
  ethtool_value value{ETHTOOL_SGRO, on ? 1u : 0u};
  if (const int error = ethtool(interface, &value); error != 0)
    throw Error(fmt::format("interface {}: GRO {}", interface, on ? "on" : "off"), reason(error));
}

std::vector<std::string> Interfaces::strings(const std::string& interface, u32 set) {
  WithArray<ethtool_sset_info> count(ETHTOOL_GSSET_INFO, sizeof(u32));
  count->sset_mask = u64{1} << set;
  if (ethtool(interface, count.get()) != 0 || count->sset_mask == 0) return {};
  const u32 names = std::min(count->data[0], kMostStrings);
  WithArray<ethtool_gstrings> list(ETHTOOL_GSTRINGS, std::size_t{names} * ETH_GSTRING_LEN);
  list->string_set = set;
  list->len = names;
  if (ethtool(interface, list.get()) != 0) return {};
  std::vector<std::string> found;
  for (u32 i = 0; i < std::min(list->len, names); ++i) {
    const u8* const name = list->data + std::size_t{i} * ETH_GSTRING_LEN;
    found.emplace_back(name, std::find(name, name + ETH_GSTRING_LEN, u8{0}));
  }
  return found;
}

std::optional<bool> Interfaces::feature(const std::string& interface, const std::string& feature) {
  const auto names = strings(interface, ETH_SS_FEATURES);
  const auto at = std::find(names.begin(), names.end(), feature);
  if (at == names.end()) return {};
  const u32 bit = static_cast<u32>(at - names.begin());
  const u32 blocks = static_cast<u32>((names.size() + 31) / 32);
  WithArray<ethtool_gfeatures> state(ETHTOOL_GFEATURES, blocks * sizeof(ethtool_get_features_block));
  state->size = blocks;
  if (ethtool(interface, state.get()) != 0 || state->size <= bit / 32) return {};
  return (state->features[bit / 32].active >> bit % 32 & 1) != 0;
}

void Interfaces::set_feature(const std::string& interface, const std::string& feature, bool on) {
  const std::string what = fmt::format("interface {}: {} {}", interface, feature, on ? "on" : "off");
  const auto names = strings(interface, ETH_SS_FEATURES);
  const auto at = std::find(names.begin(), names.end(), feature);
  if (at == names.end()) throw Error(what, "the kernel knows no such feature");
  const u32 bit = static_cast<u32>(at - names.begin());
  const u32 blocks = static_cast<u32>((names.size() + 31) / 32);
  WithArray<ethtool_sfeatures> wanted(ETHTOOL_SFEATURES, blocks * sizeof(ethtool_set_features_block));
  wanted->size = blocks;
  wanted->features[bit / 32].valid = 1u << bit % 32;
  wanted->features[bit / 32].requested = on ? 1u << bit % 32 : 0;
  // The call reports in a positive number what it did not do: the state afterwards says it as well.
  const int error = ethtool(interface, wanted.get());
  if (this->feature(interface, feature) == on) return;
  throw Error(what, error != 0 ? reason(error) : "the interface keeps it as it was");
}

std::optional<u32> Interfaces::channels(const std::string& interface) {
  ethtool_channels channels{};
  channels.cmd = ETHTOOL_GCHANNELS;
  if (ethtool(interface, &channels) != 0) return {};
  return channels.max_combined > 0 ? channels.combined_count : std::min(channels.rx_count, channels.tx_count);
}

void Interfaces::set_channels(const std::string& interface, u32 queues) {
  const std::string what = fmt::format("interface {}: {} channels", interface, queues);
  ethtool_channels channels{};
  channels.cmd = ETHTOOL_GCHANNELS;
  if (const int error = ethtool(interface, &channels); error != 0)
    throw Error(what, "it has no channels that could be set: " + reason(error));
  const bool combined = channels.max_combined > 0;
  const u32 most = combined ? channels.max_combined : std::min(channels.max_rx, channels.max_tx);
  if (queues < 1 || queues > most) throw Error(what, fmt::format("{} is not in 1..{}", queues, most));
  channels.cmd = ETHTOOL_SCHANNELS;
  if (combined) {
    channels.combined_count = queues;
  } else {
    channels.rx_count = channels.tx_count = queues;
  }
  if (const int error = ethtool(interface, &channels); error != 0) throw Error(what, reason(error));
}

std::optional<u64> Interfaces::counter(const std::string& interface, const std::string& name) {
  const auto names = strings(interface, ETH_SS_STATS);
  const auto at = std::find(names.begin(), names.end(), name);
  if (at == names.end()) return {};
  WithArray<ethtool_stats> stats(ETHTOOL_GSTATS, names.size() * sizeof(u64));
  stats->n_stats = static_cast<u32>(names.size());
  const auto index = static_cast<std::size_t>(at - names.begin());
  if (ethtool(interface, stats.get()) != 0 || stats->n_stats <= index) return {};
  // Behind the fixed part, which leaves the numbers where a u64 may not lie on its own.
  u64 value;
  std::memcpy(&value, stats->data + index, sizeof value);
  return value;
}

}  // namespace doorbell::net::netlink
