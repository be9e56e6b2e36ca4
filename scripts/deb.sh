#!/usr/bin/env bash
# SPDX-FileCopyrightText: 2026 The doorbell authors
# SPDX-License-Identifier: Apache-2.0

# Makes Debian packages of the built program, its library and its daemon (docs/packages.md). Compiles nothing: what the build
# folder has is what they hold. Usage: scripts/deb.sh [--dir FOLDER]
#   without an option  dist/deb/*.deb
#   --dir FOLDER       the same in FOLDER (replaced)
# Environment: BUILD, the build folder (build). DEBFULLNAME and DEBEMAIL, who makes them, if not the project without an address.
#   The same build folder gives the same bytes.
# Exit code: 0, or 1; 77 where debhelper is not installed.
set -euo pipefail
cd "$(dirname "$0")/.."

build=$(realpath "${BUILD:-build}")
folder=dist/deb
case "${1:-}" in
  "") ;;
  --dir) folder=${2:?usage: $0 [--dir FOLDER]} ;;
  *) echo "usage: $0 [--dir FOLDER]" >&2; exit 1 ;;
esac
for tool in dpkg-buildpackage dh dh_python3; do
  command -v $tool >/dev/null || { echo "skipped: $tool is missing: scripts/install-deps.sh deb"; exit 77; }
done
[ -x "$build/bin/doorbell" ] || { echo "deb: $build/bin/doorbell is missing: run make" >&2; exit 1; }

# "doorbell 0.1.0 (REVISION, ...": both as the program says them. A revision that is no release is a part of the version;
# before it stands its time, by which packages are newer or older.
read -r version revision < <("$build/bin/doorbell" --version | sed -nE '1s/^doorbell ([0-9.]+) \(([^,]*),.*/\1 \2/p')
[ -n "$version" ] || { echo "deb: doorbell --version says no version" >&2; exit 1; }
commit=${revision%-dirty} upstream=$version
if seconds=$(git log -1 --format=%ct "$commit" 2>/dev/null); then
  export SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$seconds}
  if [ "$revision" != "v$version" ]; then
    version=$version+git$(date -u -d "@$seconds" +%Y%m%d.%H%M%S).$(tr - . <<<"$revision")
  fi
else
  export SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(stat -c %Y CMakeLists.txt)}
fi

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/doorbell"
cp -r packaging/debian "$work/doorbell/debian"
maintainer=$(sed -n 's/^Maintainer: //p' packaging/debian/control)
if [ -n "${DEBEMAIL:-}" ]; then
  maintainer="${DEBFULLNAME:-The doorbell authors} <$DEBEMAIL>"
  sed -i "s|^Maintainer: .*|Maintainer: $maintainer|" "$work/doorbell/debian/control"
fi
cat >"$work/doorbell/debian/changelog" <<END
doorbell ($version) unstable; urgency=medium

  * Built from revision $revision;
    CHANGELOG.md of the package doorbell says what is new.

 -- $maintainer  $(date -uR -d "@$SOURCE_DATE_EPOCH")
END

# The Python package is the wheel of `make wheel`, before libraries of this machine were put into it.
wheel=$(find "$build/wheel/raw" -name "doorbell-$upstream-*.whl" 2>/dev/null | head -n 1 || true)
profiles=
[ -n "$wheel" ] || { profiles=nopython; echo "deb: without python3-doorbell, as build/wheel has no wheel of this version (make wheel)"; }
log=$work/log
(cd "$work/doorbell" &&
  DOORBELL_BUILD=$build DOORBELL_WHEEL=$wheel DEB_BUILD_PROFILES=$profiles dpkg-buildpackage --build=binary --no-sign --no-check-builddeps) >"$log" 2>&1 ||
  { cat "$log" >&2; echo "deb: dpkg-buildpackage failed" >&2; exit 1; }

rm -rf "$folder"
mkdir -p "$folder"
mv "$work"/*.deb "$work"/*.changes "$work"/*.buildinfo "$folder"
(cd "$folder" && ls -l ./*.deb | awk '{print $9 ": " $5 " bytes"}')
