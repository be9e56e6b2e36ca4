# SPDX-FileCopyrightText: 2026 The doorbell authors
# SPDX-License-Identifier: Apache-2.0
"""Runs pyverbs' own tests of librdmacm, unmodified. They take a device's address from the network interface that /sys names,
and the drop-in's devices have none: here it is lo, whose address stands for each process's device.

Usage: pyverbs_rdmacm.py FOLDER, which has the package `tests`
"""

import os
import sys
import unittest

sys.path[:0] = [sys.argv[1], sys.argv[1] + "/tests"]
exists = os.path.exists
os.path.exists = lambda path: str(path).startswith("/sys/class/infiniband/doorbell") or exists(path)

from args_parser import parser  # noqa: E402
from tests import base  # noqa: E402

base.RDMATestCase.get_net_name = staticmethod(lambda device: "lo")
base.RDMATestCase.get_ip_mac_address = staticmethod(lambda name: ("127.0.0.1", "00:00:00:00:00:00"))
parser.args = {"dev": None, "port": 1, "gid": None, "gpu": 0}
unittest.main(module="tests.test_rdmacm", argv=["test_rdmacm", "--verbose"])
