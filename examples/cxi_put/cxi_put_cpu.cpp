// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// The same program with a CPU thread in the place of the kernel.
#include "main.cu"
