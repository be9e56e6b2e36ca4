#!/bin/sh
# SPDX-FileCopyrightText: 2026 The doorbell authors
# SPDX-License-Identifier: Apache-2.0

# Runs Python of a virtual environment. Usage: in_venv.sh VENV ARGUMENT... Exits 77 where there is none.
[ -x "$1/bin/python" ] || { echo "skipped: there is no wheel"; exit 77; }
venv=$1
shift
exec "$venv/bin/python" "$@"
