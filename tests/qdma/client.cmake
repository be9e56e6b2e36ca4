# SPDX-FileCopyrightText: 2026 The doorbell authors
# SPDX-License-Identifier: Apache-2.0

doorbell_test(qdma_library_test model card_test.cpp other_run_test.cpp long_transfer_test.cpp kernel_driver_test.cpp gpu_stream_test.cpp)
doorbell_test(qdma_submit_test model submit_test.cpp socket_driver_test.cpp patience_test.cpp)
doorbell_test(qdma_conformance_test model conformance_test.cpp entries.cpp)
# Through the daemon too, where it is built.
if(TARGET doorbelld)
  target_compile_definitions(qdma_conformance_test PRIVATE DOORBELLD="$<TARGET_FILE:doorbelld>")
  add_dependencies(qdma_conformance_test doorbelld)
endif()

add_executable(qdma_stream_example ${PROJECT_SOURCE_DIR}/examples/qdma_stream/qdma_stream.cpp)
target_link_libraries(qdma_stream_example PRIVATE doorbell)
doorbell_warnings(qdma_stream_example)
doorbell_program_test(qdma_stream_example model $<TARGET_FILE:qdma_stream_example>)

# The C interface, from a program of its standard. The sources are C, the library behind is not.
add_executable(qdma_c_test c_interface.c)
target_compile_options(qdma_c_test PRIVATE -std=c99 -D_DEFAULT_SOURCE -Wall -Wextra -pedantic -Werror)
target_link_libraries(qdma_c_test PRIVATE doorbell)
set_target_properties(qdma_c_test PROPERTIES LINKER_LANGUAGE CXX)
doorbell_program_test(qdma_c_test model)
