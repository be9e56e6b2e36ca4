# SPDX-FileCopyrightText: 2026 The doorbell authors
# SPDX-License-Identifier: Apache-2.0

# The daemon's logic, with a card, sockets and threads that only keep books.
doorbell_test(qdma_daemon_test unit ${CMAKE_CURRENT_LIST_DIR}/daemon_protocol_test.cpp ${CMAKE_CURRENT_LIST_DIR}/daemon_roles_test.cpp
              ${CMAKE_CURRENT_LIST_DIR}/daemon_service_test.cpp ${CMAKE_CURRENT_LIST_DIR}/daemon_buffers_test.cpp
              ${CMAKE_CURRENT_LIST_DIR}/daemon_descriptors_test.cpp ${CMAKE_CURRENT_LIST_DIR}/daemon_queue_pairs_test.cpp
              ${CMAKE_CURRENT_LIST_DIR}/daemon_transfers_test.cpp)
target_compile_definitions(qdma_daemon_test PRIVATE DOORBELL_GOLDEN_DIR="${CMAKE_SOURCE_DIR}/tests/golden")

# The program, where it is built.
if(TARGET doorbelld)
  doorbell_test(qdma_daemon_process_test model ${CMAKE_CURRENT_LIST_DIR}/daemon_process_test.cpp
                ${CMAKE_CURRENT_LIST_DIR}/daemon_hostile_test.cpp)
  target_compile_definitions(qdma_daemon_process_test PRIVATE DOORBELLD="$<TARGET_FILE:doorbelld>")
  add_dependencies(qdma_daemon_process_test doorbelld)
endif()
