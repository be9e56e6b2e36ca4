# SPDX-FileCopyrightText: 2026 The doorbell authors
# SPDX-License-Identifier: Apache-2.0

doorbell_test(rdma_formats_test unit ${CMAKE_CURRENT_LIST_DIR}/rdma_formats_test.cpp
              ${CMAKE_CURRENT_LIST_DIR}/rdma_format_refusals_test.cpp ${CMAKE_CURRENT_LIST_DIR}/rdma_words_test.cpp)
doorbell_test(rdma_queue_pair_test unit ${CMAKE_CURRENT_LIST_DIR}/rdma_queue_pair_test.cpp)
doorbell_test(rdma_queue_pair_counts_test unit ${CMAKE_CURRENT_LIST_DIR}/rdma_queue_pair_counts_test.cpp)
doorbell_test(rma_op_payload_test unit ${CMAKE_CURRENT_LIST_DIR}/rma_op_payload_test.cpp)
doorbell_test(rdma_model_rings_test unit ${CMAKE_CURRENT_LIST_DIR}/rdma_model_rings_test.cpp)
