# SPDX-FileCopyrightText: 2026 The doorbell authors
# SPDX-License-Identifier: Apache-2.0

# Functions for scripts that make a folder from which a program runs beside its own libraries, loader and C library, which need
# not be those of the machine: bundle-qemu.sh, unpack-qemu.sh. Source it: `. scripts/pack-program.sh`.

# pack_libraries FOLDER PROGRAM [ROOT]: copies what PROGRAM is linked with to FOLDER/lib; below ROOT, if the program
# was unpacked there, else as it is installed.
pack_libraries() {
  local folder=$1 program=$2 root=${3:-} list
  mkdir -p "$folder/lib"
  if [ -n "$root" ]; then
    local lib=$root/usr/lib/x86_64-linux-gnu
    cp -L "$lib/ld-linux-x86-64.so.2" "$folder/lib/"
    list=$("$lib/ld-linux-x86-64.so.2" --list --library-path "$lib" "$program") || return 1
  else
    list=$(ldd "$program") || return 1
  fi
  awk '$2 == "=>" {print $3} $1 ~ /^\// && $2 != "=>" {print $1}' <<<"$list" | while read -r path; do
    [ -e "$folder/lib/$(basename "$path")" ] || cp -L "$path" "$folder/lib/"
  done
}

# pack_start FOLDER NAME PROGRAM [WORD]...: makes FOLDER/NAME, a script that starts FOLDER/PROGRAM with its own loader. WORDs come
# before what it is called with; %here% in them is the folder. Modules of a QEMU of the machine are not this one's.
pack_start() {
  local folder=$1 name=$2 program=$3 words=
  shift 3
  for word in "$@"; do words+=" \"${word//%here%/\$here}\""; done
  cat >"$folder/$name" <<WRAPPER
#!/bin/sh
here=\$(dirname "\$(readlink -f "\$0")")
QEMU_MODULE_DIR=\$here/modules exec "\$here/lib/ld-linux-x86-64.so.2" --library-path "\$here/lib" "\$here/$program"$words "\$@"
WRAPPER
  chmod +x "$folder/$name"
}

# pack_summary FOLDER: a line that says what was made
pack_summary() {
  echo "$1: $(du -sh "$1" | cut -f1), $("$1/qemu" --version | head -n 1)"
}
