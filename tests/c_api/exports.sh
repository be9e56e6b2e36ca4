#!/bin/sh
# SPDX-FileCopyrightText: 2026 The doorbell authors
# SPDX-License-Identifier: Apache-2.0

# The shared library exports, with a version, what its headers declare, and nothing else. Usage: exports.sh LIBRARY INCLUDE
set -eu
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
for header in doorbell.h qdma/slash_qdma.h; do
  sed -e 's|/\*.*\*/||' "$2/doorbell/$header" | grep -oE '\b(doorbell|slash_qdma)_[a-z0-9_]+\(' | tr -d '('
done | sort -u >"$scratch/declared"
nm -D --defined-only --with-symbol-versions "$1" | awk '$2 == "T" { print $3 }' | sed 's/@@DOORBELL_1\.0$//' | sort -u >"$scratch/exported"
nm -D --defined-only --with-symbol-versions "$1" | awk '$2 != "A" && $2 != "T" { print "exported, but no function: " $0; bad = 1 } END { exit bad }'
diff -u "$scratch/declared" "$scratch/exported" || { echo "headers (-) and library (+) differ"; exit 1; }
echo "$(wc -l <"$scratch/exported") names"
