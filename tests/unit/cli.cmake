# SPDX-FileCopyrightText: 2026 The doorbell authors
# SPDX-License-Identifier: Apache-2.0

doorbell_test(cli_test unit ${CMAKE_CURRENT_LIST_DIR}/cli_test.cpp ${CMAKE_CURRENT_LIST_DIR}/cli_machine_test.cpp)
target_link_libraries(cli_test PRIVATE doorbell_commands)
# It links the whole command line, which the sanitizers of `make test` then need not compile.
doorbell_test(cli_paths_test cli ${CMAKE_CURRENT_LIST_DIR}/cli_paths_test.cpp)
target_link_libraries(cli_paths_test PRIVATE doorbell_commands uring)
