# SPDX-FileCopyrightText: 2026 The doorbell authors
# SPDX-License-Identifier: Apache-2.0

# Headers of others that most files include, compiled once a target: a third off the time of a build. Sources
# include what they use all the same; clang-tidy's configuration (scripts/lint.sh) compiles them without.
option(DOORBELL_PCH "precompile the headers of the standard library, fmt and nlohmann-json" ON)

# ccache takes part only when the compiler notes what a precompiled header holds.
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  set(doorbell_pch_options -fpch-preprocess)
endif()

function(doorbell_precompile target)
  if(NOT DOORBELL_PCH)
    return()
  endif()
  target_compile_options(${target} PRIVATE $<$<COMPILE_LANGUAGE:CXX>:${doorbell_pch_options}>)
  target_precompile_headers(${target} PRIVATE
    <algorithm> <array> <atomic> <chrono> <filesystem> <functional> <map> <memory> <optional> <span> <string>
    <thread> <vector> <fmt/format.h> ${PROJECT_SOURCE_DIR}/cmake/json_first.hpp
    ${PROJECT_SOURCE_DIR}/src/system/json_instances.hpp ${ARGN})
endfunction()

# The headers that `from` has compiled serve `target` too: both must be compiled alike.
function(doorbell_precompiled_by target from)
  if(DOORBELL_PCH)
    target_compile_options(${target} PRIVATE ${doorbell_pch_options})
    target_precompile_headers(${target} REUSE_FROM ${from})
  endif()
endfunction()
