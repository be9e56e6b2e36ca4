#!/usr/bin/env bash
# SPDX-FileCopyrightText: 2026 The doorbell authors
# SPDX-License-Identifier: Apache-2.0

# Inside the guest: doorbell's verbs back end on the kernel's soft-RoCE.
. tests/guest/lib.sh
. tests/guest/soft_roce.sh

soft_roce || { not_ok "no soft-RoCE device"; finish; }
echo "== every operation and every error (up $(uptime_s) s)"
exits 0 device env DOORBELL_TEST_RDMA=rxe0 "$(dirname "$doorbell")/rdma_verbs_device_test"
finish
