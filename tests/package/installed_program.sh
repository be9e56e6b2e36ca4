#!/bin/sh
# SPDX-FileCopyrightText: 2026 The doorbell authors
# SPDX-License-Identifier: Apache-2.0

# The installed program runs, links no GPU library, and brings its documents. Usage: installed_program.sh PREFIX
set -eu
prefix=$1
"$prefix/bin/doorbell" version
"$prefix/bin/doorbell" nvme --write-io 1000 --read-io 1000 --quiet
"$prefix/bin/cxi_gpu_loopback_bw" -d cxi-model0 -i 1 -n 16
if ldd "$prefix/bin/doorbell" | grep -iE 'cuda|nvidia|amdhip|hsa|level_zero|ze_loader'; then
  echo "the program links a GPU library" >&2
  exit 1
fi
for file in share/man/man1/doorbell.1 share/man/man1/doorbell-nvme.1 \
    share/man/man1/cxi_gpu_loopback_bw.1 share/bash-completion/completions/cxi_gpu_loopback_bw share/bash-completion/completions/doorbell \
    share/zsh/vendor-completions/_doorbell share/fish/vendor_completions.d/doorbell.fish share/fish/vendor_completions.d/cxi_gpu_loopback_bw.fish \
    share/doc/doorbell/LICENSE share/doc/doorbell/README.md share/doc/doorbell/docs/nvme.md share/doc/doorbell/examples/c_blocks/main.c \
    share/doorbell/schema/results-1.schema.json share/doorbell/python/doorbell_report/__main__.py share/doorbell/python/doorbell_report/templates/report.html.j2; do
  [ -s "$prefix/$file" ] || { echo "$file is not installed" >&2; exit 1; }
done
# The daemon is built only where its libraries are.
if [ -x "$prefix/bin/doorbelld" ]; then
  "$prefix/bin/doorbelld" --help >/dev/null
  for file in share/man/man8/doorbelld.8 share/bash-completion/completions/doorbelld share/fish/vendor_completions.d/doorbelld.fish; do
    [ -s "$prefix/$file" ] || { echo "$file is not installed" >&2; exit 1; }
  done
fi
bash -n "$prefix/share/bash-completion/completions/doorbell"
head -n 1 "$prefix/share/zsh/vendor-completions/_doorbell" | grep -q '^#compdef doorbell '
# The plans beside the program are what it offers for a shell.
"$prefix/bin/doorbell" completion bash --values 'sweep plan' | grep -qx plans/nvme-modes.yaml
# The plans that the examples name, from a folder that has none.
empty=$(mktemp -d)
trap 'rm -rf "$empty"' EXIT
(cd "$empty" && "$prefix/bin/doorbell" sweep plans/nvme-modes.yaml --list >list)
[ "$(wc -l <"$empty/list")" -gt 1 ] || { echo "the installed plan has no cells" >&2; exit 1; }
(cd "$empty" && "$prefix/bin/doorbell" sweep plans/xio-rdma-loopback.yaml --list >/dev/null)
# From another folder, the program finds the report's package next to itself.
PYTHONPATH=$prefix/share/doorbell/python PYTHONDONTWRITEBYTECODE=1 /usr/bin/python3 -m doorbell_report --help >/dev/null
