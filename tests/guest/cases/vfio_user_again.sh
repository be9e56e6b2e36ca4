#!/usr/bin/env bash
# SPDX-FileCopyrightText: 2026 The doorbell authors
# SPDX-License-Identifier: Apache-2.0

# Inside the guest, after a reset of the machine under I/O: the same QEMU and the same server, and all is as it was.
. tests/guest/lib.sh
. tests/guest/vfio_user_lib.sh
use served
same_files "after a reset of the machine"
verified again-4k --bs=4k --size=1m --iodepth=8 --ioengine=libaio
clean_log
finish
