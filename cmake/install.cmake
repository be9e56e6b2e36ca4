# SPDX-FileCopyrightText: 2026 The doorbell authors
# SPDX-License-Identifier: Apache-2.0

# The files that `cmake --install` installs, and the packages through which other projects find the library. Its components
# are what Debian's packages are made of (packaging/debian/rules): program and documents, runtime, library, daemon.

include(CMakePackageConfigHelpers)

# The program finds the libraries that a bundle carries beside it, and everything else as usual. RPATH,
# not RUNPATH: a bundle must win over an LD_LIBRARY_PATH that happens to hold an older libstdc++.
doorbell_searches(doorbell_cli "$ORIGIN/../lib")
target_link_options(doorbell_cli PRIVATE -Wl,--disable-new-dtags)
install(TARGETS doorbell_cli RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT program)

# The same program under other names: links beside it, here and where it is installed.
get_property(doorbell_names GLOBAL PROPERTY DOORBELL_PROGRAMS)
foreach(name ${doorbell_names})
  add_custom_command(TARGET doorbell_cli POST_BUILD
    COMMAND ${CMAKE_COMMAND} -E create_symlink doorbell ${CMAKE_RUNTIME_OUTPUT_DIRECTORY}/${name})
  install(FILES ${CMAKE_RUNTIME_OUTPUT_DIRECTORY}/${name} DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT program)
endforeach()

# --- the library, for find_package(doorbell) and pkg-config ------------------------------------------
install(TARGETS doorbell_whole EXPORT doorbell ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT library)
install(TARGETS doorbell_c EXPORT doorbell LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}
        COMPONENT runtime NAMELINK_COMPONENT library)
install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/doorbell DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT library
        FILES_MATCHING PATTERN "*.hpp" PATTERN "*.h")

set(package ${CMAKE_INSTALL_LIBDIR}/cmake/doorbell)
set(package_files ${CMAKE_CURRENT_BINARY_DIR}/package)
install(EXPORT doorbell NAMESPACE doorbell:: FILE doorbellTargets.cmake DESTINATION ${package} COMPONENT library)
configure_package_config_file(cmake/doorbellConfig.cmake.in ${package_files}/doorbellConfig.cmake
                              INSTALL_DESTINATION ${package})
# Before 1.0 a new minor version may change the interface.
write_basic_package_version_file(${package_files}/doorbellConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${package_files}/doorbellConfig.cmake ${package_files}/doorbellConfigVersion.cmake
        DESTINATION ${package} COMPONENT library)

# Relative to the file's own folder, so that a staged or moved tree works.
file(RELATIVE_PATH pc_prefix "/${CMAKE_INSTALL_LIBDIR}/pkgconfig" "/")
string(REGEX REPLACE "/$" "" pc_prefix "${pc_prefix}")
foreach(name doorbell doorbell-c)
  configure_file(cmake/${name}.pc.in ${package_files}/${name}.pc @ONLY)
endforeach()
install(FILES ${package_files}/doorbell.pc ${package_files}/doorbell-c.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT library)

# --- documents that the program writes of itself -----------------------------------------------------
set(documents ${CMAKE_CURRENT_BINARY_DIR}/documents)
file(MAKE_DIRECTORY ${documents}/man1)
add_custom_command(OUTPUT ${documents}/stamp
  COMMAND ${CMAKE_COMMAND} -E rm -rf ${documents}/man1
  COMMAND ${CMAKE_COMMAND} -E make_directory ${documents}/man1
  COMMAND doorbell_cli man --directory ${documents}/man1
  COMMAND doorbell_cli completion bash > ${documents}/doorbell.bash
  COMMAND doorbell_cli completion zsh > ${documents}/doorbell.zsh
  COMMAND doorbell_cli completion fish > ${documents}/doorbell.fish
  COMMAND ${CMAKE_COMMAND} -E touch ${documents}/stamp
  DEPENDS doorbell_cli
  COMMENT "Writing the manual pages and the completion of shells"
  VERBATIM)
add_custom_target(doorbell_documents ALL DEPENDS ${documents}/stamp)
install(DIRECTORY ${documents}/man1 DESTINATION ${CMAKE_INSTALL_MANDIR} COMPONENT program PATTERN "*.8" EXCLUDE)
install(FILES ${documents}/doorbell.bash DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions
        RENAME doorbell COMPONENT program)
# zsh finds the programs that a file is for in its first line.
install(FILES ${documents}/doorbell.zsh DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/vendor-completions
        RENAME _doorbell COMPONENT program)
install(FILES ${documents}/doorbell.fish DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d
        COMPONENT program)
# Bash and fish look for a command's completion by its name.
foreach(name ${doorbell_names})
  file(CREATE_LINK doorbell ${documents}/${name} SYMBOLIC)
  file(CREATE_LINK doorbell.fish ${documents}/${name}.fish SYMBOLIC)
  install(FILES ${documents}/${name}.fish DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d
          COMPONENT program)
  install(FILES ${documents}/${name} DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions
          COMPONENT program)
endforeach()

# --- data --------------------------------------------------------------------------------------------
install(FILES ${PROJECT_SOURCE_DIR}/schema/results-1.schema.json
        DESTINATION ${CMAKE_INSTALL_DATADIR}/doorbell/schema COMPONENT program)
install(DIRECTORY ${PROJECT_SOURCE_DIR}/python/doorbell_report
        DESTINATION ${CMAKE_INSTALL_DATADIR}/doorbell/python COMPONENT program
        FILES_MATCHING PATTERN "*.py" PATTERN "templates/*" PATTERN "__pycache__" EXCLUDE)
install(DIRECTORY ${PROJECT_SOURCE_DIR}/plans DESTINATION ${CMAKE_INSTALL_DATADIR}/doorbell COMPONENT program)

# --- licence, documents and examples, laid out as in the source so that their links to each other lead somewhere ------
install(FILES ${PROJECT_SOURCE_DIR}/LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT program)
install(FILES ${PROJECT_SOURCE_DIR}/README.md ${PROJECT_SOURCE_DIR}/CHANGELOG.md ${PROJECT_SOURCE_DIR}/SECURITY.md
        DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT documents)
install(DIRECTORY ${PROJECT_SOURCE_DIR}/docs DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT documents)
install(DIRECTORY ${PROJECT_SOURCE_DIR}/examples DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT library)

# --- the daemon, where it is built -------------------------------------------------------------------
if(TARGET doorbelld)
  doorbell_searches(doorbelld "$ORIGIN/../lib")
  target_link_options(doorbelld PRIVATE -Wl,--disable-new-dtags)
  file(CREATE_LINK doorbell ${documents}/doorbelld SYMBOLIC)
  install(FILES ${documents}/man1/doorbelld.8 DESTINATION ${CMAKE_INSTALL_MANDIR}/man8 COMPONENT daemon)
  install(FILES ${documents}/doorbelld DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions
          COMPONENT daemon)
  file(CREATE_LINK doorbell.fish ${documents}/doorbelld.fish SYMBOLIC)
  install(FILES ${documents}/doorbelld.fish DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d
          COMPONENT daemon)
  install(TARGETS doorbelld RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT daemon)
  set(units ${PROJECT_SOURCE_DIR}/src/qdma/daemon/systemd)
  # Under a prefix of its own, systemd looks there only for /usr and /usr/local.
  install(FILES ${units}/doorbelld.socket DESTINATION lib/systemd/system COMPONENT daemon)
  # The unit names the program's place, which only `cmake --install --prefix` knows.
  install(CODE "
    set(CMAKE_INSTALL_FULL_BINDIR \"\${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_BINDIR}\")
    set(unit \"\${CMAKE_INSTALL_PREFIX}/lib/systemd/system/doorbelld.service\")
    message(STATUS \"Installing: \$ENV{DESTDIR}\${unit}\")
    configure_file(\"${units}/doorbelld.service.in\" \"\$ENV{DESTDIR}\${unit}\" @ONLY)
    list(APPEND CMAKE_INSTALL_MANIFEST_FILES \"\${unit}\")" COMPONENT daemon)
  install(FILES ${units}/doorbelld.sysusers DESTINATION lib/sysusers.d RENAME doorbelld.conf COMPONENT daemon)
  install(FILES ${units}/roles.conf DESTINATION ${CMAKE_INSTALL_DATADIR}/doorbell COMPONENT daemon)
endif()
