#!/usr/bin/env python3
# SPDX-FileCopyrightText: 2026 The doorbell authors
# SPDX-License-Identifier: Apache-2.0

"""Looks at what the servers of vfio_user_boots.sh counted. Usage: vfio_user_counts.py FOLDER BOOT...
A boot that was tried again is named as often. FOLDER has NAME (a server's output, which ends with its counts) and
served-after-BOOT.json. Exit code: 0, or 2."""

import json
import pathlib
import sys

folder = pathlib.Path(sys.argv[1])
boots = sys.argv[2:]
failed = 0


def check(text, good, found):
    global failed
    failed += not good
    print(f"{'ok    ' if good else 'FAILED'} {text}{'' if good else f': {found}'}")


def counts_of(text):
    return json.loads(text[text.index("\n{\n") :])


after = {boot: json.loads((folder / f"served-after-{boot}.json").read_text()) for boot in boots}
ended = {name: counts_of((folder / name).read_text()) for name in ("served", "one", "two", "lost")}

# Nothing that a driver in order does is refused, and no access leaves the memory that it gave.
for name, counts in ended.items():
    server, model = counts["server"], counts["model"]
    for key in ("malformed", "turned_away", "unexpected_files", "unanswered", "dma_files_lost"):
        check(f"{name}: {key} 0", server[key] == 0, server[key])
    check(f"{name}: no client, no memory", not server["connected"] and server["dma_ranges"] == 0, server)
    # A reset under I/O ends what waits for an answer, which then comes too late.
    given_up = server["dma_messages_refused"]
    check(f"{name}: no stray access", model["dma_faults"] == given_up, (model["dma_faults"], given_up))
    check(f"{name}: no stray answer", server["stray_replies"] <= given_up, (server["stray_replies"], given_up))
    check(f"{name}: only a reset gives messages up", given_up <= (32 if name == "served" and "unshared" in boots else 0), given_up)
    check(f"{name}: doorbells in order", model["invalid_doorbell_values"] + model["unknown_doorbells"] == 0, model)

check("served: a client for each boot", ended["served"]["server"]["clients"] == len(boots), ended["served"]["server"]["clients"])
# A driver says so when it is unbound, when its function is removed, and when its machine is shut down; not at a loss of power.
wanted = 0
for boot in boots:
    wanted += {"shared": 3, "killed": 0, "strict": 0, "unshared": 1}[boot]
    found = after[boot]["shutdowns"]
    check(f"{boot}: shut down {wanted} times so far", found == wanted, found)
if "shared" in boots:
    server = after["shared"]["server"]
    check("shared: data went by memory only", server["dma_reads_by_message"] + server["dma_writes_by_message"] == 0, server)
    check("shared: interrupts were delivered", server["interrupts_delivered"] > 0, server)
    check("one: removed", ended["one"]["gone"] or ended["one"]["model"]["injected"]["removal"] > 0, ended["one"])
    check("two: doorbells by message", ended["two"]["server"]["messages"] > 100, ended["two"]["server"])
if "strict" in boots:
    check("lost: a client of the new server", ended["lost"]["server"]["clients"] == 1, ended["lost"]["server"]["clients"])
if "unshared" in boots:
    others = [after[boot]["server"]["resets"] for boot in boots[: boots.index("unshared")]]
    resets = after["unshared"]["server"]["resets"] - (others[-1] if others else 0)
    # QEMU resets its devices at the start of the machine, too.
    check("unshared: the reset of the machine reached the device", resets >= 2, resets)
    server = after["unshared"]["server"]
    check("unshared: data went by message", min(server["dma_reads_by_message"], server["dma_writes_by_message"]) > 1000, server)
sys.exit(2 if failed else 0)
