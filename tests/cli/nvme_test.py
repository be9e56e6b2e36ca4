#!/usr/bin/python3
# SPDX-FileCopyrightText: 2026 The doorbell authors
# SPDX-License-Identifier: Apache-2.0
"""`doorbell nvme` as a user meets it: exit codes, files, refusals, Ctrl-C. Needs no hardware."""

import csv
import hashlib
import json
import os
import signal
import subprocess
import unittest

import harness
from harness import DOORBELL, TIMEOUTS, doorbell, long


def run(*arguments, **more):
    return doorbell("nvme", *arguments, **more)


class WithFolder(harness.WithFolder):
    command = [DOORBELL, "nvme"]


class Runs(WithFolder):
    def test_the_command_of_the_manual(self):
        r = self.result("--controller", "model", "--write-io", "100000", "--read-io", "100000", "--num-queues", "4",
                        "--batch-size", "16", *TIMEOUTS)
        self.assertTrue(r["complete"])
        self.assertEqual(r["stop_reason"], "done")
        cell, = r["cells"]
        self.assertEqual(cell["verify"]["checked"], 100000)
        for kind in ("corrupt", "misplaced", "stale", "duplicated", "missing", "unverifiable"):
            self.assertEqual(cell["verify"][kind], 0, kind)
        self.assertEqual(set(cell["errors"].values()), {0})
        self.assertEqual(cell["metrics"]["ops"], 200000)
        self.assertEqual(cell["metrics"]["bytes"], 200000 * 512)
        self.assertEqual(cell["metrics"]["latency_ns"]["count"], 200000)
        self.assertEqual(cell["device"]["kind"], "model")
        self.assertEqual(cell["initiator"]["kind"], "cpu")
        self.assertEqual(sum(n for _, n in cell["metrics"]["latency_ns"]["bins"]), 200000)

    @long
    def test_queues_are_as_long_as_the_controller_takes(self):
        r = self.result("--controller", "model:entries=256", *TIMEOUTS)
        self.assertEqual(r["cells"][0]["cell"]["queue_length"], 256)
        done = run("--controller", "model:entries=256", "--queue-length", "1024", *TIMEOUTS)
        self.assertEqual(done.returncode, 1)
        self.assertIn("--queue-length: 1024 is not in 2..256 (CAP.MQES)", done.stderr)

    def test_no_arguments_run_and_verify(self):
        done = run("--details", *TIMEOUTS)
        self.assertEqual(done.returncode, 0, done.stderr)
        for word in ("p50", "p99", "10000", "verified 10000 I/Os"):
            self.assertIn(word, done.stdout)

    def test_a_row_says_what_was_done_and_checked(self):
        done = run("--write-io", "1000", "--read-io", "1000", *TIMEOUTS)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex(done.stdout, r"(?m)^  what +size B +kIOPS +GB/s +p50 us +p99 us +checked +verdict$")
        self.assertRegex(done.stdout, r"(?m)^  nvme +512 +[\d.]+ +[\d.]+ +[\d.]+ +[\d.]+ +all +OK$")
        self.assertIn("\nverified 1000 operations (512.0 kB)\nOK\n", done.stdout)
        for line in done.stdout.splitlines():
            if not line.startswith("warning: "):
                self.assertLessEqual(len(line), 100, line)

    def test_large_blocks_at_random(self):
        cell, = self.result("--controller", "model:lba=4096,capacity=256Mi,mdts=0", "--lbas-per-io", "600",
                            "--access-pattern", "random", "--write-io", "40", "--read-io", "40", "--num-queues", "2",
                            *TIMEOUTS)["cells"]
        self.assertEqual(cell["verify"]["checked"], 40)
        self.assertEqual(cell["metrics"]["bytes"], 80 * 600 * 4096)

    def test_json_to_standard_output_is_nothing_else(self):
        done = run("--write-io", "100", "--read-io", "100", "--json", "-", *TIMEOUTS)
        self.assertEqual(done.returncode, 0, done.stderr)
        document = json.loads(done.stdout)
        self.assertEqual(document["cells"][0]["verify"]["checked"], 100)
        (self.folder / "stdout.json").write_text(done.stdout, encoding="utf-8")
        self.valid(self.folder / "stdout.json")

    def test_csv(self):
        path = self.folder / "out.csv"
        done = run("--write-io", "100", "--read-io", "100", "--csv", str(path), *TIMEOUTS)
        self.assertEqual(done.returncode, 0, done.stderr)
        rows = list(csv.DictReader(path.read_text(encoding="utf-8").splitlines()))
        self.assertEqual(len(rows), 1)

    def test_less_timing_and_substeps(self):
        cell, = self.result("--write-io", "500", "--read-io", "500", "--less-timing", *TIMEOUTS)["cells"]
        self.assertEqual(cell["metrics"]["ops"], 1000)
        self.assertEqual(cell["metrics"]["latency_ns"]["count"], 0)
        cell, = self.result("--write-io", "500", "--read-io", "500", "--substep-timing", *TIMEOUTS)["cells"]
        for step in ("build", "enqueue", "sq_doorbell", "cq_poll", "cq_doorbell", "total"):
            self.assertIsNotNone(cell["substeps_ns"][step], step)

    def test_a_duration_bounds_reads_too_when_writes_take_long(self):
        r = self.result("--write-io", "500M", "--read-io", "500M", "--duration", "0.3", "--repeats", "2", "--warmup", "0",
                        "--num-queues", "1", *TIMEOUTS)
        self.assertEqual(len(r["cells"][0]["repeats"]), 2)
        for part in ("write", "read"):
            self.assertGreater(r["cells"][0]["nvme"][part]["ops"], 0)
            self.assertLess(r["cells"][0]["nvme"][part]["ops"], 500_000_000)
        # A warm-up of less than a tick is one all the same.
        self.result("--duration", "0.01", "--repeats", "1", "--warmup", "0.0000000001", *TIMEOUTS)

    def test_latency_is_of_what_succeeded(self):
        cell, = self.result("--write-io", "100", "--read-io", "100", "--fault", "error=1", *TIMEOUTS, code=2)["cells"]
        self.assertEqual(cell["metrics"]["ops"], 0)
        self.assertEqual(cell["metrics"]["latency_ns"]["count"], 0)
        self.assertIsNone(cell["metrics"]["latency_ns"]["mean"])

    def test_a_short_run_has_its_cost(self):
        cell, = self.result("--write-io", "20", "--read-io", "20", *TIMEOUTS)["cells"]
        self.assertGreater(cell["cost"]["cpu_ns_per_op"], 0)

    def test_a_duration_with_repeats(self):
        r = self.result("--read-io", "1", "--duration", "0.1", "--warmup", "0.05", "--repeats", "3", *TIMEOUTS)
        self.assertEqual(len(r["cells"][0]["repeats"]), 3)
        self.assertTrue(r["complete"])

    def test_shadow_doorbells(self):
        cell, = self.result("--doorbells", "shadow", "--write-io", "2000", "--read-io", "2000", "--batch-size", "8",
                            *TIMEOUTS)["cells"]
        self.assertEqual(cell["verify"]["checked"], 2000)


class MediaFile(WithFolder):
    def setUp(self):
        super().setUp()
        self.media = self.folder / "media"
        self.spec = f"model:media=file:{self.media},capacity=4Mi"

    def digest(self):
        return hashlib.sha256(self.media.read_bytes()).hexdigest()

    def test_survives_a_restart(self):
        self.result("--controller", self.spec, "--write-io", "1000", "--read-io", "0", *TIMEOUTS)
        before = self.digest()
        cell, = self.result("--controller", self.spec, "--write-io", "0", "--read-io", "1000", "--num-queues", "4",
                            *TIMEOUTS)["cells"]
        self.assertEqual(cell["verify"]["checked"], 1000)
        self.assertEqual(cell["verify"]["unverifiable"], 0)
        self.assertEqual(self.digest(), before, "reading changed the media")

    def test_damage_is_found(self):
        self.result("--controller", self.spec, "--write-io", "100", "--read-io", "0", *TIMEOUTS)
        with self.media.open("r+b") as file:
            file.seek(50 * 512 + 99)
            byte = file.read(1)[0]
            file.seek(50 * 512 + 99)
            file.write(bytes([byte ^ 1]))
        cell, = self.result("--controller", self.spec, "--write-io", "0", "--read-io", "100", *TIMEOUTS,
                            code=2)["cells"]
        self.assertEqual(cell["verify"]["corrupt"], 1)
        self.assertEqual(cell["verify"]["first"][0]["address"], 50 * 512)

    def test_every_damage_is_found(self):
        """In a pass that only reads: what was there is noted with the file, or asked for by --verify strict."""
        specs = [self.spec, f"file:{self.media}"]
        for spec in specs:
            for strict in ([], ["--verify", "strict"]):
                self.media.unlink(missing_ok=True)
                self.result("--controller", self.spec, "--write-io", "1000", "--read-io", "0", *TIMEOUTS)
                if strict:
                    self.forget_mark()
                elif not self.has_mark():
                    continue  # a file system without extended attributes
                sound, before = self.media.read_bytes(), self.media.stat()
                plans = {"magic": lambda b: b[:2] + bytes([b[2] ^ 4]) + b[3:], "zeros": lambda b: bytes(512),
                         "payload": lambda b: b[:300] + bytes([b[300] ^ 128]) + b[301:],
                         "header": lambda b: b[:20] + bytes([b[20] ^ 1]) + b[21:], "other": lambda b: b"x" * 512}
                for at, damage in enumerate(plans.values(), 3):
                    with self.media.open("r+b") as file:
                        file.seek(8 * at * 512)
                        file.write(damage(sound[8 * at * 512:(8 * at + 1) * 512]))
                self.as_if_unchanged(before)
                cell, = self.result("--controller", spec, "--write-io", "0", "--read-io", "1000", "--lbas-per-io", "1",
                                    *strict, *TIMEOUTS, *self.as_blocks(spec), code=2)["cells"]
                v = cell["verify"]
                self.assertEqual((v["corrupt"], v["stale"], v["unverifiable"]), (4, 1, 0), (spec, strict))
                self.assertEqual({f["address"] for f in v["first"]}, {8 * at * 512 for at in range(3, 8)})

    @staticmethod
    def as_blocks(spec):
        return ["--direct", "off"] if spec.startswith("file:") else []

    def has_mark(self):
        try:
            return "user.doorbell.written" in os.listxattr(self.media)
        except OSError:
            return False

    def forget_mark(self):
        if self.has_mark():
            os.removexattr(self.media, "user.doorbell.written")

    def as_if_unchanged(self, before):
        """Data that a device damages or loses changes under the same time; only programs that write leave another."""
        os.utime(self.media, ns=(before.st_atime_ns, before.st_mtime_ns))

    def write(self, *more, io=1024, code=0):
        return self.result("--controller", self.spec, "--write-io", str(io), "--read-io", "0", "--batch-size", "64",
                           *TIMEOUTS, *more, code=code)

    def read(self, *more, io=1024, code=0):
        result = self.result("--controller", self.spec, "--write-io", "0", "--read-io", str(io), "--batch-size", "64",
                             *TIMEOUTS, *more, code=code)
        return result["cells"][0]["verify"], " ".join(result["warnings"])

    def test_two_runs_of_one_second_write_different_units(self):
        for _ in range(2):  # within one second, nearly always
            self.write(io=200)
            cell, = self.result("--controller", self.spec, "--write-io", "200", "--read-io", "200", "--fault", "stale=1",
                                *TIMEOUTS, code=2)["cells"]
            self.assertEqual(cell["verify"]["stale"], 200)

    @long
    def test_what_was_lost_before_is_found_by_reading_alone(self):
        """Each pass has a sequence, which the mark notes: in order, at random, and where the last pass was cut short."""
        blocks = 8192
        self.write(io=blocks)
        if not self.has_mark():
            self.skipTest("no extended attributes here")
        for pattern, io, queues in (("sequential", 1024, 3), ("random", 1024, 1), ("random", 1500, 3),
                                    ("sequential", 20000, 1), ("random", 20000, 3)):
            lost, = self.write("--fault", "stale=0.05", "--access-pattern", pattern, "--num-queues", str(queues),
                               io=io)["cells"]
            injected = lost["model"]["injected"]["stale"]
            for how in ([], ["--verify", "strict", "--num-queues", "2", "--access-pattern", "random"],
                        ["--lbas-per-io", "4"]):
                ios = blocks // 4 if "--lbas-per-io" in how else blocks
                v, warnings = self.read(*how, io=ios, code=2)
                found = v["stale"]
                self.assertEqual((v["checked"], v["corrupt"]), (ios, 0), (pattern, io, queues, how))
                self.assertNotIn("which write", warnings)
                # Later passes write again what an earlier one lost; an I/O of several blocks counts once.
                exact = io <= blocks and ios == blocks
                self.assertTrue(found == injected if exact else 0 < found <= injected,
                                (found, injected, pattern, io, queues, how))
            self.write(io=blocks)
            self.assertEqual(self.read(io=blocks)[0]["checked"], blocks)

    def test_half_of_a_write_is_found(self):
        self.write("--lbas-per-io", "8", io=100)
        old = self.media.read_bytes()
        self.write("--lbas-per-io", "8", io=100)
        before = self.media.stat()
        with self.media.open("r+b") as file:
            file.seek(40 * 4096 + 2048)
            file.write(old[40 * 4096 + 2048:41 * 4096])
        self.as_if_unchanged(before)
        ios = ["--lbas-per-io", "8"]
        if self.has_mark():
            self.assertEqual(self.read(*ios, io=100, code=2)[0]["stale"], 1)
            self.forget_mark()
        v, warnings = self.read(*ios, "--verify", "strict", io=100, code=2)
        self.assertEqual((v["stale"], v["first"][0]["address"]), (1, 40 * 4096 + 2048))
        self.assertIn("which write", warnings)
        v, warnings = self.read(*ios, io=100)
        self.assertEqual((v["checked"], v["unverifiable"]), (99, 1))
        self.assertIn("which write", warnings)

    def test_another_content_is_no_damage(self):
        """The mark is of what doorbell wrote, not of what other programs write in its place."""
        for replace in (lambda: self.media.write_bytes(b"precious" * (1 << 19)), self.overwrite_the_first_half):
            self.media.unlink(missing_ok=True)
            self.write(io=8192)
            if not self.has_mark():
                self.skipTest("no extended attributes here")
            replace()
            v, warnings = self.read(io=8192)
            self.assertEqual(v["checked"] + v["unverifiable"], 8192)
            self.assertGreaterEqual(v["unverifiable"], 4096)
            self.assertIn("has changed since", warnings)
            self.read(io=8192, *["--verify", "strict"], code=2)

    def overwrite_the_first_half(self):
        with self.media.open("r+b") as file:
            file.write(b"precious" * (1 << 18))

    def test_a_device_without_a_mark_has_damage_too(self):
        self.write(io=100)
        with self.media.open("r+b") as file:
            file.seek(50 * 512 + 1)
            file.write(b"?")
        v, _ = self.read(io=100, code=2)
        self.assertEqual((v["corrupt"], v["first"][0]["address"]), (1, 50 * 512))

    def test_blocks_never_written_are_no_damage(self):
        self.result("--controller", self.spec, "--write-io", "100", "--read-io", "0", *TIMEOUTS)
        cell, = self.result("--controller", self.spec, "--write-io", "0", "--read-io", "300", *TIMEOUTS)["cells"]
        self.assertEqual((cell["verify"]["checked"], cell["verify"]["unverifiable"]), (100, 200))
        cell, = self.result("--controller", self.spec, "--write-io", "0", "--read-io", "300", "--verify", "strict",
                            *TIMEOUTS, code=2)["cells"]
        self.assertEqual((cell["verify"]["checked"], cell["verify"]["stale"]), (300, 200))
        self.assertEqual(cell["verify"]["mode"], "strict")

    def test_writing_unchecked_does_not_make_it_foreign(self):
        for _ in range(2):
            self.result("--controller", self.spec, "--write-io", "100", "--read-io", "100", "--verify", "off", *TIMEOUTS)
        cell, = self.result("--controller", self.spec, "--write-io", "0", "--read-io", "100", *TIMEOUTS)["cells"]
        self.assertEqual((cell["verify"]["checked"], cell["verify"]["unverifiable"]), (0, 100))
        self.result("--controller", self.spec, "--write-io", "100", "--read-io", "100", *TIMEOUTS)

    def test_reading_never_changes_its_size(self):
        unsized = f"model:media=file:{self.media}"
        self.result("--controller", self.spec, "--write-io", "10", "--read-io", "0", *TIMEOUTS)
        before = self.media.stat()
        for spec in (unsized, f"{unsized},capacity=1Gi"):
            self.result("--controller", spec, "--read-io", "10", "--write-io", "0", *TIMEOUTS)
            after = self.media.stat()
            self.assertEqual((after.st_size, after.st_blocks), (4 << 20, before.st_blocks), spec)

    @long
    def test_data_of_somebody_else_is_found_wherever_it_lies(self):
        """Zeros first, the precious bytes behind; and a run that would write where there is nothing."""
        blocks = 8192
        for start in (1 << 20, (4 << 20) - 7):
            self.media.write_bytes(b"")
            with self.media.open("r+b") as file:
                file.truncate(4 << 20)
                file.seek(start)
                file.write(b"precious"[:(4 << 20) - start])
            before = self.digest()
            for spec in (self.spec, f"file:{self.media}", f"qemu:drive={self.media}"):
                for more in ([], ["--base-lba", str(blocks // 8 if spec.startswith("file:") else blocks // 2), "--write-io", "50",
                                  "--read-io", "0"]):
                    done = run("--controller", spec, *more)
                    self.assertIn(done.returncode, (0, 77) if not more else (1, 77), done.stdout + done.stderr)
                    if done.returncode != 77:
                        self.assertIn("--allow-write", done.stdout + done.stderr)
                    self.assertEqual(self.digest(), before, (spec, more))

    def test_a_full_disk_is_a_media_error(self):
        # To load from what has no space would take space too.
        script = ('mount -t tmpfs -o size=2m none "$1" && "$2" nvme --controller "model:media=file:$1/media,capacity=64Mi" '
                  '--write-io 131072 --read-io 0 --batch-size 64 --timeout 60 --late-after 50 --json "$3"; wrote=$?; '
                  '"$2" nvme --controller "model:media=file:$1/media" --write-io 0 --read-io 131072 --batch-size 64 --timeout 60 '
                  '--late-after 50 >&2 && exit $wrote')
        apart = ["unshare", "-m"] if os.geteuid() == 0 else ["unshare", "-rm"]
        if subprocess.run([*apart, "true"], capture_output=True, check=False).returncode != 0:
            self.skipTest("no mount namespaces here")
        mount = self.folder / "mount"
        mount.mkdir()
        done = subprocess.run([*apart, "sh", "-c", script, "sh", str(mount), DOORBELL, str(self.json)],
                              capture_output=True, text=True, timeout=120, check=False)
        if "mount:" in done.stderr:
            self.skipTest("no tmpfs here")
        self.assertEqual(done.returncode, 2, done.stdout + done.stderr)
        cell, = self.valid(self.json)["cells"]
        self.assertGreater(cell["errors"]["completion"], 0)
        self.assertGreater(cell["metrics"]["ops"], 1000)
        self.assertIn("No space left", cell["model"]["media_refuses_writes"])
        self.assertIn("No space left", "".join(self.valid(self.json)["warnings"]))

    def test_a_file_that_may_only_be_read_is_read(self):
        self.result("--controller", self.spec, "--write-io", "100", "--read-io", "0")
        self.media.chmod(0o444)
        self.folder.chmod(0o755)
        read = [DOORBELL, "nvme", "--controller", f"model:media=file:{self.media}", *TIMEOUTS]
        if os.geteuid() == 0:
            read = ["setpriv", "--reuid=60123", "--regid=60123", "--clear-groups", *read]
        for more, code in ((["--read-io", "100"], 0), (["--read-io", "100", "--initiator", "cpu"], 0), ([], 0),
                           (["--write-io", "100"], 1)):
            done = subprocess.run([*read, *more], capture_output=True, text=True, timeout=60, check=False)
            self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        self.assertIn("Permission denied", done.stderr)

    def test_a_comma_in_its_name(self):
        media = self.folder / "one,two"
        self.result("--controller", f"model:media=file:{self.folder}/one\\,two,capacity=1Mi", "--write-io", "100")
        self.assertTrue(media.exists())

    def test_a_file_of_somebody_else_takes_permission(self):
        self.media.write_bytes(b"precious" * (1 << 19))
        before = self.digest()
        done = run("--controller", self.spec, "--write-io", "10", "--read-io", "10")
        self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
        self.assertIn("--allow-write", done.stderr)
        self.assertEqual(self.digest(), before)
        # Without counts it reads, and says why it does no more.
        done = run("--controller", self.spec)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn("--allow-write", done.stdout + done.stderr)
        self.assertEqual(self.digest(), before)
        self.media.write_bytes(b"precious")  # too small: it would have to grow
        self.assertEqual(run("--controller", self.spec, "--allow-write").returncode, 1)
        self.assertEqual(self.media.read_bytes(), b"precious")
        self.media.write_bytes(b"precious" * (1 << 19))
        self.assertEqual(run("--controller", self.spec, "--allow-write", *TIMEOUTS).returncode, 0)
        self.assertNotEqual(self.digest(), before)

    def test_a_refused_command_touches_nothing(self):
        self.media.write_bytes(os.urandom(4 << 20))
        before = self.digest()
        refused = [
            ["--lbas-per-io", "60000"], ["--lbas-per-io", "0"], ["--lbas-per-io", "65537"],
            ["--queue-length", "1"], ["--queue-length", "70000"], ["--queue-length", "5000"],
            ["--batch-size", "0"], ["--batch-size", "1024"], ["--batch-size", "8", "--queue-length", "8"],
            ["--in-flight", "1024"], ["--num-queues", "0"], ["--num-queues", "65"], ["--num-queues", "4294967297"],
            ["--base-lba", "8192"], ["--base-lba", "-1"], ["--namespace", "0"], ["--namespace", "2"],
            ["--device-engine", "kernel-on-cpu"], ["--device-engine", "quantum"],
            ["--memory-mode", "4"], ["--memory-mode", "7"], ["--memory-mode", "16"], ["--memory-mode", "1"],
            ["--read-io", "-5"], ["--read-io", "1e3"], ["--duration", "1", "--infinite"],
            ["--less-timing", "--substep-timing"], ["--fault", "corrupt=2"], ["--fault", "corupt=0.1"],
            ["--verify", "maybe"], ["--access-pattern", "spiral"], ["--no-such-option"], ["stray"],
            ["--json", "/nonexistent/folder/out.json"], ["--write-io", "0", "--read-io", "0"],
        ]
        for arguments in refused:
            done = run("--controller", self.spec, *arguments)
            self.assertEqual(done.returncode, 1, (arguments, done.stdout, done.stderr))
            self.assertTrue(done.stderr.strip(), arguments)
            self.assertEqual(self.digest(), before, (arguments, "changed the file"))
        for spec in ("model:lba=1000", "model:medai=ram", "model:media=tape", "model:lba=512,lba=512", "mdoel", "",
                     "model:capacity=0", "model:media=file:/dev/null", "model:media=file:/", "model:engine=fast"):
            done = run("--controller", spec)
            self.assertEqual(done.returncode, 1, (spec, done.stdout, done.stderr))


class DeviceEngine(WithFolder):
    def test_the_kernels_code_serves_on_cpu_threads(self):
        result = self.folder / "r.json"
        done = run("--device-engine", "kernel-on-cpu", "--num-queues", "2", "--json", str(result), *TIMEOUTS)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        cell = json.loads(result.read_text())["cells"][0]
        self.assertEqual(cell["device"]["name"], "model:engine=kernel-on-cpu")
        self.assertEqual(cell["verify"]["checked"], 10000)

    def test_only_a_model_has_one(self):
        done = run("--controller", "file:/dev/zero", "--device-engine", "gpu")
        self.assertEqual(done.returncode, 1)
        self.assertIn("--device-engine", done.stderr)


class Faults(WithFolder):
    def test_each_kind_is_found_and_counted(self):
        where = {"corrupt": ("verify", "corrupt"), "misplace": ("verify", "misplaced"), "stale": ("verify", "stale"),
                 "duplicate": ("verify", "duplicated"), "error": ("errors", "completion")}
        for kind, (group, key) in where.items():
            with self.subTest(kind):
                cell, = self.result("--write-io", "3000", "--read-io", "3000", "--num-queues", "2", "--batch-size",
                                    "4", "--fault", f"{kind}=0.01", "--seed", "5", *TIMEOUTS, code=2)["cells"]
                injected = cell["model"]["injected"][kind]
                self.assertGreater(injected, 0)
                self.assertEqual(cell[group][key], injected)

    def test_reordering_is_legal(self):
        cell, = self.result("--write-io", "2000", "--read-io", "2000", "--batch-size", "8", "--fault", "reorder=0.1",
                            *TIMEOUTS)["cells"]
        self.assertGreater(cell["model"]["injected"]["reorder"], 0)
        self.assertEqual(cell["verify"]["checked"], 2000)

    def test_a_dropped_completion_ends_by_the_deadline(self):
        r = self.result("--write-io", "1000", "--read-io", "1000", "--fault", "drop=0.002", "--timeout", "2",
                        "--late-after", "1.9", code=2)
        self.assertEqual(r["stop_reason"], "timeout")
        self.assertFalse(r["complete"])
        cell, = r["cells"]
        self.assertEqual(cell["errors"]["timeout"], cell["model"]["injected"]["drop"])

    def test_a_removed_device(self):
        r = self.result("--write-io", "5000", "--read-io", "5000", "--fault", "removal=0.005", *TIMEOUTS, code=2)
        self.assertEqual(r["stop_reason"], "removed")
        self.assertEqual(r["cells"][0]["errors"]["removal"], 1)


class ExitCodes(WithFolder):
    def test_a_gpu_that_is_not_there(self):
        environment = {**os.environ, "CUDA_VISIBLE_DEVICES": "", "HIP_VISIBLE_DEVICES": "", "ROCR_VISIBLE_DEVICES": ""}
        done = run("--initiator", "gpu", env=environment)
        self.assertEqual(done.returncode, 77, done.stdout + done.stderr)
        self.assertTrue(done.stderr.strip())
        done = run("--initiator", "gpu", "--gpu", "63")
        self.assertEqual(done.returncode, 77, done.stdout + done.stderr)

    def test_a_path_that_is_there_is_a_file(self):
        done = run("--controller", DOORBELL, "--read-io", "10", "--direct", "off", *TIMEOUTS)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        done = run("--controller", "/nonexistent/file", "--read-io", "10")
        self.assertEqual(done.returncode, 1)
        self.assertIn("give --file-size SIZE to make it", done.stderr)

    def test_more_than_16_formats(self):
        done = run("--controller", "model:formats=40,lba=4096", "--write-io", "100", "--read-io", "100", "--json", "-", "--quiet",
                   *TIMEOUTS)
        self.assertEqual(json.loads(done.stdout)["cells"][0]["cell"]["io_bytes"], 4096)

    def test_suggestions(self):
        self.assertIn("--read-io", run("--raed-io", "5").stderr)
        self.assertIn("media", run("--controller", "model:medai=ram").stderr)
        self.assertIn("corrupt", run("--fault", "corupt=0.1").stderr)


class Interrupt(WithFolder):
    def test_leaves_a_valid_partial_result(self):
        for which in (signal.SIGINT, signal.SIGTERM):
            code, out, err = self.interrupt("--infinite", "--num-queues", "2", "--batch-size", "4", which=which)
            self.assertEqual(code, 130, err)
            r = self.valid(self.json)
            self.assertFalse(r["complete"])
            self.assertEqual(r["stop_reason"], "signal")
            self.assertGreater(r["cells"][0]["metrics"]["ops"], 0)
            self.assertEqual(set(r["cells"][0]["errors"].values()), {0})
            self.assertIn("p50", out)

    def test_during_warm_up_too(self):
        code, _, err = self.interrupt("--duration", "3600", "--warmup", "3600")
        self.assertEqual(code, 130, err)
        r = self.valid(self.json)
        self.assertFalse(r["complete"])
        self.assertEqual(r["stop_reason"], "signal")

    def test_a_slow_device(self):
        code, _, err = self.interrupt("--infinite", "--controller", "model:latency=200ms")
        self.assertEqual(code, 130, err)
        self.assertEqual(self.valid(self.json)["stop_reason"], "signal")


if __name__ == "__main__":
    unittest.main()
