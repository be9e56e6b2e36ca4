#!/usr/bin/env bash
# SPDX-FileCopyrightText: 2026 The doorbell authors
# SPDX-License-Identifier: Apache-2.0

# The cases of the QDMA path on a machine with a GPU. A card's calls are the CPU's: a GPU as initiator is refused, and
# CPU initiators work beside the GPU's driver as without it.
#   tests/gpu/qdma.sh DOORBELL OUT [correct|faults|figures|all]
# Exits 77 without a GPU, 2 when a case fails.
set -u
path=qdma
# shellcheck source=tests/gpu/cases.sh
. "$(dirname "$0")/cases.sh"

need_gpu --size 64 --iterations 10

if [ "$what" = correct ] || [ "$what" = all ]; then
  run refused-gpu-initiator 1 --size 4KiB --iterations 10
  grep -q "cannot post to the queues" "$out/refused-gpu-initiator.err"
  ended refused-gpu-initiator-reason 0 $? "its reason"
  for op in put get; do
    initiator=cpu run "correct-$op" 0 --op $op --size 1,4095,4KiB,64KiB,1MiB --iterations 40
  done
fi

if [ "$what" = correct ] || [ "$what" = figures ] || [ "$what" = all ]; then
  # Between the card and GPU memory, through host buffers, beside the copy engine.
  for way in gpu-read gpu-write; do
    for chunk in ${chunks:-256Ki 1Mi 4Mi}; do
      for threads in ${threads:-4 8}; do
        name=$way-j$threads-$chunk
        timeout 120 "$doorbell" qdma validate --ddr-only --phase "$way" -j "$threads" --gpu-chunk "$chunk" --buffer-size 64Mi \
          --bandwidth-duration 0.4 --repeats 5 --json "$out/$name.json" >"$out/$name.txt" 2>"$out/$name.err"
        ended "$name" 0 $? "$way"
        echo "$name: $(grep -hE "Read|Write|Copy engine" "$out/$name.txt" | tr -s ' \n' ' ')"
      done
    done
  done
fi

if [ "$what" = faults ] || [ "$what" = all ]; then
  for fault in error corrupt misplace; do
    initiator=cpu run "fault-$fault" 2 --op get --fault $fault=0.05 --size 4KiB --measure rate --iterations 1000
  done
fi

conclude
