// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// A drop-in libmlx5.so.1: mlx5dv_init_obj hands out rings in ConnectX's format of the drop-in's queues.
// Source of the calls and structures: infiniband/mlx5dv.h of rdma-core 44 and its manual pages.

#include <infiniband/mlx5dv.h>

#include <cerrno>
#include <cstring>

#include "rdma/dropin/hand_out.h"

#define DOORBELL_MLX5 extern "C" __attribute__((visibility("default")))

namespace {

constexpr uint32_t kBlock = 64, kReceive = 16, kCqe = 64;

int queue_pair(mlx5dv_obj& object) {
  doorbell_queue_rings rings = {};
  if (const int refused = doorbell_verbs_queue_rings(object.qp.in, &rings); refused != 0) return refused;
  mlx5dv_qp& out = *object.qp.out;
  const uint64_t asked = out.comp_mask;
  out.dbrec = rings.record;
  out.sq.buf = rings.send;
  out.sq.wqe_cnt = rings.send_blocks;
  out.sq.stride = kBlock;
  out.rq.buf = rings.receive;
  out.rq.wqe_cnt = rings.receive_entries;
  out.rq.stride = kReceive;
  // Size 0: no WQE is copied into the register page, the first 8 bytes alone ring.
  out.bf.reg = rings.doorbell;
  out.bf.size = 0;
  out.comp_mask = 0;
  if ((asked & MLX5DV_QP_MASK_RAW_QP_HANDLES) != 0) {
    out.sqn = out.rqn = object.qp.in->qp_num;
    out.tirn = out.tisn = 0;
    out.comp_mask |= MLX5DV_QP_MASK_RAW_QP_HANDLES;
  }
  return 0;
}

int completion_queue(mlx5dv_obj& object) {
  doorbell_completion_ring ring = {};
  if (const int refused = doorbell_verbs_completion_ring(object.cq.in, &ring); refused != 0) return refused;
  mlx5dv_cq& out = *object.cq.out;
  out.buf = ring.entries;
  out.dbrec = ring.record;
  out.cqe_cnt = ring.count;
  out.cqe_size = kCqe;
  out.cqn = ring.number;
  // The page behind the record: arming stores there, which the drop-in does not look at.
  out.cq_uar = ring.record + 16;
  out.comp_mask = 0;
  return 0;
}

int initialise(mlx5dv_obj* object, uint64_t types) {
  constexpr uint64_t kKnown = MLX5DV_OBJ_QP | MLX5DV_OBJ_CQ | MLX5DV_OBJ_PD;
  if ((types & ~kKnown) != 0) return EOPNOTSUPP;
  int refused = 0;
  if ((types & MLX5DV_OBJ_QP) != 0) refused = queue_pair(*object);
  if (refused == 0 && (types & MLX5DV_OBJ_CQ) != 0) refused = completion_queue(*object);
  if (refused == 0 && (types & MLX5DV_OBJ_PD) != 0) {
    object->pd.out->pdn = object->pd.in->handle;
    object->pd.out->comp_mask = 0;
  }
  return refused;
}

decltype(nullptr) refused(int error) {
  errno = error;
  return nullptr;
}

}  // namespace

DOORBELL_MLX5 bool mlx5dv_is_supported(ibv_device* device) {
  return doorbell_verbs_owns(device) != 0;
}

DOORBELL_MLX5 ibv_context* mlx5dv_open_device(ibv_device* device, mlx5dv_context_attr* attributes) {
  // Objects by the device's own commands (DevX) need the device's firmware.
  if (attributes != nullptr && attributes->flags != 0) return refused(EOPNOTSUPP);
  return ibv_open_device(device);
}

DOORBELL_MLX5 int mlx5dv_query_device(ibv_context* context, mlx5dv_context* out) {
  if (doorbell_verbs_owns(context->device) == 0) return EOPNOTSUPP;
  // Fields that are asked for and not known stay out of the mask.
  *out = {};
  return 0;
}

DOORBELL_MLX5 int mlx5dv_set_context_attr(ibv_context*, mlx5dv_set_ctx_attr_type, void*) {
  return EOPNOTSUPP;
}

DOORBELL_MLX5 int _mlx5dv_query_port(ibv_context*, uint32_t, mlx5dv_port*, size_t) {
  return EOPNOTSUPP;
}

DOORBELL_MLX5 ibv_qp* mlx5dv_create_qp(ibv_context* context, ibv_qp_init_attr_ex* attributes,
                                       mlx5dv_qp_init_attr* own) {
  constexpr uint64_t kFlags = MLX5DV_QP_CREATE_DISABLE_SCATTER_TO_CQE | MLX5DV_QP_CREATE_ALLOW_SCATTER_TO_CQE;
  if (own != nullptr && ((own->comp_mask & ~uint64_t{MLX5DV_QP_INIT_ATTR_MASK_QP_CREATE_FLAGS}) != 0 ||
                         ((own->comp_mask & MLX5DV_QP_INIT_ATTR_MASK_QP_CREATE_FLAGS) != 0 &&
                          (own->create_flags & ~kFlags) != 0)))
    return refused(EOPNOTSUPP);
  return ibv_create_qp_ex(context, attributes);
}

DOORBELL_MLX5 ibv_cq_ex* mlx5dv_create_cq(ibv_context* context, ibv_cq_init_attr_ex* attributes,
                                          mlx5dv_cq_init_attr* own) {
  if (own != nullptr && (own->comp_mask & ~uint64_t{MLX5DV_CQ_INIT_ATTR_MASK_CQE_SIZE}) != 0)
    return refused(EOPNOTSUPP);
  if (own != nullptr && own->comp_mask != 0 && own->cqe_size != kCqe) return refused(EINVAL);
  return ibv_create_cq_ex(context, attributes);
}

// Programs of before rdma-core 15 ask for the first of these; the structures that it fills begin the same.
__asm__(".symver doorbell_init_obj_1_0, mlx5dv_init_obj@MLX5_1.0");
__asm__(".symver doorbell_init_obj_1_2, mlx5dv_init_obj@@MLX5_1.2");
DOORBELL_MLX5 int doorbell_init_obj_1_0(mlx5dv_obj* object, uint64_t types) {
  return initialise(object, types);
}
DOORBELL_MLX5 int doorbell_init_obj_1_2(mlx5dv_obj* object, uint64_t types) {
  return initialise(object, types);
}
