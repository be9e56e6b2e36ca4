#!/usr/bin/env bash
# SPDX-FileCopyrightText: 2026 The doorbell authors
# SPDX-License-Identifier: Apache-2.0

# The GPU cases of network streams, on a machine with a GPU: windows in GPU memory by copy and by kernel, with every
# workload, the assembly kernels, faults, then the figures that docs/net.md quotes.
#   tests/gpu/net.sh DOORBELL OUT [correct|faults|figures|all]
# Exits 77 without a GPU, 2 when a case fails.
set -u
path=net
# shellcheck source=tests/gpu/cases.sh
. "$(dirname "$0")/cases.sh"
# Threads of the CPU send and receive; the GPU assembles and computes.
initiator=cpu

timeout 60 "$doorbell" net --assemble --window-mem vram --count 10 --quiet
if [ $? -eq 77 ]; then
  echo "skipped: no GPU"
  exit 77
fi

kernel="--window-mem vram --to-gpu kernel --host-memory pinned"
if [ "$what" = correct ] || [ "$what" = all ]; then
  run kernels 0 --mode kernels --duration 0.02 --repeats 1
  for workload in none fft gemm gemm_fp16; do
    run "ring-copy-$workload" 0 --payload 8000 --window-mem vram --workload $workload --count 20000 --queues 2x2
    # shellcheck disable=SC2086
    run "ring-kernel-$workload" 0 --payload 8000 $kernel --workload $workload --count 20000 --batch-size 1024
    run "tcp-copy-$workload" 0 --stream tcp --payload 8000 --window-mem vram --workload $workload --count 20000
    run "roce-copy-$workload" 0 --stream roce --payload 8000000 --window-mem vram --workload $workload --count 20
  done
  for payload in 64 1000 4096; do
    # shellcheck disable=SC2086
    run "ring-kernel-$payload" 0 --payload $payload $kernel --count 50000
  done
fi

if [ "$what" = faults ] || [ "$what" = all ]; then
  for fault in drop corrupt duplicate misplace; do
    # shellcheck disable=SC2086
    run "fault-$fault" 2 --fault $fault=0.01 --payload 8000 $kernel --workload fft --count 20000
  done
  run fault-reorder 0 --fault reorder=0.01 --payload 8000 --window-mem vram --workload fft --count 20000
  # A kernel reads what was held back where the relay keeps it.
  for fault in reorder delay; do
    # shellcheck disable=SC2086
    run "fault-$fault-kernel" 0 --fault $fault=0.01 --payload 8000 $kernel --workload fft --check-every 1 --count 20000
  done
fi

if [ "$what" = figures ] || [ "$what" = all ]; then
  limit_s=200 show kernels-figures 0 --mode kernels
  for workload in none fft gemm gemm_fp16; do
    # shellcheck disable=SC2086
    show "raw-$workload" 0 --link ring:depth=4096 --payload 8000 --queues 7x7 $kernel --batch-size 1024 --workload $workload \
      --check-every 1000 --duration 1 --repeats 7
  done
fi

conclude
