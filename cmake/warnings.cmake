# SPDX-FileCopyrightText: 2026 The doorbell authors
# SPDX-License-Identifier: Apache-2.0

# Warnings and sanitizers for one target; the same for the library, the program and the tests.
function(doorbell_warnings target)
  target_compile_options(${target} PRIVATE
    $<$<COMPILE_LANGUAGE:CXX>:-Wall -Wextra -Wshadow -Wconversion -Wnon-virtual-dtor -Wold-style-cast
      -Wimplicit-fallthrough -Wundef>)
  # GCC 12 sees overlapping and oversized copies in std::string's operator+ where there are none (PR 105329).
  # And it notes, where a 64-byte aligned entry is passed by value, that GCC 4.5 did so differently.
  target_compile_options(${target} PRIVATE $<$<COMPILE_LANG_AND_ID:CXX,GNU>:-Wno-restrict $<$<STREQUAL:${DOORBELL_SANITIZE},address>:-Wno-maybe-uninitialized> -Wno-array-bounds
    -Wno-stringop-overflow -Wno-psabi>)
  if(DOORBELL_WERROR)
    target_compile_options(${target} PRIVATE $<$<COMPILE_LANGUAGE:CXX>:-Werror>)
  endif()
  if(DOORBELL_SANITIZE STREQUAL "address")
    target_compile_options(${target} PRIVATE -fsanitize=address,undefined -fno-sanitize-recover=all
                                             -fno-omit-frame-pointer)
    target_link_options(${target} PUBLIC -fsanitize=address,undefined)
  elseif(DOORBELL_SANITIZE STREQUAL "thread")
    target_compile_options(${target} PRIVATE -fsanitize=thread -fno-omit-frame-pointer)
    target_link_options(${target} PUBLIC -fsanitize=thread)
  elseif(NOT DOORBELL_SANITIZE STREQUAL "")
    message(FATAL_ERROR "DOORBELL_SANITIZE is '${DOORBELL_SANITIZE}': give address, thread or nothing")
  endif()
endfunction()
