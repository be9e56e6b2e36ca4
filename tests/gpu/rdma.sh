#!/usr/bin/env bash
# SPDX-FileCopyrightText: 2026 The doorbell authors
# SPDX-License-Identifier: Apache-2.0

# The GPU cases of the RDMA path, on a machine with a GPU: every NIC model, operation and size with queues and
# data in host and GPU memory, faults, then the figures that docs/performance.md quotes.
#   tests/gpu/rdma.sh DOORBELL OUT [correct|faults|engine|figures|all]
# Exits 77 without a GPU, 2 when a case fails.
set -u
path=rdma
# shellcheck source=tests/gpu/cases.sh
. "$(dirname "$0")/cases.sh"

need_gpu --size 64 --iterations 10

sizes=0,1,31,32,33,256,1KiB,4KiB,64KiB,1MiB
if [ "$what" = correct ] || [ "$what" = all ]; then
  for provider in mlx5 bnxt ionic ernic; do
    for queues in host vram; do
      for data in host vram; do
        for op in write write-imm read send fetch-add compare-swap; do
          case $op in fetch-add | compare-swap) size= ;; *) size="--size $sizes" ;; esac
          # shellcheck disable=SC2086  # an option and its value, or nothing
          run "correct-$provider-q$queues-d$data-$op" 0 --provider $provider --queue-mem $queues --data-mem $data \
            --op $op $size --iterations 40
        done
      done
    done
    run "correct-$provider-large" 0 --provider $provider --size 64MiB --iterations 3 --in-flight 2
    run "correct-$provider-large-vram" 0 --provider $provider --size 64MiB --iterations 3 --in-flight 2 --data-mem vram
    run "correct-$provider-pair" 0 --provider $provider --connection pair --op write-imm --size 48,700 --iterations 3000 \
      --num-qps 4
  done
  run correct-inline 0 --provider mlx5 --inline 96 --size 1,12,13,28,29,44,60,61,96 --iterations 3000
  run correct-inline-bnxt 0 --provider bnxt --inline 96 --size 1,16,17,32,33,96 --iterations 3000
  run correct-inline-ionic 0 --provider ionic --inline 32 --size 1,16,31,32 --iterations 3000
fi

if [ "$what" = faults ] || [ "$what" = all ]; then
  for provider in mlx5 bnxt ionic ernic; do
    for fault in error corrupt misplace stale duplicate drop delay removal; do
      run "fault-$provider-$fault" 2 --provider $provider --fault $fault=0.01 --size 256 --measure rate --iterations 3000 \
        --batch-size 4 --signal-every 1 --timeout 1 --late-after 0.3 --device model:delay=0.5
    done
    run "fault-$provider-reorder" 0 --provider $provider --fault reorder=0.01 --size 256 --measure rate \
      --iterations 3000 --batch-size 4
  done
fi

if [ "$what" = engine ] || [ "$what" = all ]; then
  # The NIC is a kernel on the same GPU.
  engine="--device-engine gpu"
  for provider in mlx5 bnxt ionic ernic; do
    for queues in host vram; do
      for data in host vram; do
        for op in write write-imm read send fetch-add compare-swap; do
          case $op in fetch-add | compare-swap) size= ;; *) size="--size $sizes" ;; esac
          # shellcheck disable=SC2086  # options and their values
          run "engine-$provider-q$queues-d$data-$op" 0 $engine --provider $provider --queue-mem $queues --data-mem $data \
            --op $op $size --iterations 40
        done
      done
    done
    # shellcheck disable=SC2086
    run "engine-$provider-rate" 0 $engine --provider $provider --queue-mem vram --data-mem vram --size 8,64,4KiB,64KiB \
      --measure rate --batch-size 64 --in-flight 512 --num-qps 8 --iterations 200000
    # shellcheck disable=SC2086
    run "engine-$provider-large-vram" 0 $engine --provider $provider --size 64MiB --iterations 3 --in-flight 2 --data-mem vram
    # shellcheck disable=SC2086
    run "engine-$provider-pair" 0 $engine --provider $provider --connection pair --op write-imm --size 48,700 --iterations 3000 \
      --num-qps 4
    for fault in error corrupt misplace stale duplicate drop delay removal; do
      # shellcheck disable=SC2086
      run "engine-fault-$provider-$fault" 2 $engine --provider $provider --fault $fault=0.01 --size 256 --measure rate \
        --iterations 3000 --batch-size 4 --signal-every 1 --timeout 1 --late-after 0.3 --device model:delay=0.5
    done
  done
fi

if [ "$what" = figures ] || [ "$what" = all ]; then
  for provider in mlx5 bnxt ionic ernic; do
    show "single-$provider" 0 --provider $provider --size 256,1KiB,4KiB,64KiB,1MiB --measure latency --iterations 1000 --repeats 7
  done
  for provider in mlx5 bnxt ionic ernic; do
    for verify in on off; do
      show "rate-1-$provider-$verify" 0 --provider $provider --size 64 --measure rate --batch-size 256 --in-flight 1024 \
        --duration 0.5 --repeats 7 --verify $verify
      show "rate-8-$provider-$verify" 0 --provider $provider --size 64 --measure rate --batch-size 256 --in-flight 1024 \
        --num-qps 8 --duration 0.5 --repeats 7 --verify $verify
    done
  done
  for target in host vram; do
    for verify in on off; do
      show "bulk-$target-$verify" 0 --provider mlx5 --size 1MiB --measure rate --target-mem $target --duration 0.5 \
        --repeats 7 --verify $verify
    done
  done
fi

conclude
