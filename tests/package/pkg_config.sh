#!/bin/sh
# SPDX-FileCopyrightText: 2026 The doorbell authors
# SPDX-License-Identifier: Apache-2.0

# Builds one file with what pkg-config says and runs it. Usage: pkg_config.sh PREFIX SOURCE COMPILER SCRATCH
set -eu
command -v pkg-config >/dev/null || { echo "skipped: pkg-config is not installed"; exit 77; }
PKG_CONFIG_PATH=$(find "$1" -type d -name pkgconfig | head -n 1)
export PKG_CONFIG_PATH
# shellcheck disable=SC2046  # flags are meant to split
"$3" -std=c++20 -O1 "$2" -o "$4/with_pkg_config" $(pkg-config --cflags --libs doorbell)
"$4/with_pkg_config"
