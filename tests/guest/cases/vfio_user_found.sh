#!/usr/bin/env bash
# SPDX-FileCopyrightText: 2026 The doorbell authors
# SPDX-License-Identifier: Apache-2.0

# Inside the guest: a new server has the media of one that was killed under an earlier guest (vfio_user_killed.sh).
. tests/guest/lib.sh
. tests/guest/vfio_user_lib.sh
use lost
kept "what an earlier guest wrote" --verify_only=1
verified lost-4k --bs=4k --size=1m --iodepth=8 --ioengine=libaio
clean_log
finish
