#!/usr/bin/env bash
# SPDX-FileCopyrightText: 2026 The doorbell authors
# SPDX-License-Identifier: Apache-2.0

# The GPU cases of the CXI path, on a machine with a GPU: puts and gets that a kernel posts and rings, queues and
# data in host and GPU memory, faults, the model as a kernel on the same GPU, the loopback command between GPUs and system memory, then the figures that
# docs/performance.md quotes.
#   tests/gpu/cxi.sh DOORBELL OUT [correct|faults|engine|gpus|figures|all]
# `gpus` is the loopback command alone, with every pair of GPUs that the machine has. Exits 77 without a GPU, 2 when
# a case fails.
set -u
path=cxi
# shellcheck source=tests/gpu/cases.sh
. "$(dirname "$0")/cases.sh"

need_gpu --size 64 --iterations 10

sizes=0,1,31,32,33,256,1KiB,4KiB,64KiB,1MiB
if [ "$what" = correct ] || [ "$what" = all ]; then
  for queues in host vram; do
    for data in host vram; do
      for target in host vram; do
        for op in put get; do
          run "correct-q$queues-d$data-t$target-$op" 0 --queue-mem $queues --data-mem $data --target-mem $target --op $op \
            --size $sizes --iterations 40
        done
      done
      run "correct-q$queues-d$data-idc" 0 --queue-mem $queues --data-mem $data --idc 224 \
        --size 1,12,13,16,17,48,49,112,113,224 --iterations 3000
      run "correct-q$queues-d$data-queues" 0 --queue-mem $queues --data-mem $data --num-queues 8 --size 64,700 --iterations 3000
    done
  done
  run correct-large 0 --size 64MiB --iterations 3 --in-flight 2
  run correct-large-vram 0 --size 64MiB --iterations 3 --in-flight 2 --data-mem vram
  initiator=cpu run correct-cpu-vram 0 --data-mem vram --verify off --size $sizes --iterations 40
fi

if [ "$what" = faults ] || [ "$what" = all ]; then
  for fault in error corrupt misplace stale duplicate drop delay removal; do
    for data in host vram; do
      run "fault-$fault-d$data" 2 --fault $fault=0.01 --size 256 --measure rate --iterations 3000 --batch-size 4 \
        --data-mem $data --timeout 1 --late-after 0.3 --device cxi-model0:delay=0.5
    done
  done
  run fault-reorder 0 --fault reorder=0.01 --size 256 --measure rate --iterations 3000 --batch-size 4
fi

if [ "$what" = engine ] || [ "$what" = all ]; then
  # The Cassini is a kernel on the same GPU.
  engine="--device-engine gpu"
  for queues in host vram; do
    for data in host vram; do
      for target in host vram; do
        for op in put get; do
          # shellcheck disable=SC2086  # options and their values
          run "engine-q$queues-d$data-t$target-$op" 0 $engine --queue-mem $queues --data-mem $data --target-mem $target --op $op \
            --size $sizes --iterations 40
        done
      done
      # shellcheck disable=SC2086
      run "engine-q$queues-d$data-idc" 0 $engine --queue-mem $queues --data-mem $data --idc 224 \
        --size 1,12,13,16,17,48,49,112,113,224 --iterations 3000
      # shellcheck disable=SC2086
      run "engine-q$queues-d$data-queues" 0 $engine --queue-mem $queues --data-mem $data --num-queues 8 --size 64,700 \
        --iterations 3000
      # shellcheck disable=SC2086
      run "engine-q$queues-d$data-unrestricted" 0 $engine --queue-mem $queues --data-mem $data --unrestricted --size 8,4KiB \
        --iterations 3000 --batch-size 64
    done
  done
  # shellcheck disable=SC2086
  run engine-one-offset 0 $engine --offsets one --verify off --measure rate --queue-mem vram --data-mem vram --size 64 \
    --iterations 20000 --batch-size 64
  # shellcheck disable=SC2086
  run engine-most-queues 0 $engine --num-queues 64 --queue-mem vram --data-mem vram --measure rate --size 64 --iterations 2000 \
    --batch-size 16
  # shellcheck disable=SC2086
  run engine-large-vram 0 $engine --size 64MiB --iterations 3 --in-flight 2 --data-mem vram
  # shellcheck disable=SC2086
  run engine-limited 0 $engine --device cxi-model0:latency=5us,bandwidth=10G,jitter=2us --queue-mem vram --size 64,4KiB --iterations 2000
  initiator=cpu run engine-cpu-initiator 1 --device-engine gpu --size 64
  for fault in error corrupt misplace stale duplicate drop delay removal; do
    for data in host vram; do
      # shellcheck disable=SC2086
      run "engine-fault-$fault-d$data" 2 $engine --fault $fault=0.01 --size 256 --measure rate --iterations 3000 --batch-size 4 \
        --queue-mem $data --data-mem $data --timeout 1 --late-after 0.3 --device cxi-model0:delay=0.5
    done
  done
  # shellcheck disable=SC2086
  run engine-fault-reorder 0 $engine --fault reorder=0.01 --size 256 --measure rate --iterations 3000 --batch-size 4
  for keys in stuck-read=100 pte-disable=100; do
    # shellcheck disable=SC2086
    run "engine-$keys" 2 $engine --device cxi-model0:$keys --size 256 --measure rate --iterations 3000 --batch-size 4 --timeout 1
  done
  for n in 1 8 64; do
    # shellcheck disable=SC2086
    show "engine-rate-$n" 0 $engine --queue-mem vram --data-mem vram --target-mem vram --size 8,64,4KiB,64KiB --measure rate \
      --batch-size 64 --in-flight 512 --num-queues $n --duration 0.3 --repeats 3
  done
  # shellcheck disable=SC2086
  show engine-single 0 $engine --queue-mem vram --data-mem vram --size 8,256,4KiB --measure latency --iterations 1000 --repeats 3
fi

loopback=$(dirname "$doorbell")/cxi_gpu_loopback_bw
# loopback NAME WANTED_EXIT OPTIONS... prints the command's row
loopback() {
  local name=$1 wanted=$2
  shift 2
  timeout -k 2 60 "$loopback" -d cxi-model0 --json "$out/$name.json" "$@" >"$out/$name.out" 2>"$out/$name.err"
  ended "$name" "$wanted" $? "$*"
  echo "$name: $* $(grep -E '^ +[0-9]' "$out/$name.out" | tr -s ' ') $(tail -n 1 "$out/$name.err")"
}

if [ "$what" = correct ] || [ "$what" = gpus ] || [ "$what" = all ]; then
  gpus=$("$doorbell" list --json | python3 -c 'import json, sys; print(len(json.load(sys.stdin)["gpus"]))')
  # The published examples: system to system, GPU to GPU for a duration, GPU to system.
  loopback example-1 0 -i 5 -n 2048
  loopback example-2 0 -t 0 -r $((gpus - 1)) -D 2
  loopback example-3 0 -t 0 -i 20 -n 1024
  loopback to-gpu 0 -r 0 -i 20 -n 1024
  for ((tx = 0; tx < gpus; tx++)); do
    for ((rx = 0; rx < gpus; rx++)); do
      for size in 1 4097 1048576; do
        loopback "gpus-$tx-$rx-$size" 0 -t $tx -r $rx -i 5 -n 256 -s $size
      done
    done
  done
  loopback gpus-corrupt 1 -t 0 -r $((gpus - 1)) -i 5 -n 256 -s 4096 --fault corrupt=0.5
  loopback no-such-gpu 1 -t $gpus
fi

if [ "$what" = figures ] || [ "$what" = all ]; then
  for queues in host vram; do
    show "single-q$queues" 0 --queue-mem $queues --size 8,256,1KiB,4KiB,64KiB --measure latency --iterations 1000 --repeats 7
  done
  show single-idc 0 --idc 224 --size 8,64,128 --measure latency --iterations 1000 --repeats 7
  for verify in on off; do
    for n in 1 8; do
      show "rate-$n-$verify" 0 --size 64 --measure rate --batch-size 256 --in-flight 1024 --num-queues $n \
        --duration 0.5 --repeats 7 --verify $verify
    done
  done
  # Who rings does not matter for large blocks; the copy engine's own rate is measured in the same run.
  for initiator in gpu cpu; do
    for ends in host-vram vram-host vram-vram host-host; do
      for size in 512KiB 1MiB; do
        show "bulk-$initiator-$ends-$size" 0 --size $size --measure rate --data-mem "${ends%-*}" --target-mem "${ends#*-}" \
          --duration 0.5 --repeats 7 --verify off
      done
    done
  done
fi

conclude
