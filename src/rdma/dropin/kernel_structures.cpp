// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Copies between the structures of verbs and those of the kernel's connection manager (librdmacm calls them).
#include <infiniband/sa.h>
#include <rdma/ib_user_sa.h>
#include <rdma/ib_user_verbs.h>

#include <cstring>

#include "rdma/dropin/verbs_abi.hpp"

DOORBELL_VERBS void ibv_copy_ah_attr_from_kern(ibv_ah_attr* into, ib_uverbs_ah_attr* from) {
  std::memcpy(into->grh.dgid.raw, from->grh.dgid, sizeof into->grh.dgid);
  into->grh.flow_label = from->grh.flow_label;
  into->grh.sgid_index = from->grh.sgid_index;
  into->grh.hop_limit = from->grh.hop_limit;
  into->grh.traffic_class = from->grh.traffic_class;
  into->dlid = from->dlid;
  into->sl = from->sl;
  into->src_path_bits = from->src_path_bits;
  into->static_rate = from->static_rate;
  into->is_global = from->is_global;
  into->port_num = from->port_num;
}

DOORBELL_VERBS void ibv_copy_qp_attr_from_kern(ibv_qp_attr* into, ib_uverbs_qp_attr* from) {
  into->cur_qp_state = static_cast<ibv_qp_state>(from->cur_qp_state);
  into->path_mtu = static_cast<ibv_mtu>(from->path_mtu);
  into->path_mig_state = static_cast<ibv_mig_state>(from->path_mig_state);
  into->qkey = from->qkey;
  into->rq_psn = from->rq_psn;
  into->sq_psn = from->sq_psn;
  into->dest_qp_num = from->dest_qp_num;
  into->qp_access_flags = from->qp_access_flags;
  into->cap.max_send_wr = from->max_send_wr;
  into->cap.max_recv_wr = from->max_recv_wr;
  into->cap.max_send_sge = from->max_send_sge;
  into->cap.max_recv_sge = from->max_recv_sge;
  into->cap.max_inline_data = from->max_inline_data;
  ibv_copy_ah_attr_from_kern(&into->ah_attr, &from->ah_attr);
  ibv_copy_ah_attr_from_kern(&into->alt_ah_attr, &from->alt_ah_attr);
  into->pkey_index = from->pkey_index;
  into->alt_pkey_index = from->alt_pkey_index;
  into->en_sqd_async_notify = from->en_sqd_async_notify;
  into->sq_draining = from->sq_draining;
  into->max_rd_atomic = from->max_rd_atomic;
  into->max_dest_rd_atomic = from->max_dest_rd_atomic;
  into->min_rnr_timer = from->min_rnr_timer;
  into->port_num = from->port_num;
  into->timeout = from->timeout;
  into->retry_cnt = from->retry_cnt;
  into->rnr_retry = from->rnr_retry;
  into->alt_port_num = from->alt_port_num;
  into->alt_timeout = from->alt_timeout;
}

DOORBELL_VERBS void ibv_copy_path_rec_from_kern(ibv_sa_path_rec* into, ib_user_path_rec* from) {
  std::memcpy(into->dgid.raw, from->dgid, sizeof into->dgid);
  std::memcpy(into->sgid.raw, from->sgid, sizeof into->sgid);
  into->dlid = from->dlid;
  into->slid = from->slid;
  into->raw_traffic = static_cast<int>(from->raw_traffic);
  into->flow_label = from->flow_label;
  into->hop_limit = static_cast<uint8_t>(from->hop_limit);
  into->traffic_class = from->traffic_class;
  into->reversible = static_cast<int>(from->reversible);
  into->numb_path = from->numb_path;
  into->pkey = from->pkey;
  into->sl = from->sl;
  into->mtu_selector = from->mtu_selector;
  into->mtu = static_cast<uint8_t>(from->mtu);
  into->rate_selector = from->rate_selector;
  into->rate = from->rate;
  into->packet_life_time_selector = from->packet_life_time_selector;
  into->packet_life_time = from->packet_life_time;
  into->preference = from->preference;
}

DOORBELL_VERBS void ibv_copy_path_rec_to_kern(ib_user_path_rec* into, ibv_sa_path_rec* from) {
  std::memset(into, 0, sizeof *into);
  std::memcpy(into->dgid, from->dgid.raw, sizeof from->dgid);
  std::memcpy(into->sgid, from->sgid.raw, sizeof from->sgid);
  into->dlid = from->dlid;
  into->slid = from->slid;
  into->raw_traffic = static_cast<unsigned>(from->raw_traffic);
  into->flow_label = from->flow_label;
  into->hop_limit = from->hop_limit;
  into->traffic_class = from->traffic_class;
  into->reversible = static_cast<unsigned>(from->reversible);
  into->numb_path = from->numb_path;
  into->pkey = from->pkey;
  into->sl = from->sl;
  into->mtu_selector = from->mtu_selector;
  into->mtu = from->mtu;
  into->rate_selector = from->rate_selector;
  into->rate = from->rate;
  into->packet_life_time_selector = from->packet_life_time_selector;
  into->packet_life_time = from->packet_life_time;
  into->preference = from->preference;
}
