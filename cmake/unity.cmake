# SPDX-FileCopyrightText: 2026 The doorbell authors
# SPDX-License-Identifier: Apache-2.0

# Under a sanitizer most of a compilation is code that every file has in common: strings, containers, JSON, formatting.
# Compiled as one file, the sources of a folder share it. Off otherwise, where one changed file has to build fast.
option(DOORBELL_UNITY "compile the sources of a folder as one file" OFF)

# doorbell_unity(TARGET): call it when all sources are known. Names in the anonymous namespaces of a folder must differ;
# a source that cannot share a file says so with SKIP_UNITY_BUILD_INCLUSION.
function(doorbell_unity target)
  if(NOT DOORBELL_UNITY)
    return()
  endif()
  get_target_property(sources ${target} SOURCES)
  foreach(source ${sources})
    if(source MATCHES "\\.cpp$")
      cmake_path(ABSOLUTE_PATH source OUTPUT_VARIABLE absolute)
      cmake_path(RELATIVE_PATH absolute BASE_DIRECTORY ${PROJECT_SOURCE_DIR} OUTPUT_VARIABLE relative)
      cmake_path(GET relative PARENT_PATH folder)
      string(MAKE_C_IDENTIFIER "${folder}" group)
      set_property(SOURCE ${source} TARGET_DIRECTORY ${target} PROPERTY UNITY_GROUP ${group})
    endif()
  endforeach()
  set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP)
endfunction()
