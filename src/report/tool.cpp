// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "report/tool.hpp"

namespace doorbell::report {

const Tool& tool() {
  static const Tool known{"doorbell",     DOORBELL_VERSION,  DOORBELL_GIT,
                          DOORBELL_BUILD, DOORBELL_COMPILER, DOORBELL_SANITIZE};
  return known;
}

}  // namespace doorbell::report
