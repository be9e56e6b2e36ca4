# SPDX-FileCopyrightText: 2026 The doorbell authors
# SPDX-License-Identifier: Apache-2.0

# Installs BUILD into an empty STAGE, as a packager does. Usage: cmake -DBUILD= -DSTAGE= -P install.cmake
file(REMOVE_RECURSE ${STAGE})
set(ENV{DESTDIR} ${STAGE})
execute_process(COMMAND ${CMAKE_COMMAND} --install ${BUILD} --prefix /usr/local
                COMMAND_ERROR_IS_FATAL ANY)
