# SPDX-FileCopyrightText: 2026 The doorbell authors
# SPDX-License-Identifier: Apache-2.0

# The GPU layer against fake driver libraries; needs no GPU.

# doorbell_fake_driver(TARGET SONAME SOURCES...): a shared library in a folder of its own, where only
# the test finds it.
function(doorbell_fake_driver target name)
  add_library(${target} SHARED ${ARGN})
  target_include_directories(${target} PRIVATE ${CMAKE_SOURCE_DIR}/include)
  set_target_properties(${target} PROPERTIES
    OUTPUT_NAME ${name} SOVERSION 1 CXX_VISIBILITY_PRESET default
    LIBRARY_OUTPUT_DIRECTORY ${CMAKE_CURRENT_BINARY_DIR}/${target})
  doorbell_warnings(${target})
endfunction()

doorbell_fake_driver(fake_cuda cuda fake_cuda.cpp)
doorbell_fake_driver(fake_cuda_incomplete cuda fake_cuda.cpp)
target_compile_definitions(fake_cuda_incomplete PRIVATE FAKE_CUDA_WITHOUT_MEM_ALLOC)
doorbell_fake_driver(fake_hip amdhip64 fake_hip.cpp fake_cuda.cpp)

doorbell_test(gpu_loader_test unit gpu_loader_test.cpp gpu_kernels_test.cpp)
add_dependencies(gpu_loader_test fake_cuda fake_cuda_incomplete fake_hip)
target_compile_definitions(gpu_loader_test PRIVATE
  FAKE_CUDA="$<TARGET_FILE:fake_cuda>"
  FAKE_CUDA_INCOMPLETE="$<TARGET_FILE:fake_cuda_incomplete>"
  FAKE_HIP="$<TARGET_FILE:fake_hip>")
