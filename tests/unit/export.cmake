# SPDX-FileCopyrightText: 2026 The doorbell authors
# SPDX-License-Identifier: Apache-2.0

# Live figures for other programs.
doorbell_test(export_test unit ${CMAKE_CURRENT_LIST_DIR}/export_test.cpp)
