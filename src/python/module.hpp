// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// The parts of the extension module doorbell._native.
#pragma once

#include <nanobind/nanobind.h>

namespace doorbell::python {

void bind_run(nanobind::module_& m);
void bind_blocks(nanobind::module_& m);

}  // namespace doorbell::python
