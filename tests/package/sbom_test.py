#!/usr/bin/python3
# SPDX-FileCopyrightText: 2026 The doorbell authors
# SPDX-License-Identifier: Apache-2.0

"""The bundle's list of parts: valid as CycloneDX 1.5 asks for the members that it has, and complete.

Environment: BUNDLE, the unpacked bundle.
"""

import copy
import hashlib
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

import jsonschema

SOURCE = pathlib.Path(__file__).resolve().parents[2]
BUNDLE = pathlib.Path(os.environ["BUNDLE"])
sys.path.insert(0, str(SOURCE / "scripts"))

TEXT = {"type": "string", "minLength": 1}


def closed(required, **properties):
    return {"type": "object", "required": required, "properties": properties, "additionalProperties": False}


# The members that sbom.py writes, as the format defines them; it allows no others where this allows none.
LICENCE = {"type": "array", "minItems": 1, "oneOf": [
    {"items": closed(["license"], license={"oneOf": [closed(["id"], id={"enum": [
        "Apache-2.0", "BSD-2-Clause", "BSD-3-Clause", "CC0-1.0", "GPL-2.0-only", "GPL-2.0-or-later", "GPL-3.0-only",
        "GPL-3.0-or-later", "ISC", "LGPL-2.1-only", "LGPL-2.1-or-later", "MIT", "X11", "Zlib"]}), closed(["name"], name=TEXT)]})},
    {"maxItems": 1, "items": closed(["expression"], expression=TEXT)}]}
COMPONENT = closed(
    ["type", "name"], **{"bom-ref": TEXT}, type={"enum": ["application", "library"]}, name=TEXT, version=TEXT, description=TEXT,
    purl={"type": "string", "pattern": r"^pkg:deb/debian/[a-z0-9%.B-]+@[A-Za-z0-9%.~-]+\?arch=[a-z0-9]+$"}, licenses=LICENCE,
    hashes={"type": "array", "items": closed(["alg", "content"], alg={"const": "SHA-256"},
                                             content={"type": "string", "pattern": "^[0-9a-f]{64}$"})},
    evidence=closed([], occurrences={"type": "array", "items": closed(["location"], location=TEXT)}),
    properties={"type": "array", "items": closed(["name", "value"], name=TEXT, value=TEXT)})
SCHEMA = closed(
    ["bomFormat", "specVersion", "version", "serialNumber", "metadata", "components"],
    bomFormat={"const": "CycloneDX"}, specVersion={"const": "1.5"}, version={"const": 1},
    serialNumber={"type": "string", "pattern": "^urn:uuid:[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$"},
    metadata=closed(["timestamp", "component"], component=COMPONENT,
                    timestamp={"type": "string", "pattern": r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$"}),
    components={"type": "array", "items": COMPONENT, "uniqueItems": True},
    dependencies={"type": "array", "items": closed(["ref"], ref=TEXT, dependsOn={"type": "array", "items": TEXT})})


def faults(document, root):
    """All that is wrong with a document of the bundle in root, a text each."""
    found = [error.message[:200] for error in jsonschema.Draft7Validator(SCHEMA).iter_errors(document)]
    if found:
        return found
    parts = document["components"] + [document["metadata"]["component"]]
    names = [part["bom-ref"] for part in parts]
    found += [f"{name} is there twice" for name in set(names) if names.count(name) > 1]
    for dependency in document["dependencies"]:
        found += [f"{name} is no part" for name in [dependency["ref"], *dependency["dependsOn"]] if name not in names]
    listed = {}
    for part in document["components"]:
        for place in part.get("evidence", {}).get("occurrences", []):
            listed[place["location"]] = part["hashes"][0]["content"]
    there = {f"lib/{path.name}": hashlib.sha256(path.read_bytes()).hexdigest() for path in (root / "lib").glob("*.so*")}
    found += [f"{name} is not listed" for name in there if name not in listed]
    found += [f"{name} is not there" for name in listed if name not in there]
    found += [f"{name} has another sum" for name in there if listed.get(name, there[name]) != there[name]]
    return found


class Sbom(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        if not (BUNDLE / "bin/doorbell").exists():
            raise unittest.SkipTest("no bundle was made")
        cls.document = json.loads((BUNDLE / "sbom.cdx.json").read_text())

    def test_valid_and_complete(self):
        self.assertEqual(faults(self.document, BUNDLE), [])
        self.assertGreater(len(list((BUNDLE / "lib").glob("*.so*"))), 2)

    def test_a_fault_is_found(self):
        library = next(part for part in self.document["components"] if part["bom-ref"].startswith("lib/"))
        index = self.document["components"].index(library)

        def changed(change):
            document = copy.deepcopy(self.document)
            change(document["components"], document["components"][index])
            return document
        for change in (lambda parts, part: parts.remove(part), lambda parts, part: part.pop("name"),
                       lambda parts, part: part.update(licenses=[]), lambda parts, part: part.update(kind="library"),
                       lambda parts, part: part["hashes"][0].update(content="0" * 64), lambda parts, part: parts.append(part),
                       lambda parts, part: part["evidence"]["occurrences"][0].update(location="lib/libnone.so.1")):
            self.assertNotEqual(faults(changed(change), BUNDLE), [])

    def test_the_program(self):
        component = self.document["metadata"]["component"]
        said = subprocess.run([str(BUNDLE / "bin/doorbell"), "--version"], check=True, capture_output=True, text=True).stdout
        version, revision = re.match(r"doorbell (\S+) \(([^,]*),", said).groups()
        self.assertEqual((component["version"], component["properties"][0]["value"]), (version, revision))
        self.assertEqual(component["hashes"][0]["content"], hashlib.sha256((BUNDLE / "bin/doorbell").read_bytes()).hexdigest())

    def test_debian_says_the_same(self):
        for part in self.document["components"]:
            if "purl" not in part:
                continue
            installed = subprocess.run(["dpkg-query", "-W", "-f", "${Version}\n", part["name"]], capture_output=True, text=True).stdout
            self.assertIn(part["version"], installed.split(), part["name"])
            self.assertIn("licenses", part, part["name"])
            text = {item["name"]: item["value"] for item in part["properties"]}["doorbell:licence-text"]
            self.assertGreater((BUNDLE / text).stat().st_size, 100)

    def test_licences_of_a_copyright_file(self):
        import sbom
        text = ("Format: x\n\nFiles: *\nCopyright: a\nLicense: Expat\n\nFiles: src/b.c\n  src/c.c\nLicense: Odd-1\n\n"
                "Files: debian/*\nLicense: GPL-2+\n\nLicense: BSD-3-clause\n text\n")
        self.assertEqual(sbom.licences(text), [{"license": {"id": "MIT"}}, {"license": {"name": "Odd-1"}}])
        self.assertEqual(sbom.licences("free text"), [])

    def test_a_library_of_no_package(self):
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            (root / "bin").mkdir()
            (root / "lib").mkdir()
            (root / "bin/doorbell").write_text("#!/bin/sh\necho 'doorbell 9.9.9 (x, Release)'\n")
            (root / "bin/doorbell").chmod(0o755)
            (root / "lib/libown.so.1").write_bytes(b"own")
            subprocess.run([str(SOURCE / "scripts/sbom.py"), folder, "x", "0"], check=True, text=True,
                           input=f"libown.so.1 {folder}/lib/libown.so.1\n")
            document = json.loads((root / "sbom.cdx.json").read_text())
            self.assertEqual(faults(document, root), [])
            self.assertEqual([part["name"] for part in document["components"]], ["libown.so.1"])
            self.assertNotIn("purl", document["components"][0])


if __name__ == "__main__":
    unittest.main()
