#!/bin/sh
# SPDX-FileCopyrightText: 2026 The doorbell authors
# SPDX-License-Identifier: Apache-2.0

# Runs the example on a GPU; exits 77 where it was not built or there is none. Usage: example_gpu.sh PROGRAM
if [ ! -x "$1" ]; then
  echo "skipped: no CUDA compiler, so $(basename "$1") was not built"
  exit 77
fi
"$1"
code=$?
[ $code -ne 77 ] || echo "skipped: no GPU"
exit $code
