#!/usr/bin/env bash
# SPDX-FileCopyrightText: 2026 The doorbell authors
# SPDX-License-Identifier: Apache-2.0

# Boots an emulated machine (QEMU without KVM, 2.5 s) that has an IOMMU and NVMe controllers (controllers.sh), and runs
# one script of the repository in it, as root. The guest sees this machine's files read-only below a tmpfs, so
# what was just built here runs there; what it writes is gone afterwards, but for the folder of results.
# Usage: tests/guest/run.sh SCRIPT [OPTION WORD]... [--] [QEMU ARGUMENT]...
#   --argument WORD     what the script gets as $1
#   --timeout SECONDS   end the guest after this long (default 120)
#   --out FOLDER        results: the script finds this folder as $GUEST_OUT
#   --controllers WORD  all (default): those of controllers.sh; none: only those of the QEMU ARGUMENTs
#   --iommu WORD        on (default); none; strict: an unmapped page is unreachable at once
#   --kernel WORD       one more word of the kernel's command line
#   --tools FOLDER      its programs are found first in the guest
#   --resets WORD       no (default): a reset of the machine ends QEMU; once: it boots again
#   --end WORD          exit (default): QEMU ends as soon as the script has; poweroff: as a machine that is shut down
# Environment: QEMU (the emulator), DOORBELL (the program that is tested, default build/bin/doorbell),
#   DOORBELL_GUEST_SMP (CPUs, default 2), DOORBELL_GUEST_CACHE (see prepare.sh)
# Exit code: the script's own, 0..100 (larger ones as 100; 77: also when this machine cannot boot a guest), or 200 when
# the guest never reported: panic, timeout, arguments that are wrong here or for QEMU.
set -uo pipefail
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
. "$here/controllers.sh"

fail() {
  echo "guest: $1" >&2
  exit 200
}
usage="usage: $0 SCRIPT [OPTION WORD]... [--] [QEMU ARGUMENT]..."
script=
argument=
timeout=120
out=
controllers_wanted=all
iommu=on
end=exit
resets=no
tools=
kernel_word=
while [ $# -gt 0 ]; do
  case "$1" in
    --argument) argument=${2:-}; shift 2 || fail "--argument takes a WORD" ;;
    --timeout) timeout=${2:-}; shift 2 || fail "--timeout takes SECONDS" ;;
    --out) out=${2:-}; shift 2 || fail "--out takes a FOLDER" ;;
    --controllers) controllers_wanted=${2:-}; shift 2 || fail "--controllers takes all or none" ;;
    --iommu) iommu=${2:-}; shift 2 || fail "--iommu takes on, none or strict" ;;
    --kernel) kernel_word=${2:-}; shift 2 || fail "--kernel takes a WORD" ;;
    --tools) tools=${2:-}; shift 2 || fail "--tools takes a FOLDER" ;;
    --resets) resets=${2:-}; shift 2 || fail "--resets takes no or once" ;;
    --end) end=${2:-}; shift 2 || fail "--end takes exit or poweroff" ;;
    --) shift; break ;;
    -*) fail "unknown option $1" ;;
    *) [ -z "$script" ] || break; script=$1; shift ;;
  esac
done
[ -n "$script" ] || fail "$usage"
[[ $timeout =~ ^[0-9]+$ ]] || fail "--timeout: '$timeout' is no number of seconds"
[[ $end =~ ^(exit|poweroff)$ ]] || fail "--end: '$end' is not one of exit, poweroff"
[ -x "$script" ] && [ -f "$script" ] || fail "$script is no executable file"
[[ $resets =~ ^(no|once)$ ]] || fail "--resets: '$resets' is not one of no, once"
script=$(readlink -f "$script")
program=$(readlink -f "${DOORBELL:-$root/build/bin/doorbell}")

"$here/prepare.sh"
rc=$?
[ $rc -ne 77 ] || exit 77
[ $rc -eq 0 ] || fail "prepare.sh failed"
cache=$(cd "$root" && cd "${DOORBELL_GUEST_CACHE:-build/guest}" && pwd)

work=$(mktemp -d)
images=$(mktemp -d /dev/shm/doorbell-guest.XXXXXX 2>/dev/null) || images=$work
qemu_pid=
cleanup() {
  [ -z "$qemu_pid" ] || kill "$qemu_pid" 2>/dev/null
  rm -rf "$work" "$images"
}
trap cleanup EXIT
trap 'exit 200' INT TERM HUP
[ -n "$out" ] || out=$work/out
mkdir -p "$out" || fail "$out cannot be made"
out=$(cd "$out" && pwd)
rm -f "$out/.status" "$out/.boots" "$out/.reset"
# These words end up on a kernel's command line and in QEMU's comma-separated options.
for word in "$script" "$argument" "$program" "$root" "$out" "$images" "$tools" "$kernel_word"; do
  case "$word" in *[[:space:],\"]*) fail "'$word': no blanks, commas or quotes, please" ;; esac
done

devices=()
case "$controllers_wanted" in
  all) controller_arguments "$images" || fail "controllers.sh: a line that it does not know" ;;
  none) ;;
  *) fail "--controllers: '$controllers_wanted' is not one of all, none" ;;
esac
# caching-mode: without it the IOMMU of QEMU does not learn of what VFIO maps.
iommu_device=(-device "intel-iommu,intremap=on,caching-mode=on")
iommu_words=intel_iommu=on
case "$iommu" in
  on) ;;
  strict) iommu_words="intel_iommu=on iommu.strict=1 iommu.passthrough=0" ;;
  none) iommu_device=() iommu_words= ;;
  *) fail "--iommu: '$iommu' is not one of on, none, strict" ;;
esac

# -cpu max without la57: five-level page tables cost boot time. No 8042, HPET and so on for the same reason.
# The ELF kernel is entered directly; tsc=reliable keeps the guest from the slow HPET clock. norandmaps: code at the same
# address in each process is translated once.
machine=(
  -machine q35,smm=off,vmport=off,sata=off,usb=off,hpet=off,i8042=off
  -accel tcg,thread=multi -cpu max,-la57 -smp "${DOORBELL_GUEST_SMP:-2}" -m 1G
  -nodefaults -display none -monitor none -nic none
  "${iommu_device[@]}"
  -device isa-debug-exit,iobase=0xf4,iosize=4
  -chardev "file,id=log,path=$work/serial" -serial chardev:log
  -chardev stdio,id=said,signal=off -serial chardev:said
  -virtfs "local,path=$out,mount_tag=out,security_model=none"
  -virtfs "local,path=/,mount_tag=host,security_model=none,readonly=on,multidevs=remap"
  -kernel "$cache/vmlinux" -initrd "$cache/initrd.img"
  -append "console=ttyS0 panic=-1 quiet mitigations=off tsc=reliable no_timer_check audit=0 nowatchdog norandmaps $iommu_words $kernel_word
 GUEST_END=$end GUEST_TOOLS=$tools GUEST_SCRIPT=$script GUEST_ARGUMENT=$argument GUEST_FOLDER=$root DOORBELL=$program"
)
# A newline in the command line would be a blank to the kernel, but not to all that print it.
machine[-1]=${machine[-1]//$'\n'/}
[ $resets = once ] || machine+=(-no-reboot)

timeout --kill-after=5 "$timeout" "${QEMU:-qemu-system-x86_64}" "${machine[@]}" "${devices[@]}" "$@" \
  </dev/null 2>"$work/stderr" &
qemu_pid=$!
wait "$qemu_pid"
rc=$?
qemu_pid=

# isa-debug-exit ends QEMU with 33 + 2 * status. Signals of QEMU and `timeout` can give the same numbers, so the status
# counts only when the guest wrote it into the folder of results too. One that is to switch itself off ends QEMU with 0.
status=200
reported=$(cat "$out/.status" 2>/dev/null)
rm -f "$out/.status" "$out/.boots"
if [[ $reported =~ ^[0-9]+$ ]] && [ "$reported" -le 100 ]; then
  wanted=0
  [ "$end" = poweroff ] || wanted=$((33 + 2 * reported))
  [ $rc -ne "$wanted" ] || status=$reported
fi
case "$status" in
  0 | 77) ;;
  *)
    {
      if [ "$status" -ne 200 ]; then echo "guest: $script: exit status $status"
      elif [ $rc -eq 124 ] || [ $rc -eq 137 ]; then echo "guest: no status after $timeout s: ended"
      else echo "guest: the guest never reported; QEMU's exit status is $rc"; fi
      [ ! -s "$work/serial" ] || { echo "--- the guest's console, its end"; tail -n 120 "$work/serial" | tr -d '\r'; }
      [ ! -s "$work/stderr" ] || { echo "--- QEMU"; tail -n 20 "$work/stderr"; }
    } >&2
    ;;
esac
exit "$status"
