#!/usr/bin/env bash
# SPDX-FileCopyrightText: 2026 The doorbell authors
# SPDX-License-Identifier: Apache-2.0

# Inside the guest: `doorbell rdma --provider verbs` on the kernel's soft-RoCE, every operation verified, in one process
# and in two.
. tests/guest/lib.sh
. tests/guest/soft_roce.sh

soft_roce || { not_ok "no soft-RoCE device"; finish; }
device=("$doorbell" rdma --provider verbs --device rxe0 --quiet --timeout 60)
rdma=("${device[@]}" --late-after 50)

# two NAME OPTIONS...: a server and a client of its own; both must end with 0
two() {
  local name=$1 server
  shift
  "${device[@]}" --listen 18515 >"$GUEST_OUT/$name-server.log" 2>&1 &
  server=$!
  within 20 grep -qE ":4853 [0-9A-F:]+ 0A" /proc/net/tcp6 /proc/net/tcp  # 18515, listening
  exits 0 "$name" "${rdma[@]}" --connect 127.0.0.1 "$@"
  within 10 test ! -e /proc/$server || kill -9 $server
  if wait $server; then ok "$name: the server"; else not_ok "$name: the server: $(tail -n 2 "$GUEST_OUT/$name-server.log")"; fi
}

sizes=0,1,33,256,4KiB,64KiB
for connection in self pair; do
  echo "== one process, $connection (up $(uptime_s) s)"
  for op in write write-imm read send send-imm; do
    exits 0 "$connection-$op" "${rdma[@]}" --connection $connection --op $op --size $sizes --iterations 40
  done
  for op in fetch-add compare-swap; do
    exits 0 "$connection-$op" "${rdma[@]}" --connection $connection --op $op --iterations 100
  done
done
echo "== two processes (up $(uptime_s) s)"
for op in write write-imm read send send-imm; do
  two "two-$op" --op $op --size 1,256,4KiB,64KiB --iterations 40 --num-qps 2
done
for op in write write-imm send; do
  two "two-one-offset-$op" --op $op --size 4KiB --iterations 400 --offsets one --verify off
done
for op in write send; do
  two "two-ping-pong-$op" --op $op --measure ping-pong --size 1,8,777,4KiB,64KiB --iterations 41 --repeats 2
done
# The answers' payloads travel in their requests as well.
two two-ping-pong-inline --op write --measure ping-pong --size 1,8,64 --inline 64 --iterations 41
two two-fetch-add --op fetch-add --iterations 100
two two-compare-swap --op compare-swap --iterations 100
finish
