# SPDX-FileCopyrightText: 2026 The doorbell authors
# SPDX-License-Identifier: Apache-2.0

# Rings, PRPs, pattern and memory; the parts that models are made of; the same code by many lanes.
doorbell_test(queue_pair_test unit ${CMAKE_CURRENT_LIST_DIR}/queue_pair_test.cpp)
doorbell_test(prp_test unit ${CMAKE_CURRENT_LIST_DIR}/prp_test.cpp)
doorbell_test(pattern_test unit ${CMAKE_CURRENT_LIST_DIR}/pattern_test.cpp)
doorbell_test(nvme_files_test model ${CMAKE_CURRENT_LIST_DIR}/nvme_files_test.cpp)
doorbell_test(process_parts_test unit ${CMAKE_CURRENT_LIST_DIR}/process_parts_test.cpp)
doorbell_test(memory_test unit ${CMAKE_CURRENT_LIST_DIR}/memory_test.cpp)
doorbell_test(model_parts_test unit ${CMAKE_CURRENT_LIST_DIR}/model_parts_test.cpp)
doorbell_test(io_loop_test unit ${CMAKE_CURRENT_LIST_DIR}/io_loop_test.cpp)
doorbell_test(warp_test unit ${CMAKE_CURRENT_LIST_DIR}/warp_test.cpp ${CMAKE_CURRENT_LIST_DIR}/warp_loop_test.cpp)
