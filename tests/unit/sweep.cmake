# SPDX-FileCopyrightText: 2026 The doorbell authors
# SPDX-License-Identifier: Apache-2.0

# Plans, folders, published rows, comparisons.
doorbell_test(sweep_test unit ${CMAKE_CURRENT_LIST_DIR}/sweep_test.cpp)
target_link_libraries(sweep_test PRIVATE doorbell_sweep)

doorbell_test(sweep_compare_test unit ${CMAKE_CURRENT_LIST_DIR}/sweep_compare_test.cpp)
target_link_libraries(sweep_compare_test PRIVATE doorbell_sweep)
target_compile_definitions(sweep_compare_test PRIVATE DOORBELL_TEST_DATA="${CMAKE_CURRENT_LIST_DIR}/data")
