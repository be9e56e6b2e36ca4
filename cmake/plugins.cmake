# SPDX-FileCopyrightText: 2026 The doorbell authors
# SPDX-License-Identifier: Apache-2.0

# Plugins: shared modules beside the program, which it loads at run time, so that it does not link what they need.

# Where `cmake --install` puts them.
set(DOORBELL_PLUGIN_FOLDER ${CMAKE_INSTALL_LIBDIR}/doorbell)

# doorbell_build_id(OUT HEADERS...): changes with what the program and a plugin must agree on: these headers, the
# compiler, and what the sanitizers do to the layout of types.
function(doorbell_build_id out)
  set(text "${PROJECT_VERSION} ${CMAKE_CXX_COMPILER_ID} ${CMAKE_CXX_COMPILER_VERSION} ${DOORBELL_SANITIZE}")
  foreach(header ${ARGN})
    set_property(DIRECTORY ${PROJECT_SOURCE_DIR} APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/${header})
    file(SHA256 ${PROJECT_SOURCE_DIR}/${header} sum)
    string(APPEND text " ${sum}")
  endforeach()
  string(SHA256 id "${text}")
  string(SUBSTRING ${id} 0 16 id)
  set(${out} ${id} PARENT_SCOPE)
endfunction()
