# SPDX-FileCopyrightText: 2026 The doorbell authors
# SPDX-License-Identifier: Apache-2.0
"""What shells offer for a line, by the completion scripts of the built program: bash, zsh, fish."""

import os
import pathlib
import pty
import select
import subprocess
import tempfile

from harness import DOORBELL, doorbell

# One capture of zsh: the matches of each call of compadd that is no query go to a file, and the terminal hears when that is done.
ZSH_SETUP = r"""
PS1='<READY>' LISTMAX=1000000
autoload -U compinit
compinit -u -D
source $SCRIPT
compadd() {
  if [[ ${@[1,(i)(-|--)]} != *-(O|A|D)\ * ]]; then
    local -a hits
    builtin compadd -A hits "$@"
    (( $#hits )) && print -rl -- "${hits[@]/#/$IPREFIX}" >>$HITS
  fi
  builtin compadd "$@"
}
capture() {
  _main_complete
  print -r -- '<END>' >>$HITS
  print -n -- '<DONE>' >/dev/tty
}
zle -C capture list-choices capture
bindkey '^I' capture
"""


def environment(**more):
    """In which 'doorbell' is the built program, and no shell says more than it must."""
    folder = str(pathlib.Path(DOORBELL).resolve().parent)
    return {**os.environ, "PATH": folder + ":" + os.environ["PATH"], "TERM": "dumb", "LC_ALL": "C.UTF-8", **more}


def script(shell, folder):
    """The path of a shell's script, written into a folder."""
    done = doorbell("completion", shell)
    assert done.returncode == 0 and done.stderr == "", done.stderr
    path = pathlib.Path(folder, "completion." + shell)
    path.write_text(done.stdout, encoding="utf-8")
    return str(path)


def bash(*words, program="doorbell", cwd=None):
    """What bash puts in for the last of `words` after the program's name; `words` are as bash splits them."""
    call = 'source "$SCRIPT"; compopt() { :; }; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _doorbell; ' \
           '[[ ${#COMPREPLY[@]} -eq 0 ]] || printf "%s\n" "${COMPREPLY[@]}"'
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(["bash", "-c", call, "bash", program, *words], capture_output=True, text=True, timeout=60,
                              cwd=cwd, env=environment(SCRIPT=script("bash", folder)))
    assert done.returncode == 0 and done.stderr == "", done.stderr
    return done.stdout.splitlines()


def fish(lines, cwd=None):
    """What fish offers for each line, without descriptions."""
    with tempfile.TemporaryDirectory() as folder:
        call = 'source $SCRIPT; for line in $argv; complete -C "$line"; echo "<END>"; end'
        done = subprocess.run(["fish", "--no-config", "-c", call, *lines], capture_output=True, text=True, timeout=100, cwd=cwd,
                              env=environment(SCRIPT=script("fish", folder), HOME=folder))
    assert done.returncode == 0 and done.stderr == "", done.stderr
    return [[match.split("\t")[0] for match in part.splitlines() if match] for part in done.stdout.split("<END>\n")[:-1]]


def read_until(terminal, seen, mark, times):
    """Reads what zsh writes, until `mark` has come so often."""
    while seen.count(mark) < times:
        assert select.select([terminal], [], [], 60)[0], b"zsh says no more than " + seen
        seen += os.read(terminal, 4096)
    return seen


def zsh(lines, cwd=None):
    """What zsh offers for each line, typed at a terminal and followed by a tab."""
    with tempfile.TemporaryDirectory() as folder:
        hits = pathlib.Path(folder, "hits")
        hits.touch()
        pathlib.Path(folder, ".zshrc").write_text(ZSH_SETUP, encoding="utf-8")
        env = environment(SCRIPT=script("zsh", folder), HITS=str(hits), ZDOTDIR=folder)
        pid, terminal = pty.fork()
        if pid == 0:
            os.chdir(cwd or folder)
            os.execvpe("zsh", ["zsh", "-d", "-i"], env)
        try:
            seen = read_until(terminal, b"", b"<READY>", 1)
            for number, line in enumerate(lines, 1):
                os.write(terminal, line.encode() + b"\t")
                seen = read_until(terminal, seen, b"<DONE>", number)
                os.write(terminal, b"\x15")  # empties the line
        finally:
            os.close(terminal)  # which ends zsh
            os.waitpid(pid, 0)
        return [part.split("\n")[:-1] for part in hits.read_text(encoding="utf-8").split("<END>\n")[:-1]]
