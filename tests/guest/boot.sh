#!/usr/bin/env bash
# SPDX-FileCopyrightText: 2026 The doorbell authors
# SPDX-License-Identifier: Apache-2.0

# Boots one guest that runs cases in turn (in_turn.sh), whose verdicts verdict.sh tells.
# Usage: boot.sh FOLDER SECONDS CASE+CASE... [run.sh's OPTION]...
# Exit code: 0 when the guest ran to its end; 0 as well when this machine cannot boot one, which each verdict then says;
# else run.sh's.
here=$(cd "$(dirname "$0")" && pwd)
rm -rf "$1"
mkdir -p "$1"
folder=$1
limit=$2
cases=$3
shift 3
"$here/run.sh" "$here/in_turn.sh" --argument "$cases" --timeout "$limit" --out "$folder" "$@" | tee "$folder/console"
rc=${PIPESTATUS[0]}
[ "$rc" -ne 77 ] || { mv "$folder/console" "$folder/skipped"; exit 0; }
exit "$rc"
