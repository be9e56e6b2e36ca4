#!/usr/bin/env bash
# SPDX-FileCopyrightText: 2026 The doorbell authors
# SPDX-License-Identifier: Apache-2.0

# Inside the guest: the server of a controller is killed while there is I/O (tests/guest/vfio_user_boots.sh does so when this
# script asks for that). What is in flight ends in errors, nothing hangs, and another controller goes on.
. tests/guest/lib.sh
. tests/guest/vfio_user_lib.sh
use lost
kept "written for the next guest" --do_verify=1
# The driver looks at a controller when a command is late; 30 s are its default.
echo 2000 >"/sys/block/$(basename "$disk")/queue/io_timeout"
start_load 60
touch "$GUEST_OUT/../kill-lost"
if within 60 gone "$load"; then ok "the I/O has ended"; else
  not_ok "the I/O hangs"
  kill -KILL "$load"
fi
if wait "$load"; then not_ok "the I/O went on without a server"; else ok "the I/O failed"; fi
given_up() { [ ! -e "$disk" ] || [ "$(cat "/sys/class/nvme/$controller/state" 2>/dev/null)" = dead ]; }
if within 60 given_up; then ok "the driver has given it up"; else not_ok "the driver keeps it"; fi
if timeout 30 dd if="$disk" of=/dev/null bs=4k count=1 iflag=direct 2>/dev/null; then not_ok "a read succeeds"; else
  if [ $? -eq 124 ]; then not_ok "a read hangs"; else ok "a read fails"; fi
fi
dmesg | grep -i nvme | tail -n 12
dmesg | grep -E 'BUG|WARNING|Call Trace' && not_ok "the kernel complains of itself"
use served
same_files "another controller"
finish
