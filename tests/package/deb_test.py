#!/usr/bin/python3
# SPDX-FileCopyrightText: 2026 The doorbell authors
# SPDX-License-Identifier: Apache-2.0

"""The Debian packages as scripts/deb.sh makes them: what each holds, asks for and says, and that it is the same each time.

Environment: BUILD (the build folder), DEBS (where they are), STAGE (an installation, of the same build, below usr/local).
"""

import ctypes
import hashlib
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

SOURCE = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ["BUILD"])
DEBS = pathlib.Path(os.environ["DEBS"])
STAGE = pathlib.Path(os.environ["STAGE"]) / "usr/local"
PACKAGES = ["doorbell", "doorbell-daemon", "libdoorbell-dev", "libdoorbell1"]
PYTHON = "python3-doorbell"

# Of each package, everything that it may hold. A pattern that ends with "?" may be absent.
OF_ALL = [r"usr/share/doc/{name}/copyright", r"usr/share/doc/{name}/changelog.gz"]
HOLDS = {
    "doorbell": [
        r"usr/bin/doorbell", r"usr/bin/cxi_gpu_loopback_bw",
        r"usr/lib/doorbell/doorbell_dpdk\.so?", r"usr/lib/doorbell/fio/[\w-]+\.so?",
        r"usr/lib/doorbell/cxi/libcxi\.so\.1",
        r"usr/lib/doorbell/verbs/libdoorbell-verbs-preload\.so", r"usr/lib/doorbell/verbs/lib(ibverbs|rdmacm)\.so\.[\d.]+",
        r"usr/lib/doorbell/verbs/mlx5/libmlx5\.so\.[\d.]+",
        r"usr/share/man/man1/doorbell\.1\.gz", r"usr/share/man/man1/doorbell-[a-z-]+\.1\.gz",
        r"usr/share/man/man1/cxi_gpu_loopback_bw\.1\.gz",
        r"usr/share/bash-completion/completions/(doorbell|cxi_gpu_loopback_bw)",
        r"usr/share/zsh/vendor-completions/_doorbell",
        r"usr/share/fish/vendor_completions.d/(doorbell|cxi_gpu_loopback_bw)\.fish",
        r"usr/share/doorbell/schema/[\w.-]+\.json", r"usr/share/doorbell/plans/[\w.-]+\.yaml",
        r"usr/share/doorbell/plans/reference/[\w.-]+\.(csv|md)",
        r"usr/share/doorbell/python/doorbell_report/\w+\.py",
        r"usr/share/doorbell/python/doorbell_report/templates/[\w.]+",
        # Debian's Python compiles the report once more when it is itself replaced.
        r"usr/share/python3/runtime\.d/doorbell\.rtupdate",
        r"usr/share/doc/doorbell/(README|CHANGELOG|SECURITY)\.md",
        r"usr/share/doc/doorbell/docs/[\w./-]+",
    ],
    "doorbell-daemon": [
        r"usr/bin/doorbelld", r"etc/doorbell/roles\.conf", r"etc/default/doorbelld",
        r"lib/systemd/system/doorbelld\.service", r"lib/systemd/system/doorbelld\.socket",
        r"usr/lib/sysusers\.d/doorbelld\.conf", r"usr/share/doorbell/roles\.conf",
        r"usr/share/man/man8/doorbelld\.8\.gz", r"usr/share/bash-completion/completions/doorbelld",
        r"usr/share/fish/vendor_completions.d/doorbelld\.fish",
    ],
    "libdoorbell1": [r"usr/lib/libdoorbell\.so\.1", r"usr/lib/libdoorbell\.so\.1\.[\d.]+"],
    "libdoorbell-dev": [
        r"usr/include/doorbell/doorbell\.h", r"usr/include/doorbell/[\w/]+\.(h|hpp)",
        r"usr/lib/libdoorbell\.a", r"usr/lib/libdoorbell\.so", r"usr/lib/pkgconfig/doorbell(-c)?\.pc",
        r"usr/lib/cmake/doorbell/doorbell\w+(-\w+)?\.cmake",
        r"usr/share/doc/doorbell/examples/[\w./-]+", r"usr/share/doc/libdoorbell-dev/examples",
    ],
    PYTHON: [
        r"usr/lib/python3/dist-packages/doorbell/__init__\.py", r"usr/lib/python3/dist-packages/doorbell/_native\.[\w.-]*so",
        r"usr/lib/python3/dist-packages/doorbell/[\w./-]+", r"usr/lib/python3/dist-packages/doorbell_report/[\w./-]+?",
        r"usr/lib/python3/dist-packages/doorbell-[\d.]+\.dist-info/[\w./-]+?",
    ],
}
ASKS_FOR = {
    "doorbell": {"libc6", "libfmt9", "libisal2", "liburing2", "libyaml-cpp0.7"},
    "doorbell-daemon": {"libc6", "libsystemd0", "systemd"},
    "libdoorbell1": {"libc6", "libfmt9", "liburing2"},
    "libdoorbell-dev": {"libdoorbell1", "libfmt-dev", "liburing-dev"},
    PYTHON: {"libc6", "python3-numpy", "python3"},
}


def said(*command, **more):
    return subprocess.run(command, check=True, capture_output=True, text=True, **more).stdout


def package_files(folder):
    return {said("dpkg-deb", "-f", str(deb), "Package").strip(): deb for deb in sorted(folder.glob("*.deb"))}


class Packages(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        if not list(DEBS.glob("*.deb")):
            raise unittest.SkipTest("no packages were built")
        cls.debs = package_files(DEBS)

    def field(self, package, name):
        return said("dpkg-deb", "-f", str(self.debs[package]), name).strip()

    def names(self, package, field):
        return set(re.findall(r"(?:^|[,|]\s*)([a-z0-9.+-]+)", self.field(package, field)))

    def test_all_are_there(self):
        self.assertEqual(sorted(set(self.debs) - {PYTHON}), PACKAGES)

    def test_contents(self):
        owners = {}
        for package, deb in self.debs.items():
            listed = [line.split(maxsplit=5) for line in said("dpkg-deb", "-c", str(deb)).splitlines()]
            paths = []
            for mode, owner, _, _, _, path in listed:
                self.assertEqual(owner, "root/root", path)
                self.assertFalse(mode[0] != "l" and "w" in mode[5:], f"{path} of {package} is writable: {mode}")
                if not mode.startswith("d"):
                    paths.append(path.split(" -> ")[0].removeprefix("./"))
            unused = [pattern.format(name=package) if "{name}" in pattern else pattern for pattern in OF_ALL + HOLDS[package]]
            matched = set()
            for path in paths:
                fitting = [p for p in unused if re.fullmatch(p.removesuffix("?"), path)]
                self.assertTrue(fitting, f"{package} holds {path}, which its list does not have")
                matched.update(fitting)
                self.assertIsNone(owners.get(path), f"{path} is of {package} and of {owners.get(path)}")
                owners[path] = package
            missing = [pattern for pattern in unused if pattern not in matched and not pattern.endswith("?")]
            self.assertEqual(missing, [], f"{package} lacks them")
        # Nothing of an installation is in no package, but what Debian has elsewhere.
        for path in STAGE.rglob("*"):
            name = "usr/" + str(path.relative_to(STAGE))
            if path.is_dir() and not path.is_symlink() or name == "usr/share/doc/doorbell/LICENSE":
                continue
            name = re.sub(r"^usr/lib/systemd", "lib/systemd", name)
            name += ".gz" if re.match(r"usr/share/man/", name) else ""
            self.assertIn(name, owners, "is installed, and in no package")

    def test_dependencies(self):
        for package in self.debs:
            asks = self.names(package, "Depends")
            self.assertLessEqual(ASKS_FOR[package], asks, package)
            # Neither a compiler nor what only a plugin needs, of a bare Debian that takes recommended packages too.
            both = asks | self.names(package, "Recommends")
            heavy = {name for name in both if re.match(r"(gcc|g\+\+|clang|cpp|librte|dpdk|python3-matplotlib)", name)}
            self.assertEqual(heavy - {"gcc-12-base"}, set(), package)
        self.assertIn("python3-jinja2", self.names("doorbell", "Recommends"))

    def test_programs_have_no_path_for_libraries(self):
        if not shutil.which("readelf"):
            self.skipTest("binutils is not installed")
        with tempfile.TemporaryDirectory() as folder:
            for deb in self.debs.values():
                said("dpkg-deb", "-x", str(deb), folder)
            found = [pathlib.Path(folder) / "usr/bin" / name for name in ("doorbell", "doorbelld")]
            found += [path for path in pathlib.Path(folder).rglob("*.so*")
                      if re.search(r"\.so[\d.]*$", path.name) and not path.is_symlink()]
            self.assertGreaterEqual(len(found), 3)
            for path in found:
                dynamic = said("readelf", "-d", str(path))
                self.assertIn("NEEDED", dynamic)
                self.assertNotRegex(dynamic, r"RPATH|RUNPATH", str(path))

    def test_settings_and_units(self):
        control = said("dpkg-deb", "--info", str(self.debs["doorbell-daemon"]), "conffiles").split()
        self.assertEqual(sorted(control), ["/etc/default/doorbelld", "/etc/doorbell/roles.conf"])
        unit = said("sh", "-c", 'dpkg-deb --fsys-tarfile "$0" | tar -xO ./lib/systemd/system/doorbelld.service',
                    str(self.debs["doorbell-daemon"]))
        self.assertIn("ExecStart=/usr/bin/doorbelld ", unit)
        staged = (STAGE / "lib/systemd/system/doorbelld.service").read_text()
        self.assertIn("ExecStart=/usr/local/bin/doorbelld ", staged)

    def test_one_version(self):
        version = re.search(r"project\(doorbell VERSION ([\d.]+)", (SOURCE / "CMakeLists.txt").read_text()).group(1)
        program = re.match(r"doorbell ([\d.]+) \((\S+),", said(str(BUILD / "bin/doorbell"), "--version"))
        self.assertEqual(program.group(1), version)
        versions = {self.field(package, "Version") for package in self.debs}
        self.assertEqual(len(versions), 1, versions)
        upstream, _, revision = versions.pop().partition("+git")
        self.assertEqual(upstream, version)
        self.assertTrue(revision.endswith(program.group(2).replace("-", ".")) if revision
                        else program.group(2) in ("unknown", f"v{version}"), (revision, program.group(2)))
        library = ctypes.CDLL(str(STAGE / "lib/libdoorbell.so.1"))
        library.doorbell_version.restype = ctypes.c_char_p
        self.assertEqual(library.doorbell_version().decode().split()[0], version)
        for name in ("doorbell", "doorbell-c"):
            text = (STAGE / f"lib/pkgconfig/{name}.pc").read_text()
            self.assertEqual(re.search(r"^Version: (.*)$", text, re.MULTILINE).group(1), version)
        with tempfile.TemporaryDirectory() as folder:
            script = pathlib.Path(folder) / "version.cmake"
            script.write_text(f'include("{STAGE}/lib/cmake/doorbell/doorbellConfigVersion.cmake")\nmessage("${{PACKAGE_VERSION}}")\n')
            found = subprocess.run(["cmake", "-P", str(script)], check=True, capture_output=True, text=True).stderr.strip()
        self.assertEqual(found, version)

    def test_the_same_again(self):
        with tempfile.TemporaryDirectory() as folder:
            again = pathlib.Path(folder) / "debs"
            environment = os.environ | {"BUILD": str(BUILD), "TZ": "Asia/Tokyo", "LC_ALL": "C"}
            subprocess.run(["sh", "-c", 'umask 077; exec "$0" --dir "$1"', str(SOURCE / "scripts/deb.sh"), str(again)],
                           check=True, capture_output=True, env=environment)
            second = package_files(again)
            self.assertEqual(sorted(second), sorted(self.debs))
            for package, deb in self.debs.items():
                self.assertEqual(hashlib.sha256(deb.read_bytes()).hexdigest(),
                                 hashlib.sha256(second[package].read_bytes()).hexdigest(), package)

    def test_lintian(self):
        if not shutil.which("lintian"):
            self.skipTest("lintian is not installed")
        # The project has no address for mail; who publishes packages gives DEBEMAIL.
        changes = next(DEBS.glob("*.changes"))
        done = subprocess.run(["lintian", "--allow-root", "--fail-on", "error", "--suppress-tags",
                               "bogus-mail-host,bogus-mail-host-in-debian-changelog", str(changes)], capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)


if __name__ == "__main__":
    unittest.main()
