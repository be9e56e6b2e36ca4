# SPDX-FileCopyrightText: 2026 The doorbell authors
# SPDX-License-Identifier: Apache-2.0

# doorbell_optional(VARIABLE MODULE VERSION PART PACKAGE): the library that PART needs, by pkg-config, as PkgConfig::VARIABLE where
# VARIABLE_FOUND. What is found or left out is said; PACKAGE is Debian's.
macro(doorbell_optional variable module version part package)
  find_package(PkgConfig QUIET)
  if(PkgConfig_FOUND)
    pkg_check_modules(${variable} QUIET IMPORTED_TARGET "${module}>=${version}")
  endif()
  if(${variable}_FOUND)
    message(STATUS "${part}: ${module} ${${variable}_VERSION}")
  else()
    message(STATUS "${part}: left out, pkg-config finds no ${module} ${version} or newer (Debian: ${package})")
  endif()
endmacro()
