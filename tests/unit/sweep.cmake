# SPDX-FileCopyrightText: 2026 The doorbell authors
# SPDX-License-Identifier: Apache-2.0

# Plans, folders, published rows, comparisons.
set(here ${CMAKE_CURRENT_LIST_DIR})
doorbell_test(sweep_test unit ${here}/sweep_test.cpp ${here}/sweep_compare_test.cpp
              ${here}/sweep_files_test.cpp ${here}/sweep_pairs_test.cpp ${here}/sweep_shift_test.cpp)
target_link_libraries(sweep_test PRIVATE doorbell_sweep)
target_compile_definitions(sweep_test PRIVATE DOORBELL_TEST_DATA="${here}/data")
