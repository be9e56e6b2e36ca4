# SPDX-FileCopyrightText: 2026 The doorbell authors
# SPDX-License-Identifier: Apache-2.0

# The queue pair over a made-up provider.
doorbell_test(verbs_queue_pair_test unit ${CMAKE_CURRENT_LIST_DIR}/verbs_queue_pair_test.cpp)
# What two processes of an RDMA run tell each other, over the loopback interface.
doorbell_test(rdma_exchange_test unit ${CMAKE_CURRENT_LIST_DIR}/rdma_exchange_test.cpp)
