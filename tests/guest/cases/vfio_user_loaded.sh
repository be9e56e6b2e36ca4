#!/usr/bin/env bash
# SPDX-FileCopyrightText: 2026 The doorbell authors
# SPDX-License-Identifier: Apache-2.0

# Inside the guest: leaves I/O behind that goes on, for a machine that is reset under it (in_turn.sh's `reset`).
. tests/guest/lib.sh
. tests/guest/vfio_user_lib.sh
use served
start_load 600
if load_moves; then ok "there is I/O"; else not_ok "there is no I/O"; fi
finish
