# SPDX-FileCopyrightText: 2026 The doorbell authors
# SPDX-License-Identifier: Apache-2.0

# Most of a compilation is code that every file has in common: strings, containers, JSON, formatting; under a sanitizer
# three quarters of it. Sources of a folder that are compiled as one file share it; few of them, so that one changed
# file still builds fast, or all, where the whole is compiled once.
set(DOORBELL_UNITY 0 CACHE STRING "so many sources of a folder are compiled as one file; 0: each alone")

# doorbell_unity(TARGET): call it when all sources are known. Names in the anonymous namespaces of a folder must differ;
# a source that cannot share a file says so with SKIP_UNITY_BUILD_INCLUSION.
function(doorbell_unity target)
  if(NOT DOORBELL_UNITY)
    return()
  endif()
  get_target_property(sources ${target} SOURCES)
  get_target_property(its_folder ${target} SOURCE_DIR)
  foreach(source ${sources})
    if(source MATCHES "\\.cpp$")
      cmake_path(ABSOLUTE_PATH source BASE_DIRECTORY ${its_folder} OUTPUT_VARIABLE absolute)
      cmake_path(RELATIVE_PATH absolute BASE_DIRECTORY ${PROJECT_SOURCE_DIR} OUTPUT_VARIABLE relative)
      cmake_path(GET relative PARENT_PATH folder)
      string(MAKE_C_IDENTIFIER "${folder}" group)
      if(NOT DEFINED count_${group})
        set(count_${group} 0)
      endif()
      math(EXPR part "${count_${group}} / ${DOORBELL_UNITY}")
      math(EXPR count_${group} "${count_${group}} + 1")
      set_property(SOURCE ${absolute} TARGET_DIRECTORY ${target} PROPERTY UNITY_GROUP ${group}_${part})
    endif()
  endforeach()
  set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP)
endfunction()
