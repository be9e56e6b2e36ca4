// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Address handles: a GID of RoCE v2 stands for an IPv4 address.
#include <arpa/inet.h>
#include <netinet/ip.h>

#include <cstring>

#include "rdma/dropin/objects.hpp"

namespace doorbell::dropin {

namespace {

/// A receive of a datagram queue pair begins with 40 bytes, of which the last 20 are the IPv4 header.
constexpr std::size_t kHeaderPlace = 20;

u32 ipv4_of(const ibv_gid& gid) {
  constexpr u8 kMapped[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF};
  if (std::memcmp(gid.raw, kMapped, sizeof kMapped) != 0) return 0;
  u32 wire = 0;
  std::memcpy(&wire, gid.raw + 12, sizeof wire);
  return ntohl(wire);
}

void set_ipv4(ibv_gid& gid, u32 wire) {
  gid = {};
  gid.raw[10] = gid.raw[11] = 0xFF;
  std::memcpy(gid.raw + 12, &wire, sizeof wire);
}

}  // namespace

bool endpoint_of(const ibv_ah_attr& attributes, u16 port, roce::Endpoint& into) {
  if (attributes.is_global == 0 || attributes.grh.sgid_index != 0) return false;
  into = {ipv4_of(attributes.grh.dgid), port};
  return into.address != 0;
}

}  // namespace doorbell::dropin

using namespace doorbell::dropin;
using doorbell::u8;

DOORBELL_VERBS ibv_ah* ibv_create_ah(ibv_pd* pd, ibv_ah_attr* attributes) {
  Context& context = of(pd->context);
  if (context.dead) return refused(EIO);
  doorbell::roce::Endpoint to;
  if (attributes->port_num != 1 || !endpoint_of(*attributes, context.adapter->self().port, to))
    return refused(EINVAL);
  auto handle = std::make_unique<Ah>();
  handle->to = to;
  handle->base = {.context = pd->context, .pd = pd, .handle = context.adapter->next_handle()};
  of<Pd>(pd).users.fetch_add(1);
  return &handle.release()->base;
}

DOORBELL_VERBS int ibv_destroy_ah(ibv_ah* base) {
  of<Pd>(base->pd).users.fetch_sub(1);
  delete &of<Ah>(base);
  return 0;
}

DOORBELL_VERBS int ibv_init_ah_from_wc(ibv_context*, u8 port, ibv_wc* completion, ibv_grh* grh,
                                       ibv_ah_attr* into) {
  if ((completion->wc_flags & IBV_WC_GRH) == 0) {
    errno = EINVAL;
    return -1;
  }
  std::memset(into, 0, sizeof *into);
  into->is_global = 1;
  into->port_num = port;
  into->grh.hop_limit = 255;
  const u8* bytes = reinterpret_cast<const u8*>(grh);
  iphdr header;
  std::memcpy(&header, bytes + kHeaderPlace, sizeof header);
  if (header.version == 4 && header.ihl == 5) {
    set_ipv4(into->grh.dgid, header.saddr);
    into->grh.traffic_class = header.tos;
  } else {
    into->grh.dgid = grh->sgid;
  }
  return 0;
}

DOORBELL_VERBS ibv_ah* ibv_create_ah_from_wc(ibv_pd* pd, ibv_wc* completion, ibv_grh* grh, u8 port) {
  ibv_ah_attr attributes;
  if (ibv_init_ah_from_wc(pd->context, port, completion, grh, &attributes) != 0) return nullptr;
  return ibv_create_ah(pd, &attributes);
}

DOORBELL_VERBS int ibv_resolve_eth_l2_from_gid(ibv_context*, ibv_ah_attr*, u8[ETHERNET_LL_SIZE], uint16_t*) {
  // Packets leave through the kernel's IP stack, which resolves by itself.
  return -EOPNOTSUPP;
}
