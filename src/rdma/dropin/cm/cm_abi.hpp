// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// The binary interface of librdmacm.so.1: its structures and numbers, as programs were compiled with them.
// Its header belongs to another package than verbs.h, which the build needs anyhow. Source: rdma_cma.h of
// rdma-core 44.
#pragma once

#include <infiniband/sa.h>
#include <infiniband/verbs.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cstddef>
#include <cstdint>

#undef ibv_query_port
#undef ibv_reg_mr

/// A function of librdmacm.so.1; symbols.txt gives it its version.
#define DOORBELL_CM extern "C" __attribute__((visibility("default")))

enum rdma_cm_event_type : int {
  RDMA_CM_EVENT_ADDR_RESOLVED,
  RDMA_CM_EVENT_ADDR_ERROR,
  RDMA_CM_EVENT_ROUTE_RESOLVED,
  RDMA_CM_EVENT_ROUTE_ERROR,
  RDMA_CM_EVENT_CONNECT_REQUEST,
  RDMA_CM_EVENT_CONNECT_RESPONSE,
  RDMA_CM_EVENT_CONNECT_ERROR,
  RDMA_CM_EVENT_UNREACHABLE,
  RDMA_CM_EVENT_REJECTED,
  RDMA_CM_EVENT_ESTABLISHED,
  RDMA_CM_EVENT_DISCONNECTED,
  RDMA_CM_EVENT_DEVICE_REMOVAL,
  RDMA_CM_EVENT_MULTICAST_JOIN,
  RDMA_CM_EVENT_MULTICAST_ERROR,
  RDMA_CM_EVENT_ADDR_CHANGE,
  RDMA_CM_EVENT_TIMEWAIT_EXIT,
};

enum rdma_port_space : int {
  RDMA_PS_IPOIB = 2,
  RDMA_PS_TCP = 0x106,
  RDMA_PS_UDP = 0x111,
  RDMA_PS_IB = 0x13F
};

inline constexpr uint32_t RDMA_UDP_QKEY = 0x01234567;
/// Of conn_param: as many as the devices have.
inline constexpr uint8_t RDMA_MAX_RESP_RES = 0xFF, RDMA_MAX_INIT_DEPTH = 0xFF;
inline constexpr int RAI_PASSIVE = 1, RAI_NUMERICHOST = 2, RAI_NOROUTE = 4, RAI_FAMILY = 8;
inline constexpr int RDMA_OPTION_ID = 0;
inline constexpr int RDMA_OPTION_ID_TOS = 0, RDMA_OPTION_ID_REUSEADDR = 1, RDMA_OPTION_ID_AFONLY = 2,
                     RDMA_OPTION_ID_ACK_TIMEOUT = 3;

struct rdma_ib_addr {
  ibv_gid sgid, dgid;
  __be16 pkey;
};

union rdma_end {
  sockaddr any;
  sockaddr_in sin;
  sockaddr_in6 sin6;
  sockaddr_storage storage;
};

struct rdma_route {
  rdma_end source, destination;
  rdma_ib_addr ib;
  ibv_sa_path_rec* path_rec;
  int num_paths;
};

struct rdma_event_channel {
  int fd;
};

struct rdma_cm_event;

struct rdma_cm_id {
  ibv_context* verbs;
  rdma_event_channel* channel;
  void* context;
  ibv_qp* qp;
  rdma_route route;
  rdma_port_space ps;
  uint8_t port_num;
  rdma_cm_event* event;
  ibv_comp_channel* send_cq_channel;
  ibv_cq* send_cq;
  ibv_comp_channel* recv_cq_channel;
  ibv_cq* recv_cq;
  ibv_srq* srq;
  ibv_pd* pd;
  ibv_qp_type qp_type;
};

struct rdma_conn_param {
  const void* private_data;
  uint8_t private_data_len;
  uint8_t responder_resources;
  uint8_t initiator_depth;
  uint8_t flow_control;
  uint8_t retry_count;
  uint8_t rnr_retry_count;
  uint8_t srq;
  uint32_t qp_num;
};

struct rdma_ud_param {
  const void* private_data;
  uint8_t private_data_len;
  ibv_ah_attr ah_attr;
  uint32_t qp_num;
  uint32_t qkey;
};

struct rdma_cm_event {
  rdma_cm_id* id;
  rdma_cm_id* listen_id;
  rdma_cm_event_type event;
  int status;
  union {
    rdma_conn_param conn;
    rdma_ud_param ud;
  } param;
};

struct rdma_addrinfo {
  int ai_flags, ai_family, ai_qp_type, ai_port_space;
  socklen_t ai_src_len, ai_dst_len;
  sockaddr *ai_src_addr, *ai_dst_addr;
  char *ai_src_canonname, *ai_dst_canonname;
  size_t ai_route_len;
  void* ai_route;
  size_t ai_connect_len;
  void* ai_connect;
  rdma_addrinfo* ai_next;
};
static_assert(sizeof(rdma_cm_id) == 416);
static_assert(offsetof(rdma_cm_id, ps) == 344);
static_assert(offsetof(rdma_cm_id, event) == 352);
static_assert(offsetof(rdma_cm_id, qp_type) == 408);
static_assert(sizeof(rdma_route) == 312);
static_assert(offsetof(rdma_route, path_rec) == 296);
static_assert(offsetof(rdma_cm_id, route) == 32);
static_assert(sizeof(rdma_cm_event) == 80);
static_assert(offsetof(rdma_cm_event, param) == 24);
static_assert(sizeof(rdma_conn_param) == 24);
static_assert(offsetof(rdma_conn_param, qp_num) == 16);
static_assert(sizeof(rdma_ud_param) == 56);
static_assert(offsetof(rdma_ud_param, qp_num) == 48);
static_assert(sizeof(rdma_addrinfo) == 96);
static_assert(offsetof(rdma_addrinfo, ai_connect) == 80);
static_assert(sizeof(ibv_sa_path_rec) == 64);
