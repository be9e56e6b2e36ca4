# SPDX-FileCopyrightText: 2026 The doorbell authors
# SPDX-License-Identifier: Apache-2.0

# Removes the folder of a bundle's libraries from an ELF file. Usage: cmake -DFILE= -P no_rpath.cmake
file(READ ${FILE} magic LIMIT 4 HEX)
if(magic STREQUAL "7f454c46")
  file(RPATH_REMOVE FILE ${FILE})
endif()
