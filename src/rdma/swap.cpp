// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "rdma/swap.hpp"

#include <doorbell/error.hpp>
#include <fmt/format.h>

#include <bit>
#include <charconv>

#include "exchange/fields.hpp"

namespace doorbell::rdma {

namespace {

using Json = nlohmann::ordered_json;
using exchange::number;
using exchange::small;

Json to_json(const QueuePairAddress& e) {
  std::string gid;
  for (const u8 b : e.gid) gid += fmt::format("{:02x}", b);
  return {{"qpn", e.qpn}, {"psn", e.psn}, {"lid", e.lid}, {"mtu", e.mtu}, {"gid", gid}};
}

void from_json(const Json& from, QueuePairAddress& e) {
  e.qpn = small(from, "qpn", 0, 0xffffff);
  e.psn = small(from, "psn", 0, 0xffffff);
  e.lid = small(from, "lid", 0, 0xffff);
  e.mtu = small(from, "mtu", 0, 4096);
  if (e.mtu < 256 || !std::has_single_bit(e.mtu))
    throw Error(exchange::kOtherEnd, "its message has no valid 'mtu'");
  const auto it = from.find("gid");
  const std::string gid = it != from.end() && it->is_string() ? it->get<std::string>() : "";
  const bool hex = gid.find_first_not_of("0123456789abcdef") == std::string::npos;
  if (gid.size() != 2 * e.gid.size() || !hex)
    throw Error(exchange::kOtherEnd, "its message has no valid 'gid'");
  for (std::size_t i = 0; i < e.gid.size(); ++i)
    std::from_chars(gid.data() + 2 * i, gid.data() + 2 * i + 2, e.gid[i], 16);
}

Json to_json(const MemoryKey& m) {
  return {{"address", m.address}, {"rkey", m.rkey}, {"bytes", m.bytes}};
}

void from_json(const Json& from, MemoryKey& m) {
  m.address = number(from, "address", 0, ~u64{0});
  m.rkey = small(from, "rkey", 0, ~u32{0});
  m.bytes = number(from, "bytes", 0, ~u64{0} - m.address);
}

template <class T>
std::vector<T> swap_all(exchange::Exchange& x, const char* type, const std::vector<T>& mine) {
  auto list = Json::array();
  for (const T& item : mine) list.push_back(to_json(item));
  x.send(type, list);
  const Json theirs = x.receive(type);
  if (!theirs.is_array() || theirs.size() != mine.size())
    throw Error(exchange::kOtherEnd, fmt::format("it sent {} {}, this end has {}",
                                                 theirs.is_array() ? theirs.size() : 0, type, mine.size()));
  std::vector<T> all(theirs.size());
  for (std::size_t i = 0; i < all.size(); ++i) from_json(theirs[i], all[i]);
  return all;
}

}  // namespace

std::vector<QueuePairAddress> swap(exchange::Exchange& exchange, const std::vector<QueuePairAddress>& mine) {
  return swap_all(exchange, "endpoints", mine);
}

std::vector<MemoryKey> swap(exchange::Exchange& exchange, const std::vector<MemoryKey>& mine) {
  return swap_all(exchange, "memory", mine);
}

}  // namespace doorbell::rdma
