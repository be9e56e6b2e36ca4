# SPDX-FileCopyrightText: 2026 The doorbell authors
# SPDX-License-Identifier: Apache-2.0

# The Cassini back end over a fake libcxi, of this version and of older ones.
doorbell_fake_driver(fake_libcxi cxi fake_libcxi.cpp)
doorbell_fake_driver(fake_libcxi_1_8 cxi fake_libcxi.cpp)
target_compile_definitions(fake_libcxi_1_8 PRIVATE FAKE_CXI_WITHOUT_1_9)
doorbell_fake_driver(fake_libcxi_1_1 cxi fake_libcxi.cpp)
target_compile_definitions(fake_libcxi_1_1 PRIVATE FAKE_CXI_WITHOUT_1_2 FAKE_CXI_WITHOUT_1_9)

doorbell_test(cxi_libcxi_test unit ${CMAKE_CURRENT_LIST_DIR}/cxi_libcxi_test.cpp
              ${CMAKE_CURRENT_LIST_DIR}/cxi_libcxi_objects_test.cpp)
add_dependencies(cxi_libcxi_test fake_libcxi fake_libcxi_1_8 fake_libcxi_1_1)
target_compile_definitions(cxi_libcxi_test PRIVATE
  FAKE_LIBCXI="$<TARGET_FILE:fake_libcxi>"
  FAKE_LIBCXI_1_8="$<TARGET_FILE:fake_libcxi_1_8>"
  FAKE_LIBCXI_1_1="$<TARGET_FILE:fake_libcxi_1_1>")
