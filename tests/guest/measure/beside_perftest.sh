#!/usr/bin/env bash
# SPDX-FileCopyrightText: 2026 The doorbell authors
# SPDX-License-Identifier: Apache-2.0

# Inside the guest: doorbell and perftest on the same soft-RoCE device, in turns. Both ends run here, in two processes.
# Usage: beside_perftest.sh [TURNS[:perftest|:CELL+CELL...]]; run it with tests/guest/measure/rdma.sh, which reads what it
# leaves in $GUEST_OUT. With ":perftest" doorbell is left out, with cells the others are.
. tests/guest/lib.sh
. tests/guest/soft_roce.sh

turns=${1:-7}
what=
case "$turns" in *:*) what=${turns#*:} ;; esac
turns=${turns%%:*}
port=18515 # the default of both
# Each end on a processor of its own, whoever it is: left to the scheduler, runs of either differ by a half.
server=(taskset -c 1)
client=(taskset -c 0)

# ours NAME PART OP BYTES ITERATIONS [IN_FLIGHT BATCH [OPTION...]]: perftest checks no data and sends one buffer over
# and over, so this does too
ours() {
  local buffers=(--offsets one --in-flight "${6:-1}" --batch-size "${7:-1}")
  [ "$2" != ping-pong ] || buffers=() # has its own
  both_ends "$1" $port "${server[@]}" "$doorbell" rdma --provider verbs --device rxe0 --listen $roce_address:$port --quiet -- \
    "${client[@]}" "$doorbell" rdma --provider verbs --device rxe0 --measure "$2" --op "$3" --size "$4" --iterations "$5" \
    "${buffers[@]}" "${@:8}" --verify off --repeats 1 --connect $roce_address:$port --quiet --json "$GUEST_OUT/$1.json"
}

# theirs NAME PROGRAM OPTIONS...: -x 1 is the IPv4 GID, -F leaves out a warning about CPU frequencies
theirs() {
  local name=$1 program=$2
  shift 2
  both_ends "$name" $port "${server[@]}" "$program" -d rxe0 -x 1 -F -p $port "$@" -- \
    "${client[@]}" "$program" -d rxe0 -x 1 -F -p $port "$@" $roce_address
}

# The cells: what doorbell does, and perftest by its defaults and by its best settings here: lists of requests posted
# at once, one completion a list, no clock read for each; of a ping-pong, the payload in the request (perftest says that it
# switches this off here). Runs last a second and more: in its first tenths, an emulator translates either program.
ours_in() { # CELL TURN
  case "$1" in
    write-4096) ours "$1-ours-$2" rate write 4096 4096 128 32 ;;
    write-65536) ours "$1-ours-$2" rate write 65536 512 128 32 ;;
    send-4096) ours "$1-ours-$2" rate send 4096 4096 128 32 ;;
    write-one-8) ours "$1-ours-$2" rate write 8 10000 ;;
    read-lat-4096) ours "$1-ours-$2" latency read 4096 3000 ;;
    write-lat-8) ours "$1-ours-$2" ping-pong write 8 12000 ;;
    write-lat-inline-8) ours "$1-ours-$2" ping-pong write 8 12000 1 1 --inline 8 ;;
  esac
}
theirs_in() { # CELL TURN
  local lists=(-l 32 -Q 32 -N)
  case "$1" in
    write-4096)
      theirs "$1-default-$2" ib_write_bw -s 4096 -n 4096
      theirs "$1-best-$2" ib_write_bw -s 4096 -n 4096 "${lists[@]}"
      ;;
    write-65536)
      theirs "$1-default-$2" ib_write_bw -s 65536 -n 512
      theirs "$1-best-$2" ib_write_bw -s 65536 -n 512 "${lists[@]}"
      ;;
    send-4096)
      theirs "$1-default-$2" ib_send_bw -s 4096 -n 4096
      theirs "$1-best-$2" ib_send_bw -s 4096 -n 4096 "${lists[@]}"
      ;;
    # One write at a time, from post to completion.
    write-one-8) theirs "$1-best-$2" ib_write_bw -s 8 -n 10000 -t 1 -Q 1 -N ;;
    write-lat-8) theirs "$1-default-$2" ib_write_lat -s 8 -n 12000 ;;
    write-lat-inline-8) theirs "$1-best-$2" ib_write_lat -s 8 -n 12000 -I 8 ;;
    read-lat-4096) theirs "$1-best-$2" ib_read_lat -s 4096 -n 3000 ;;
  esac
}

needs ib_write_bw perftest
soft_roce || { not_ok "no soft-RoCE device"; finish; }
ib_write_bw --version >"$GUEST_OUT/perftest.version" 2>&1
# once CELL TURN: who goes first changes, so that neither always finds the device warm.
once() {
  case "+$what+" in
    ++ | +perftest+ | *"+$1+"*) ;;
    *) return ;;
  esac
  [ "$what" = perftest ] || [ $(($2 % 2)) -eq 1 ] || ours_in "$1" "$2"
  theirs_in "$1" "$2"
  [ "$what" = perftest ] || [ $(($2 % 2)) -eq 0 ] || ours_in "$1" "$2"
}
each=(write-4096 write-65536 send-4096 write-one-8 read-lat-4096)
four_times=(write-lat-8 write-lat-inline-8)
for cell in ${what//+/ }; do
  case " perftest ${each[*]} ${four_times[*]} " in
    *" $cell "*) ;;
    *) not_ok "'$cell' is none of ${each[*]} ${four_times[*]}"; finish ;;
  esac
done
for ((turn = 0; turn < turns; turn++)); do
  for cell in "${each[@]}"; do once "$cell" $turn; done
  # The two differ by less here than the machine from one second to the next, so these have turns of their own.
  for ((n = 4 * turn; n < 4 * turn + 4; n++)); do
    for cell in "${four_times[@]}"; do once "$cell" $n; done
  done
done
finish
