#!/usr/bin/python3
# SPDX-FileCopyrightText: 2026 The doorbell authors
# SPDX-License-Identifier: Apache-2.0

"""Writes what a bundle is made of, as a CycloneDX 1.5 document, and copies the licence texts of what is not this project's.

Usage: sbom.py ROOT REVISION SECONDS <LIBRARIES
ROOT is the unpacked bundle, REVISION the one that the program says, SECONDS the time that the document carries. Standard
input has, a line each, the name of a library in ROOT/lib and the file of this machine that it was copied from. Written are
ROOT/sbom.cdx.json and ROOT/share/doc/doorbell/third-party/PACKAGE.copyright. Version, source and licences are those of the
Debian package that owns the file; a library that no package owns has a name and a sum only.
"""

import datetime
import hashlib
import json
import pathlib
import re
import subprocess
import sys
import urllib.parse
import uuid

# Debian's names of licences, as SPDX has them. Others stand as names.
SPDX = {"expat": "MIT", "mit": "MIT", "x11": "X11", "bsd-2-clause": "BSD-2-Clause", "bsd-3-clause": "BSD-3-Clause",
        "cc0-1.0": "CC0-1.0", "zlib": "Zlib", "apache-2.0": "Apache-2.0", "isc": "ISC", "lgpl-2.1+": "LGPL-2.1-or-later",
        "lgpl-2.1": "LGPL-2.1-only", "gpl-2": "GPL-2.0-only", "gpl-2+": "GPL-2.0-or-later", "gpl-2.0+": "GPL-2.0-or-later",
        "gpl-3": "GPL-3.0-only", "gpl-3+": "GPL-3.0-or-later"}


def query(*command):
    """What a command says, or nothing where it fails or is not installed."""
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError):
        return ""


def owner(path):
    """The Debian package of a file, or None."""
    path = str(path)
    for name in dict.fromkeys((path, str(pathlib.Path(path).resolve()), path.removeprefix("/usr"), "/usr" + path)):
        found = query("dpkg-query", "-S", name)
        if found:
            return found.split(": ")[0].split(",")[0]
    return None


def package_of(name):
    """Name, version, architecture, source and licence file of an installed package."""
    fields = query("dpkg-query", "-W", "-f", "${Package}\t${Version}\t${Architecture}\t${source:Package}", name).split("\t")
    if len(fields) != 4:
        return None
    text = pathlib.Path("/usr/share/doc") / fields[0] / "copyright"
    return {"name": fields[0], "version": fields[1], "architecture": fields[2], "source": fields[3],
            "text": text.read_text(encoding="utf-8") if text.is_file() else ""}


def licences(text):
    """The licences that a copyright file names: all that some file of the source package has."""
    if not text.startswith("Format:"):
        if "GCC RUNTIME LIBRARY EXCEPTION" in text:
            return [{"expression": "GPL-3.0-or-later WITH GCC-exception-3.1"}]
        return []
    # A stanza of files names its licence; one without files has only the text of a licence, and one of debian/ is of
    # Debian's packaging, which no bundle has.
    names = []
    for stanza in re.split(r"\n\s*\n", text):
        files = re.search(r"^Files:((?:.*\n)(?:[ \t].*\n)*)", stanza, re.MULTILINE)
        name = re.search(r"^License:[ \t]*(\S.*)$", stanza, re.MULTILINE)
        if files and name and not all(file.startswith("debian/") for file in files.group(1).split()):
            names.append(SPDX.get(name.group(1).lower(), name.group(1)))
    return [{"license": {"id": name} if name in SPDX.values() else {"name": name}} for name in dict.fromkeys(names)]


def sum_of(path):
    return [{"alg": "SHA-256", "content": hashlib.sha256(path.read_bytes()).hexdigest()}]


def of_debian(component, package, texts):
    """Adds to a component what its Debian package says of it."""
    version = urllib.parse.quote(package["version"], safe="")
    component["version"] = package["version"]
    component["purl"] = f"pkg:deb/debian/{package['name'].replace('+', '%2B')}@{version}?arch={package['architecture']}"
    component["properties"] = [{"name": "debian:source", "value": package["source"]}]
    if found := licences(package["text"]):
        component["licenses"] = found
    if package["text"]:
        texts.mkdir(parents=True, exist_ok=True)
        (texts / f"{package['name']}.copyright").write_text(package["text"], encoding="utf-8")
        component["properties"].append({"name": "doorbell:licence-text",
                                        "value": f"share/doc/doorbell/third-party/{package['name']}.copyright"})
    return component


def json_library(program, texts):
    """The JSON library, of headers only: its version stands in the names of its types."""
    match = re.search(rb"8nlohmann(\d\d)(json_abi[0-9a-z_]+)", program.read_bytes())
    if not match:
        return []
    version = ".".join(re.findall(rb"\d+", match.group(2)[:int(match.group(1))])[i].decode() for i in range(3))
    component = {"type": "library", "bom-ref": "compiled-in/nlohmann-json", "name": "nlohmann-json3-dev", "version": version,
                 "description": "headers, compiled into bin/doorbell"}
    package = package_of("nlohmann-json3-dev")
    if package and package["version"].split("-")[0].split("+")[0] == version:
        of_debian(component, package, texts)
    return [component]


def main():
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    root, revision = pathlib.Path(sys.argv[1]), sys.argv[2]
    time = datetime.datetime.fromtimestamp(int(sys.argv[3]), datetime.timezone.utc)
    version = query(str(root / "bin/doorbell"), "--version").split()[1]
    texts = root / "share/doc/doorbell/third-party"
    components = json_library(root / "bin/doorbell", texts)
    for line in sorted(sys.stdin):
        soname, path = line.split(maxsplit=1)
        file = root / "lib" / soname
        component = {"type": "library", "bom-ref": f"lib/{soname}", "name": soname, "hashes": sum_of(file),
                     "evidence": {"occurrences": [{"location": f"lib/{soname}"}]}}
        package = package_of(owner(path.strip()) or "")
        if package:
            component["name"] = package["name"]
            of_debian(component, package, texts)
        components.append(component)
    doorbell = {"type": "application", "bom-ref": "doorbell", "name": "doorbell", "version": version,
                "licenses": [{"license": {"id": "Apache-2.0"}}], "hashes": sum_of(root / "bin/doorbell"),
                "properties": [{"name": "doorbell:revision", "value": revision}]}
    document = {
        "bomFormat": "CycloneDX", "specVersion": "1.5",
        "serialNumber": "", "version": 1,
        "metadata": {"timestamp": time.strftime("%Y-%m-%dT%H:%M:%SZ"), "component": doorbell},
        "components": components,
        "dependencies": [{"ref": "doorbell", "dependsOn": [component["bom-ref"] for component in components]}],
    }
    # The same bundle has the same document.
    document["serialNumber"] = uuid.uuid5(uuid.NAMESPACE_OID, json.dumps(document, sort_keys=True)).urn
    (root / "sbom.cdx.json").write_text(json.dumps(document, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
