# SPDX-FileCopyrightText: 2026 The doorbell authors
# SPDX-License-Identifier: Apache-2.0

doorbell_test(cxi_formats_test unit ${CMAKE_CURRENT_LIST_DIR}/cxi_formats_test.cpp)
doorbell_test(cxi_command_queue_test unit ${CMAKE_CURRENT_LIST_DIR}/cxi_command_queue_test.cpp)
doorbell_test(cxi_put_queue_test unit ${CMAKE_CURRENT_LIST_DIR}/cxi_put_queue_test.cpp)
