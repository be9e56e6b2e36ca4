# SPDX-FileCopyrightText: 2026 The doorbell authors
# SPDX-License-Identifier: Apache-2.0

# The part of deb_chroot.sh on the bare Debian, in /debs. Each line that fails is named.
set -eu
cd /debs
began=$SECONDS
step() { printf '== %s (at %d s)\n' "$1" $((SECONDS - began)); }
fail() { echo "deb_inside: $1" >&2; exit 1; }
# quietly COMMAND...: what it says is shown when it fails
quietly() {
  local rc=0
  "$@" >/tmp/said 2>&1 || rc=$?
  [ $rc -eq 0 ] || { tail -n 30 /tmp/said; fail "$* ended with $rc"; }
}
# of_packages: the files that the packages have, and what they made
of_packages() { find / -xdev \( -path /debs -o -path /proc -o -path /sys -o -path /dev -o -path /var/log -o -path /var/cache -o -path /tmp \) -prune -o -iname '*doorbell*' -print; }
[ -z "$(of_packages)" ] || fail "the base is not bare: $(of_packages)"

step "install"
quietly apt-get -qq -y install ./*.deb
packages=$(for deb in *.deb; do dpkg-deb -f "$deb" Package; done)
for name in gcc cc g++ c++ clang; do
  if command -v $name; then fail "a compiler was installed"; fi
done
for name in $packages; do
  # Each has what its list says; the lists end with it.
  dpkg -V "$name" | grep . && fail "$name differs from its package"
  dpkg -L "$name" | while read -r path; do [ ! -f "$path" ] || echo "$path"; done
done | sort >/tmp/files

step "use"
version=$(dpkg-query -W -f '${Version}' doorbell)
for name in $packages; do
  [ "$(dpkg-query -W -f '${Version}' "$name")" = "$version" ] || fail "$name has another version than $version"
done
doorbell --version | grep -F "doorbell ${version%%+*} "
[ "$(find /usr/share/man/man1 -name 'doorbell*.1.gz' -size +0 | wc -l)" -gt 10 ] || fail "the manual pages are missing"
gzip -dc /usr/share/man/man8/doorbelld.8.gz | grep -q '^\.SH' || fail "doorbelld's manual page is missing"
./programs/c_blocks
./programs/gpu_read_cpu
doorbelld --help >/dev/null
getent group doorbell >/dev/null || fail "the group doorbell is missing"
# Only a machine that has a card enables them.
if command -v systemctl >/dev/null; then
  for unit in doorbelld.socket doorbelld.service; do
    state=$(systemctl is-enabled $unit 2>&1) || true
    [ "$state" = disabled ] || fail "$unit is $state"
  done
fi
grep -q '^ExecStart=/usr/bin/doorbelld ' /lib/systemd/system/doorbelld.service || fail "the unit starts another program"
(cd /tmp && doorbell sweep plans/nvme-modes.yaml --list | grep -c . >/dev/null) || fail "the plans are not found"
case " $(echo $packages) " in
  *" python3-doorbell "*)
    (cd /tmp && python3 -c 'import doorbell; print(doorbell.__version__)') | grep -Fx "${version%%+*}" || fail "import doorbell"
    python3 /usr/share/doc/doorbell/examples/python_blocks/python_blocks.py || fail "python_blocks" ;;
esac

step "demo"
quietly doorbell demo --output /tmp/demo
find /tmp/demo -name report.html -size +1k | grep -q . || { cat /tmp/said; fail "doorbell demo wrote no report"; }
tail -n 3 /tmp/said

step "again, over itself"
quietly dpkg -i ./*.deb

step "remove"
quietly apt-get -qq -y remove $packages
while read -r path; do
  [ ! -e "$path" ] || case "$path" in /etc/*) ;; *) fail "$path is there after the removal" ;; esac
done </tmp/files
[ -e /etc/doorbell/roles.conf ] || fail "a removal has taken the settings"
step "purge"
quietly dpkg --purge $packages
left=$(of_packages)
[ -z "$left" ] || fail "left after the purge: $left"
step "done"
