# SPDX-FileCopyrightText: 2026 The doorbell authors
# SPDX-License-Identifier: Apache-2.0

# doorbell_searches(TARGET FOLDER): where TARGET looks for its libraries first, in the build folder as where it is installed.
# CMake's own path of the build folder is filled with colons, so that the other one finds room in its place; the loader takes
# what stands between two colons, nothing, for the folder that the program was started in, whoever may write there.
function(doorbell_searches target folder)
  set_target_properties(${target} PROPERTIES INSTALL_RPATH "${folder}" BUILD_WITH_INSTALL_RPATH ON)
endfunction()
