# SPDX-FileCopyrightText: 2026 The doorbell authors
# SPDX-License-Identifier: Apache-2.0

set(here ${CMAKE_CURRENT_LIST_DIR})
doorbell_test(cxi_test unit ${here}/cxi_formats_test.cpp ${here}/cxi_command_queue_test.cpp ${here}/cxi_put_queue_test.cpp)
