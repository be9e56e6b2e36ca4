#!/usr/bin/env bash
# SPDX-FileCopyrightText: 2026 The doorbell authors
# SPDX-License-Identifier: Apache-2.0

# Inside the guest: a controller that doorbell serves goes while there is I/O (tests/guest/vfio_user_boots.sh removes it when
# this script asks for that). The driver gives it up, nothing hangs, and another controller goes on.
. tests/guest/lib.sh
. tests/guest/vfio_user_lib.sh
use one
# The driver looks at a controller when a command is late; 30 s are its default.
echo 2000 >"/sys/block/$(basename "$disk")/queue/io_timeout"
start_load 60
touch "$GUEST_OUT/../remove-one"
if within 60 gone "$load"; then ok "the I/O has ended"; else
  not_ok "the I/O hangs"
  kill -KILL "$load"
fi
if wait "$load"; then not_ok "the I/O went on without a controller"; else ok "the I/O failed"; fi
given_up() { [ ! -e "$disk" ] || [ "$(cat "/sys/class/nvme/$controller/state" 2>/dev/null)" = dead ]; }
if within 30 given_up; then ok "the driver has given it up"; else not_ok "the driver keeps it"; fi
echo 1 >"$pci/$address/remove"
if [ ! -e "$pci/$address" ]; then ok "the function is gone"; else not_ok "the function stays"; fi
dmesg | grep -i nvme | tail -n 12
dmesg | grep -E 'BUG|WARNING|Call Trace' && not_ok "the kernel complains of itself"
use served
same_files "another controller"
finish
