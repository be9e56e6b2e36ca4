#!/bin/sh
# SPDX-FileCopyrightText: 2026 The doorbell authors
# SPDX-License-Identifier: Apache-2.0

# Installs the wheel into a virtual environment that has Debian's packages (NumPy, pandas, nbclient), too.
# Usage: venv.sh PYTHON FOLDER-OF-THE-WHEEL VENV. Exit code: 0, 1; 77 where there is no wheel.
set -eu
ls "$2"/doorbell-*.whl >/dev/null 2>&1 || { echo "skipped: there is no wheel"; exit 77; }
rm -rf "$3"
"$1" -m venv --system-site-packages "$3"
"$3/bin/python" -m pip install --quiet --disable-pip-version-check --no-index --no-deps "$2"/doorbell-*.whl
