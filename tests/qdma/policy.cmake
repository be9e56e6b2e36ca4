# SPDX-FileCopyrightText: 2026 The doorbell authors
# SPDX-License-Identifier: Apache-2.0

doorbell_test(qdma_policy_test unit policy_test.cpp)
target_compile_definitions(qdma_policy_test PRIVATE DOORBELL_GOLDEN_DIR="${PROJECT_SOURCE_DIR}/tests/golden")

doorbell_test(qdma_path_test unit path_test.cpp)
target_link_libraries(qdma_path_test PRIVATE doorbell_commands)
