# SPDX-FileCopyrightText: 2026 The doorbell authors
# SPDX-License-Identifier: Apache-2.0

# Asks a GoogleTest program for its suites and writes a ctest case for each. Each leaves its results in RESULTS,
# where scripts/test-summary.py finds them.
# Usage: cmake -D NAME= -D PROGRAM= -D PROPERTIES=KEY|VALUE|... -D RESULTS=FOLDER -D OUT=FILE -P list_suites.cmake
execute_process(COMMAND ${PROGRAM} --gtest_list_tests OUTPUT_VARIABLE listed RESULT_VARIABLE failed)
# A suite is a line of its own that ends with a dot, its cases the lines below it, which are indented.
string(REGEX MATCHALL "(^|\n)[A-Za-z0-9_/]+\\.( +#|\n)" lines "\n${listed}")
if(failed EQUAL 77)
  set(lines "\n*. #")  # what it needs is not here now; when it runs it may be
elseif(failed OR NOT lines)
  message(FATAL_ERROR "${PROGRAM} --gtest_list_tests: ${failed}, no suites\n${listed}")
endif()
string(REPLACE "|" "]=] [=[" properties "${PROPERTIES}")
set(text "")
foreach(line ${lines})
  string(REGEX REPLACE "\n?([A-Za-z0-9_/*]+)\\.( +#|\n)" "\\1" suite "${line}")
  set(case "${NAME}.${suite}")
  if(suite STREQUAL "*")
    set(case ${NAME})
  endif()
  string(REPLACE "/" "_" file "${case}")
  string(APPEND text "add_test([=[${case}]=] [=[${PROGRAM}]=] [=[--gtest_filter=${suite}.*]=] "
                     "[=[--gtest_output=xml:${RESULTS}/${file}.xml]=])\n"
                     "set_tests_properties([=[${case}]=] PROPERTIES [=[${properties}]=])\n")
endforeach()
file(WRITE ${OUT} "${text}")
