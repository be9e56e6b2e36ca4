# SPDX-FileCopyrightText: 2026 The doorbell authors
# SPDX-License-Identifier: Apache-2.0

set(here ${CMAKE_CURRENT_LIST_DIR})
doorbell_test(rdma_formats_test unit ${here}/rdma_formats_test.cpp ${here}/rdma_format_refusals_test.cpp
              ${here}/rdma_words_test.cpp)
# One NIC after the other; each file has a lane and a size of its own.
doorbell_test(rdma_queue_pair_test unit ${here}/rdma_queue_pair_test.cpp ${here}/rdma_model_rings_test.cpp)
doorbell_test(rdma_queue_pair_counts_test unit ${here}/rdma_queue_pair_counts_test.cpp)
doorbell_test(rma_op_payload_test unit ${here}/rma_op_payload_test.cpp)
