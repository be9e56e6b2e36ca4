#!/usr/bin/env bash
# SPDX-FileCopyrightText: 2026 The doorbell authors
# SPDX-License-Identifier: Apache-2.0

# The GPU cases of the NVMe path, on a machine with a GPU: correctness over memory modes, batches and
# queues, faults, then the figures that docs/performance.md quotes.
#   tests/gpu/nvme.sh DOORBELL OUT [correct|faults|engine|emulated|figures|all]
# Exits 77 without a GPU, 2 when a case fails.
set -u
path=nvme
limit_s=120
# shellcheck source=tests/gpu/cases.sh
. "$(dirname "$0")/cases.sh"

need_gpu --write-io 10 --read-io 10

if [ "$what" = correct ] || [ "$what" = all ]; then
  for mode in 0 3 8 11; do
    for queues in 1 4 16; do
      for batch in 1 16 64; do
        show "correct-m$mode-q$queues-b$batch" 0 --memory-mode $mode --num-queues $queues --batch-size $batch \
          --write-io 20000 --read-io 20000 --access-pattern random
      done
    done
  done
  for blocks in 8 9 64 256; do
    for mode in 0 8; do
      show "correct-m$mode-lbas$blocks" 0 --memory-mode $mode --num-queues 2 --batch-size 4 --lbas-per-io $blocks \
        --write-io 1000 --read-io 1000
    done
  done
  show correct-4096 0 --controller model:lba=4096 --num-queues 4 --batch-size 16 --write-io 20000 --read-io 20000
  show correct-wrap 0 --queue-length 5 --batch-size 3 --write-io 5000 --read-io 5000
  show correct-shadow 0 --doorbells shadow --num-queues 2 --batch-size 8 --write-io 20000 --read-io 20000
fi

if [ "$what" = faults ] || [ "$what" = all ]; then
  for fault in error corrupt misplace stale duplicate drop delay removal; do
    for mode in 0 11; do
      show "fault-$fault-m$mode" 2 --memory-mode $mode --num-queues 2 --batch-size 16 --write-io 20000 --read-io 20000 \
        --timeout 0.5 --late-after 0.1 --fault $fault=0.001
    done
  done
  show fault-reorder 0 --num-queues 2 --batch-size 16 --write-io 20000 --read-io 20000 --fault reorder=0.01
fi

if [ "$what" = engine ] || [ "$what" = all ]; then
  # The controller's queues are served by a kernel on the same GPU.
  engine="--device-engine gpu"
  for mode in 0 3 8 11; do
    for queues in 1 16; do
      for batch in 1 64; do
        show "engine-m$mode-q$queues-b$batch" 0 $engine --memory-mode $mode --num-queues $queues --batch-size $batch \
          --write-io 20000 --read-io 20000 --access-pattern random
      done
    done
  done
  for blocks in 9 64 256 1024; do
    for mode in 0 11; do
      show "engine-m$mode-lbas$blocks" 0 $engine --memory-mode $mode --num-queues 2 --batch-size 4 --lbas-per-io $blocks \
        --write-io 1000 --read-io 1000
    done
  done
  show engine-4096 0 $engine --controller model:lba=4096 --memory-mode 11 --num-queues 4 --batch-size 16 --write-io 20000 --read-io 20000
  show engine-wrap 0 $engine --memory-mode 3 --queue-length 5 --batch-size 3 --write-io 5000 --read-io 5000
  show engine-shadow 0 $engine --doorbells shadow --num-queues 2 --batch-size 8 --write-io 20000 --read-io 20000
  initiator=cpu show engine-cpu 0 $engine --num-queues 2 --batch-size 8 --write-io 20000 --read-io 20000
  for fault in error corrupt misplace stale duplicate drop delay removal; do
    show "engine-fault-$fault" 2 $engine --memory-mode 11 --num-queues 2 --batch-size 16 --write-io 20000 --read-io 20000 \
      --timeout 0.5 --late-after 0.1 --fault $fault=0.001
  done
  show engine-fault-reorder 0 $engine --memory-mode 11 --num-queues 2 --batch-size 16 --write-io 20000 --read-io 20000 \
    --fault reorder=0.01
  # How many entries queues in GPU memory carry, with nothing behind them.
  null="$engine --controller model:media=null --memory-mode 3 --verify off --less-timing --read-io 1 --duration 0.4 --repeats 7"
  show engine-null-b1 0 $null --batch-size 1
  for batch in 32 64 128 256; do
    show "engine-null-q1-b$batch" 0 $null --batch-size $batch --in-flight 1023
    show "engine-null-q64-b$batch" 0 $null --num-queues 64 --batch-size $batch --in-flight 1023
  done
  for queues in 1 12; do
    show "engine-ram-checked-q$queues" 0 $engine --memory-mode 11 --num-queues $queues --batch-size 64 --access-pattern random \
      --write-io 2000000 --read-io 2000000 --repeats 5
  done
fi

if [ "$what" = emulated ] || [ "$what" = all ]; then
  # QEMU's controller, in a process (DOORBELL_QEMU names one that is not installed).
  if "$doorbell" backends | grep -q '^nvme *qemu *yes'; then
    for queues in 1 4; do
      for batch in 1 16 64; do
        show "emulated-q$queues-b$batch" 0 --controller qemu --num-queues $queues --batch-size $batch \
          --write-io 10000 --read-io 10000 --access-pattern random
      done
    done
    show emulated-4KiB 0 --controller qemu:lba=4096 --num-queues 4 --batch-size 16 --write-io 10000 --read-io 10000
    show emulated-512KiB 0 --controller qemu --lbas-per-io 1024 --num-queues 2 --batch-size 2 --write-io 500 --read-io 500
    show emulated-wrap 0 --controller qemu --queue-length 5 --batch-size 3 --write-io 2000 --read-io 2000
    show emulated-shadow 0 --controller qemu --doorbells shadow --num-queues 2 --batch-size 8 \
      --write-io 10000 --read-io 10000
    show emulated-bad 2 --controller qemu:bad-sector=100 --write-io 1000 --read-io 1000
    for at_once in 1 32; do
      show "emulated-rate-b$at_once" 0 --controller qemu --lbas-per-io 8 --access-pattern random --verify off \
        --write-io 0 --read-io 1 --in-flight $at_once --batch-size $at_once --duration 1 --repeats 5
      initiator=cpu show "emulated-rate-cpu-b$at_once" 0 --controller qemu --lbas-per-io 8 --access-pattern random --verify off \
        --write-io 0 --read-io 1 --in-flight $at_once --batch-size $at_once --duration 1 --repeats 5
    done
  else
    echo "skipped: emulated: no QEMU that can host a controller"
  fi
fi

if [ "$what" = figures ] || [ "$what" = all ]; then
  null="--controller model:media=null --verify off"
  timed="--read-io 1 --duration 0.4 --repeats 5"
  show sub-b1 0 $null --read-io 200000 --repeats 5 --batch-size 1 --substep-timing
  show sub-b16 0 $null --read-io 2000000 --repeats 5 --batch-size 16 --substep-timing
  show sub-b32 0 $null --read-io 2000000 --repeats 5 --batch-size 32 --substep-timing
  for batch in 1 16 32 64 128 256; do
    show "null-q1-b$batch" 0 $null $timed --batch-size $batch --in-flight 1023 --less-timing
  done
  for batch in 64 128 256; do
    show "null-q1-b$batch-latency" 0 $null $timed --batch-size $batch --in-flight 1023
    show "null-q12-b$batch" 0 $null $timed --batch-size $batch --in-flight 1023 --num-queues 12 --less-timing
  done
  for queues in 1 12; do
    show "null-m3-q$queues" 0 $null $timed --memory-mode 3 --batch-size 64 --in-flight 1023 --num-queues $queues --less-timing
    initiator=cpu show "null-cpu-q$queues" 0 $null $timed --batch-size 64 --in-flight 1023 --num-queues $queues --less-timing
  done
  for mode in 0 8 11; do
    for queues in 1 12; do
      show "verified-m$mode-q$queues" 0 --memory-mode $mode --num-queues $queues --batch-size 64 --repeats 5 \
        --write-io 400000 --read-io 400000
    done
    show "data-m$mode-1m" 0 --controller model:lba=4096 --lbas-per-io 256 --batch-size 4 --num-queues 4 --memory-mode $mode \
      --verify off $timed
  done
fi

conclude
