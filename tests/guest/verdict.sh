#!/usr/bin/env bash
# SPDX-FileCopyrightText: 2026 The doorbell authors
# SPDX-License-Identifier: Apache-2.0

# The outcome of one case of a boot (in_turn.sh). Usage: verdict.sh FOLDER CASE
# Exit code: the case's own; 77 when this machine cannot boot a guest; 2 when the guest did not get to the end of it.
folder=$1/${2//:/_}
[ ! -s "$1/skipped" ] || { cat "$1/skipped"; exit 77; }
[ ! -e "$folder/said" ] || cat "$folder/said"
[ -s "$folder/verdict" ] || { echo "guest: it ended before $2 did"; exit 2; }
exit "$(cat "$folder/verdict")"
