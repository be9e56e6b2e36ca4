#!/bin/sh
# SPDX-FileCopyrightText: 2026 The doorbell authors
# SPDX-License-Identifier: Apache-2.0

# Runs a command and compares its exit code. Usage: exits.sh CODE COMMAND...
wanted=$1
shift
"$@"
code=$?
[ $code -eq "$wanted" ] && exit 0
echo "exit code $code instead of $wanted: $*" >&2
exit 1
