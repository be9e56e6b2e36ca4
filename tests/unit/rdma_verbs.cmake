# SPDX-FileCopyrightText: 2026 The doorbell authors
# SPDX-License-Identifier: Apache-2.0

# The queue pair over a fake provider, and a loop over that.
doorbell_test(verbs_queue_pair_test unit ${CMAKE_CURRENT_LIST_DIR}/verbs_queue_pair_test.cpp)
doorbell_test(rdma_op_loop_test unit ${CMAKE_CURRENT_LIST_DIR}/rdma_op_loop_test.cpp
              ${CMAKE_CURRENT_LIST_DIR}/rdma_op_loop_checks_test.cpp)
# Each file has a lane and a window of its own.
set_target_properties(rdma_op_loop_test PROPERTIES UNITY_BUILD OFF)
# The messages between two processes of an RDMA run, over the loopback interface.
doorbell_test(exchange_test unit ${CMAKE_CURRENT_LIST_DIR}/exchange_test.cpp)
doorbell_test(rdma_swap_test unit ${CMAKE_CURRENT_LIST_DIR}/rdma_swap_test.cpp)
doorbell_test(rdma_cell_message_test unit ${CMAKE_CURRENT_LIST_DIR}/rdma_cell_message_test.cpp)

# The device over a fake libibverbs.
doorbell_fake_driver(fake_verbs ibverbs fake_verbs.cpp)
doorbell_fake_driver(fake_verbs_incomplete ibverbs fake_cuda.cpp)
doorbell_test(verbs_device_test unit ${CMAKE_CURRENT_LIST_DIR}/verbs_device_test.cpp)
add_dependencies(verbs_device_test fake_verbs fake_verbs_incomplete)
target_compile_definitions(verbs_device_test PRIVATE
  FAKE_VERBS="$<TARGET_FILE:fake_verbs>" FAKE_VERBS_INCOMPLETE="$<TARGET_FILE:fake_verbs_incomplete>")

# The queues of a ConnectX, over a fake libmlx5 that is its own libibverbs.
doorbell_fake_driver(fake_mlx5 mlx5 fake_mlx5.cpp fake_verbs.cpp)
doorbell_test(mlx5_device_test unit ${CMAKE_CURRENT_LIST_DIR}/mlx5_device_test.cpp)
add_dependencies(mlx5_device_test fake_mlx5 fake_verbs)
target_compile_definitions(mlx5_device_test PRIVATE
  FAKE_MLX5="$<TARGET_FILE:fake_mlx5>" FAKE_VERBS="$<TARGET_FILE:fake_verbs>")
