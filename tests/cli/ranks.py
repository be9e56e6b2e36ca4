# SPDX-FileCopyrightText: 2026 The doorbell authors
# SPDX-License-Identifier: Apache-2.0
"""Open MPI's ranks on this host: as they are, or each on a "host" of its own, which is a network and host name namespace."""

import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

MPIRUN = shutil.which("mpirun.openmpi") or shutil.which("mpirun")
FLAGS = ["--allow-run-as-root", "--oversubscribe", "--bind-to", "none"]
# Root in a user namespace of its own may do the same as root, for namespaces of its own.
UNSHARE = ["unshare", "--mount", "--net", "--uts", "--pid", "--fork", "--mount-proc", "--kill-child"] + \
    ([] if os.geteuid() == 0 else ["--user", "--map-root-user"])

# Hosts n0, n1, ... with 10.77.0.(i+1) for MPI and 10.78.0.(i+1) for what is measured, each behind a switch of its own;
# mpirun is on the host "launcher", and reaches the others as it would by ssh.
HOSTS = """\
set -e
folder=$1 hosts=$2
mkdir "$folder/hosts"
mount -t tmpfs none "$folder/hosts"
ip link set lo up
for net in 77 78; do
  ip link add sw$net type bridge
  ip link set sw$net up
done
ip addr add 10.77.0.254/24 dev sw77
for i in $(seq 0 $((hosts - 1))); do
  touch "$folder/hosts/n$i"
  unshare --net="$folder/hosts/n$i" true
  nsenter --net="$folder/hosts/n$i" ip link set lo up
  for net in 77 78; do
    ip link add v$net-$i type veth peer name e$net netns "$folder/hosts/n$i"
    ip link set v$net-$i master sw$net up
    nsenter --net="$folder/hosts/n$i" ip addr add 10.$net.0.$((i + 1))/24 dev e$net
    nsenter --net="$folder/hosts/n$i" ip link set e$net up
  done
done
cat > "$folder/rsh" <<EOF
#!/bin/sh
host=\\$1
shift
exec nsenter --net="$folder/hosts/\\$host" unshare --uts sh -c "hostname \\$host; \\$*"
EOF
chmod +x "$folder/rsh"
hostname launcher
shift 2
eval "$PREPARE"
exec "$@"
"""


def why_not():
    """Why there are no ranks here; empty if there are."""
    return "" if MPIRUN else "mpirun is not installed (openmpi-bin)"


def why_no_hosts():
    if why_not():
        return why_not()
    for tool in ("unshare", "nsenter", "ip"):
        if not shutil.which(tool):
            return f"{tool} is not installed"
    done = subprocess.run([*UNSHARE, "sh", "-c", "ip link add sw0 type bridge && mount -t tmpfs none /mnt"],
                          capture_output=True, text=True, timeout=60)
    return "" if done.returncode == 0 else "no namespaces here: " + done.stderr.strip()


def command(count, *words):
    """The command that starts `count` ranks on this host."""
    return [MPIRUN, *FLAGS, "-np", str(count), *map(str, words)]


def environment(**more):
    """Without what a test under a launcher would inherit; with short paths for sockets."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("OMPI_", "PMIX_", "PMI_"))}
    return {**kept, "OMPI_MCA_btl_tcp_if_include": "10.77.0.0/24", "OMPI_MCA_oob_tcp_if_include": "10.77.0.0/24", **more} \
        if more.pop("hosts", False) else {**kept, **more}


def run(count, *words, **more):
    return subprocess.run(command(count, *words), capture_output=True, text=True, timeout=120, env=environment(), **more)


def run_on_hosts(count, *words, prepare="", flags=()):
    """Starts a rank on each of `count` hosts. `prepare` is shell code that runs before mpirun."""
    with tempfile.TemporaryDirectory(prefix="ranks-") as folder:
        script = pathlib.Path(folder, "hosts.sh")
        script.write_text(HOSTS, encoding="utf-8")
        names = ",".join(f"n{i}" for i in range(count))
        line = [MPIRUN, *FLAGS, *flags, "--mca", "plm_rsh_agent", f"{folder}/rsh", "--host", names, "-np", str(count)]
        return subprocess.run([*UNSHARE, "sh", str(script), folder, str(count), *line, *map(str, words)],
                              capture_output=True, text=True, timeout=150,
                              env=environment(hosts=True, PREPARE=f"folder={folder}; {prepare}"))


if __name__ == "__main__":
    finished = run_on_hosts(int(sys.argv[1]), *sys.argv[2:])
    print(finished.stdout + finished.stderr, end="")
    sys.exit(finished.returncode)
