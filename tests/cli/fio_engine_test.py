#!/usr/bin/python3
# SPDX-FileCopyrightText: 2026 The doorbell authors
# SPDX-License-Identifier: Apache-2.0
"""libfio-doorbell.so as the machine's own fio drives it: fio verifies what the NVMe path stores, and finds every fault."""

import json
import os
import pathlib
import shutil
import signal
import subprocess
import unittest

from harness import ROOT, WithFolder, cpu_s, end_of, wait_until

ENGINE = os.environ.get("FIO_ENGINE", "")
FIO = shutil.which("fio")
VERIFY = ["--verify=crc32c"]
PATIENT = "--answer_timeout=60s"  # a busy machine is not an error


@unittest.skipUnless(ENGINE, "libfio-doorbell.so is not built: no source of fio (docs/fio.md)")
@unittest.skipUnless(FIO, "fio is not installed")
class FioEngine(WithFolder):
    model = "model:capacity=64Mi"

    def command_of(self, *arguments, controller=None, thread=True):
        return [FIO, "--name=job", f"--ioengine=external:{ENGINE}", f"--controller={controller or self.model}",
                *(["--thread"] if thread else []), *arguments]

    def fio(self, *arguments, **how):
        """Runs it to its end, in the test's own folder: fio leaves files of its own about what it could not verify."""
        return subprocess.run(self.command_of(*arguments, **how), capture_output=True, text=True, timeout=240, cwd=self.folder)

    def jobs(self, *arguments, **how):
        """The jobs' results of a run in which all is good."""
        done = self.fio(PATIENT, *arguments, "--output-format=json", **how)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        jobs = json.loads(done.stdout[done.stdout.index("{"):])["jobs"]
        self.assertEqual([j["error"] for j in jobs], [0] * len(jobs))
        return jobs

    def refused(self, *arguments, words, **how):
        """fio ends with an error, whose words are there."""
        done = self.fio(*arguments, **how)
        text = done.stdout + done.stderr
        self.assertNotEqual(done.returncode, 0, text)
        self.assertGreater(done.returncode, 0, text)  # not by a signal
        for word in [words] if isinstance(words, str) else words:
            self.assertIn(word, text)
        return text


class Verified(FioEngine):
    def test_sizes_and_depths(self):
        for size, depth in (("512", 1), ("4k", 1), ("4k", 32), ("4k", 128), ("8k", 2), ("128k", 1), ("128k", 128), ("2m", 4)):
            with self.subTest(bs=size, iodepth=depth):
                job, = self.jobs("--rw=randwrite", f"--bs={size}", f"--iodepth={depth}", "--size=8m", *VERIFY)
                # All is written, and read back by fio.
                self.assertEqual(job["write"]["io_bytes"], 8 << 20)
                self.assertGreaterEqual(job["read"]["io_bytes"], 8 << 20)

    def test_mixed_work(self):
        job, = self.jobs("--rw=randrw", "--bs=4k", "--iodepth=32", "--size=8m", *VERIFY)
        self.assertGreater(job["write"]["total_ios"], 500)
        self.assertGreater(job["read"]["total_ios"], job["write"]["total_ios"])
        self.jobs("--rw=randrw", "--bsrange=512-64k", "--bs_unaligned=0", "--iodepth=16", "--size=8m", "--fsync=16", *VERIFY)
        self.jobs("--rw=randwrite", "--bs=4k", "--iodepth=64", "--verify_backlog=64", "--verify_async=1", "--size=4m", *VERIFY)

    def test_jobs_share_a_controller(self):
        jobs = self.jobs("--rw=randrw", "--bs=4k", "--iodepth=8", "--size=4m", "--numjobs=4", "--offset_increment=4m", *VERIFY)
        self.assertEqual(len(jobs), 4)

    def test_a_later_job_reads_what_an_earlier_one_wrote(self):
        jobs = self.jobs("--rw=write", "--bs=64k", "--size=8m", "--do_verify=0", *VERIFY, "--name=reader", "--stonewall",
                         f"--ioengine=external:{ENGINE}", f"--controller={self.model}", "--thread", PATIENT, "--rw=read",
                         "--bs=64k", "--iodepth=16", "--size=8m", *VERIFY)
        self.assertEqual([j["jobname"] for j in jobs], ["job", "reader"])
        self.assertEqual(jobs[1]["read"]["io_bytes"], 8 << 20)

    def test_a_process(self):
        job, = self.jobs("--rw=randrw", "--bs=4k", "--iodepth=8", "--size=4m", *VERIFY, thread=False)
        self.assertGreater(job["write"]["total_ios"], 0)

    def test_a_file_outlives_fio(self):
        media = self.folder / "media"
        with open(media, "wb") as file:
            file.truncate(8 << 20)
        how = {"controller": f"model:media=file:{media}"}
        self.jobs("--rw=write", "--bs=128k", "--iodepth=4", "--do_verify=0", *VERIFY, **how)
        job, = self.jobs("--rw=read", "--bs=128k", "--iodepth=4", *VERIFY, **how)
        self.assertEqual(job["read"]["io_bytes"], 8 << 20)  # the size is the namespace's
        self.refused("--rw=write", "--bs=128k", words=["doorbell did not write", "allow_write=1"], **how)
        self.jobs("--rw=write", "--bs=128k", "--allow_write=1", *VERIFY, **how)
        with open(media, "r+b") as file:
            file.seek(5 << 20)
            file.write(b"damage")
        self.refused("--rw=read", "--bs=128k", "--iodepth=4", *VERIFY, words="verify", **how)

    def test_a_queue_that_holds_less_than_the_depth(self):
        self.jobs("--rw=randwrite", "--bs=4k", "--iodepth=32", "--queue_depth=4", "--size=4m", *VERIFY)

    def test_work_by_time(self):
        job, = self.jobs("--rw=randread", "--bs=4k", "--iodepth=8", "--size=4m", "--time_based", "--runtime=1")
        self.assertGreaterEqual(job["read"]["runtime"], 990)
        self.assertGreater(job["read"]["io_bytes"], 0)

    def test_ctrl_c(self):
        for thread in (True, False):
            command = self.command_of(PATIENT, "--rw=randrw", "--bs=4k", "--iodepth=32", "--size=4m", "--time_based",
                                      "--runtime=600", "--output-format=json", thread=thread)
            with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=self.folder) as process:
                wait_until(lambda: process.poll() is not None or self.worked(process) > 0.3, "work")
                process.send_signal(signal.SIGINT)
                out, err = end_of(process)
            self.assertEqual(process.returncode, 128, out + err)
            job, = json.loads(out[out.index("{"):])["jobs"]
            self.assertEqual(job["error"], 0)
            self.assertGreater(job["read"]["total_ios"], 0)

    @staticmethod
    def worked(process):
        """Processor time of fio and its jobs."""
        total = cpu_s(process)
        for children in pathlib.Path(f"/proc/{process.pid}/task").glob("*/children"):
            for child in children.read_text(encoding="utf-8").split():
                fields = pathlib.Path(f"/proc/{child}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
                total += (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
        return total

    def test_qemu(self):
        backends = subprocess.run([os.environ["DOORBELL"], "backends"], capture_output=True, text=True, timeout=60, check=True)
        if not any("qemu" in line and "yes" in line for line in backends.stdout.splitlines()):
            self.skipTest("QEMU's controller is not here")
        self.jobs("--rw=randrw", "--bs=4k", "--iodepth=8", "--size=2m", "--numjobs=2", "--offset_increment=2m", *VERIFY,
                  controller="qemu")


class Found(FioEngine):
    """Faults of the model: fio ends with an error, and says which."""

    work = ["--rw=randwrite", "--bs=4k", "--iodepth=16", "--size=8m", *VERIFY]

    def test_damage(self):
        for fault, words in (("corrupt=0.01", "verify failed"), ("misplace=0.01", "verify: bad"), ("stale=0.01", "verify: bad")):
            with self.subTest(fault=fault):
                self.refused(PATIENT, *self.work, f"--fault={fault}", words=words)

    def test_an_error_status(self):
        for thread in (True, False):
            self.refused(PATIENT, "--rw=randread", "--bs=4k", "--iodepth=16", "--size=8m", "--fault=error=0.01", thread=thread,
                         words=["Input/output error", "NVMe status Unrecovered Read Error (0x281)"])
        self.refused(PATIENT, *self.work, "--fault=error=0.01", words="NVMe status Write Fault (0x280)")

    def test_a_lost_command(self):
        self.refused(*self.work, "--fault=drop=0.01", "--answer_timeout=1s", words=["timed out", "did not answer in time"])

    def test_a_completion_that_comes_twice(self):
        for thread in (True, False):
            # Of one I/O: the second completion comes behind the last outcome.
            for size in ("8m", "4k"):
                self.refused(PATIENT, "--rw=randread", "--bs=4k", f"--size={size}", "--fault=duplicate=1", thread=thread,
                             words="a completion came twice")

    def test_a_removed_controller(self):
        self.refused(*self.work, "--fault=removal=0.01", words=["No such device", "gone"])

    def test_what_is_legal(self):
        self.jobs(*self.work, "--fault=reorder=0.1,delay=0.001", controller="model:capacity=64Mi,delay=20ms")


class Refused(FioEngine):
    def test_in_words(self):
        read = ["--rw=randread", "--bs=4k", "--size=1m"]
        for arguments, words, how in (
                ([*read, "--bs=5000"], "multiples of 512 bytes", {}),
                ([*read, "--bs=2k"], "have 4096 bytes", {"controller": "model:lba=4096"}),
                ([*read, "--offset=1k"], "multiples of", {"controller": "model:lba=4096"}),
                ([*read, "--bs=4m", "--size=4m"], "moves at most 2097152", {}),
                ([*read, "--iodepth=2000"], "takes 1 to 1023", {}),
                ([*read, "--filename=/dev/null"], "filename=ns1", {}),
                ([*read, "--filename=ns7"], "namespace 7", {}),
                ([*read, "--fault=corupt=1"], "unknown key 'corupt'", {}),
                ([*read, "--fault=drop=1"], "not a model", {"controller": "qemu"}),
                ([*read, "--mem=mmap"], "conflicts with", {}),
                ([*read, "--create_serialize=0"], "create_serialize", {}),
                ([*read, "--io_submit_mode=offload"], "offload", {}),
                (["--rw=randtrim", "--bs=4k", "--size=1m"], "Dataset Management", {}),
                (["--rw=randwrite", "--bs=4k", "--size=1m", *VERIFY], "nothing can be verified", {"controller": "model:media=null"}),
                (read, "unknown key 'medium'", {"controller": "model:medium=ram"}),
                (read, "through the kernel", {"controller": "file:/dev/null"}),
                ([*read, "--numjobs=2"], "add thread=1", {"thread": False})):
            with self.subTest(arguments=arguments, **how):
                self.refused(*arguments, words=words, **how)

    def test_jobs_that_must_agree(self):
        second = ["--name=second", f"--ioengine=external:{ENGINE}", f"--controller={self.model}", "--thread", "--rw=read", "--size=1m"]
        self.refused("--rw=read", "--size=1m", *second, "--fault=drop=0.1", words="must agree")
        self.refused("--rw=read", "--size=1m", *second, words="cannot share", thread=False)

    def test_more_jobs_than_queues(self):
        self.refused("--rw=read", "--size=1m", "--time_based", "--runtime=1", "--numjobs=3", words="2 queue pairs are in use",
                     controller="model:queues=2")


class Library(FioEngine):
    def test_all_but_ioengine_is_hidden(self):
        if shutil.which("nm") is None or shutil.which("readelf") is None:
            self.skipTest("no binutils")
        symbols = subprocess.run(["nm", "-D", "--defined-only", ENGINE], capture_output=True, text=True, check=True, timeout=60).stdout
        self.assertEqual([line.split()[-1] for line in symbols.splitlines()], ["ioengine"])
        dynamic = subprocess.run(["readelf", "-d", ENGINE], capture_output=True, text=True, check=True, timeout=60).stdout
        needed = [line for line in dynamic.splitlines() if "NEEDED" in line]
        self.assertTrue(needed)
        self.assertFalse([line for line in needed if "cuda" in line or "nvidia" in line or "cxi" in line])

    def test_another_version_of_fio(self):
        version = subprocess.run([FIO, "--version"], capture_output=True, text=True, check=True, timeout=60).stdout.strip().encode()
        other = self.folder / "other.so"
        built = pathlib.Path(ENGINE).read_bytes()
        self.assertIn(version, built)
        other.write_bytes(built.replace(version, b"fio-" + b"9" * (len(version) - 4)))
        done = subprocess.run([FIO, "--name=job", f"--ioengine=external:{other}", "--rw=read", "--size=1m", "--thread"],
                              capture_output=True, text=True, timeout=60, cwd=self.folder)
        self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
        self.assertIn("the engine is built for fio-999", done.stdout + done.stderr)

    def test_its_options_are_said(self):
        help_of = subprocess.run([FIO, f"--enghelp={ENGINE}"], capture_output=True, text=True, timeout=60)
        for option in ("controller", "namespace", "queue_depth", "answer_timeout", "allow_write", "buffer_memory", "fault"):
            self.assertIn(option, help_of.stdout + help_of.stderr)

    def test_the_example(self):
        example = ROOT / "examples" / "fio" / "doorbell.fio"
        done = subprocess.run([FIO, str(example), "--output-format=json"], capture_output=True, text=True, timeout=240, cwd=self.folder,
                              env={**os.environ, "FIO_DOORBELL": ENGINE})
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        jobs = json.loads(done.stdout[done.stdout.index("{"):])["jobs"]
        self.assertEqual([(j["jobname"], j["error"]) for j in jobs], [("fill", 0), ("mixed", 0), ("mixed", 0), ("latency", 0)])


if __name__ == "__main__":
    unittest.main()
