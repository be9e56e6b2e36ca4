// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

/* Between the drop-in libibverbs, which is the one with the NIC, and the drop-in libmlx5 and librdmacm. */
#pragma once

#include <infiniband/verbs.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct doorbell_queue_rings {
  void* send;
  uint32_t send_blocks; /* of 64 bytes */
  void* receive;
  uint32_t receive_entries; /* of 16 bytes */
  uint32_t* record;
  uint64_t* doorbell;
};

struct doorbell_completion_ring {
  void* entries;
  uint32_t count; /* of 64 bytes */
  uint32_t* record;
  uint32_t number;
};

/* Whether the device is the drop-in's own. */
int doorbell_verbs_owns(struct ibv_device* device);
/* From then on the queue's requests come from its rings, and its program must not post by verbs. Return an
 * errno value. */
int doorbell_verbs_queue_rings(struct ibv_qp* qp, struct doorbell_queue_rings* into);
int doorbell_verbs_completion_ring(struct ibv_cq* cq, struct doorbell_completion_ring* into);
/* ibv_create_qp for queue pair 1, of which a device has one in each process: NULL and EBUSY for a second. */
struct ibv_qp* doorbell_verbs_management_queue(struct ibv_pd* pd, struct ibv_qp_init_attr* attributes);

#ifdef __cplusplus
}
#endif
