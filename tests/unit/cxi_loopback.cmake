# SPDX-FileCopyrightText: 2026 The doorbell authors
# SPDX-License-Identifier: Apache-2.0

doorbell_test(cxi_loopback_test unit
  ${CMAKE_CURRENT_LIST_DIR}/cxi_loopback_options_test.cpp ${CMAKE_CURRENT_LIST_DIR}/cxi_loopback_texts_test.cpp)
target_link_libraries(cxi_loopback_test PRIVATE doorbell_commands)
