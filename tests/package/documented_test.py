#!/usr/bin/env python3
# SPDX-FileCopyrightText: 2026 The doorbell authors
# SPDX-License-Identifier: Apache-2.0

"""Every public name has a comment; `make docs` writes its pages without a complaint, and their links lead somewhere.

A name is documented by a comment of its own, by the title of the group (`@name`) that it stands in, or by the function
that it overrides. Where the comment of a structure, an enumeration or a namespace has "Source:", its fields, enumerators
and constants are those of that source, with its names. Not looked at are namespaces, what is private or protected,
destructors, what is deleted or left to the compiler, assignment, comparison, and what only a CPU's vectors need
(doorbell::pattern::cpu): headers are read as a GPU's compiler reads them. Every case is skipped where Doxygen is missing.
"""

import html
import html.parser
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
import urllib.parse
import xml.etree.ElementTree as ElementTree

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts/docs"))
sys.dont_write_bytecode = True  # the tree stays as it is
import filter as pages_filter  # noqa: E402
import make  # noqa: E402

needs_doxygen = unittest.skipUnless(shutil.which("doxygen"), "doxygen is not installed")

COMPOUNDS = ("class", "struct", "union", "concept")
MEMBERS = ("function", "variable", "typedef", "enum", "define")
OBVIOUS = re.compile(r"~|operator(=|==|!=)$")


def text(element):
    """All words of the comments of a class, a member, an enumerator."""
    words = [" ".join("".join(found.itertext()).split()) for part in ("briefdescription", "detaileddescription", "description")
             if (found := element.find(part)) is not None]
    return " ".join(filter(None, words))


def has_source(comment):
    return re.search(r"\bSource: ", comment) is not None


def by_compiler(member, of):
    """A special member that the compiler writes or that does not exist, and the moving and copying ones."""
    arguments = member.findtext("argsstring", "").strip()
    return re.search(r"=\s*(default|delete)$", arguments) is not None or (
        member.findtext("name") == of and
        re.fullmatch(r"\((const )?\w+ ?&&?( ?\w+)?\)( noexcept)?", arguments) is not None)


def inside(compound):
    """(name, its element, whether it has a comment) of what is in a class, a namespace, a file or a group."""
    name, sourced = compound.findtext("compoundname"), has_source(text(compound))
    for section in compound.findall("sectiondef"):
        grouped = section.get("kind") == "user-defined" and bool(section.findtext("header") or text(section))
        for member in section.findall("memberdef"):
            own, kind = member.findtext("name"), member.get("kind")
            if member.get("prot") != "public" or kind not in MEMBERS or not own or own[0] == "@":
                continue
            if OBVIOUS.match(own) or by_compiler(member, name.rpartition("::")[2].partition("<")[0]):
                continue
            scope = "" if kind == "define" or compound.get("kind") in ("file", "group") else name + "::"
            whole = member.findtext("qualifiedname") or scope + own
            taken = kind == "variable" and sourced
            yield whole, member, bool(text(member)) or grouped or taken or member.find("reimplements") is not None
            if kind == "enum":
                for value in member.findall("enumvalue"):
                    yield f"{whole}::{value.findtext('name')}", member, bool(text(value)) or has_source(text(member))


def names(folder):
    """{name: (place, whether it has a comment)} of all public names, from the XML in `folder`. A name that is declared more
    than once (overloads, forward declarations) needs a comment at each place."""
    found = {}

    def note(name, element, documented):
        at = element.find("location")
        place = f"{at.get('file')}:{at.get('line')}"
        found[name, place] = documented or found.get((name, place), False)

    for file in sorted(pathlib.Path(folder).glob("*.xml")):
        for compound in ElementTree.parse(file).getroot().findall("compounddef"):
            kind = compound.get("kind")
            if compound.get("prot", "public") != "public":
                continue
            if kind in COMPOUNDS:
                note(compound.findtext("compoundname"), compound, bool(text(compound)))
            if kind in (*COMPOUNDS, "namespace", "file", "group"):
                for name, member, documented in inside(compound):
                    note(name, member, documented)
    return found


def undocumented(found):
    return sorted(f"{at}: {name}" for (name, at), documented in found.items() if not documented)


def complaints_and_names(folder, **settings):
    return make.doxygen(folder, GENERATE_HTML="NO", GENERATE_XML="YES", EXTRACT_ALL="YES", **settings), names(f"{folder}/xml")


@needs_doxygen
class Names(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.complaints, cls.found = complaints_and_names(folder.name)

    def test_nothing_is_wrong_in_the_comments(self):
        self.assertEqual(self.complaints, "")

    def test_each_has_a_comment(self):
        self.assertEqual(undocumented(self.found), [])

    def test_all_headers_are_read(self):
        places = {at.partition(":")[0] for _, at in self.found}
        with_names = {p for p in (ROOT / "include").rglob("*.h*") if re.search(r"\b(struct|class|inline|typedef|enum|using) ",
                                                                              p.read_text(encoding="utf-8"))}
        self.assertGreater(len(with_names), 30)
        self.assertEqual({str(p.relative_to(ROOT / "include")) for p in with_names} - places, set())

    def test_names_of_all_kinds_are_among_them(self):
        found = {name for name, _ in self.found}
        for name in ("doorbell::run", "doorbell::Place", "doorbell::Place::gpu", "doorbell::GpuWarp::shfl", "DOORBELL_HD",
                     "doorbell::nvme::status::success", "doorbell::rdma::WireFormat", "doorbell::rdma::Mlx5::cqe_valid",
                     "doorbell::cxi::Append::min_free", "doorbell::net::RxQueue::receive", "doorbell::Iova",
                     "doorbell_run", "doorbell_figures::p99_ns", "slash_qdma_open", "SLASH_QDMA_H2C",
                     "doorbell::rdma::RemoteOperations::put_nbi", "doorbell::rma::WorkRequest::local",
                     "doorbell::qdma::TransferDescriptor::kMaxSubmitted"):
            self.assertTrue(name in found, name)
        self.assertGreater(len(found), 1500)


HEADER = """\
// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// A header for this test.
#pragma once

#define {MACRO} 1
/// Has a comment.
#define GOOD_MACRO 2

namespace doorbell::rdma {

struct {Plain} {};

/// Has a comment.
struct Good {
  /// Its own.
  int one = 0;
  int two = 0;  ///< behind it
  int {bare} = 0;
  int {first} = 0, {second} = 0;
  // A comment that is none.
  int {slashes} = 0;
  /// @name Of these two
  /// @{
  int three = 0;
  int four = 0;
  /// @}
  Good() = default;
  Good(const Good&) = delete;
  Good(Good&& other) noexcept;
  Good& operator=(const Good&) = delete;
  explicit {Good}(int);
  ~Good();
  /// Can be overridden.
  virtual void run();
  /// One of two.
  void twice(int);
  void {twice}(long);
  struct {Inner} {};

 private:
  int hidden_ = 0;
};
/// Has a comment.
struct Better : Good {
  void run() override;
};
/// Fields of another. Source: a specification.
struct Wire {
  int field = 0;
  int {function}();
};
/// Some of its values have none.
enum class Some { {without}, with /** has one */ };
/// All of them. Source: a specification.
enum class All { a, b };
enum class {Nothing} { c /** has one */ };
using {Alias} = int;
template <class T>
concept {Concept} = true;
void {free_function}();
inline constexpr int {constant} = 1;
/// Constants of another. Source: a specification.
namespace of_a_source {
inline constexpr int d = 1, e = 2;
}

}  // namespace doorbell::rdma
"""


@needs_doxygen
class Finding(unittest.TestCase):
    """What is wrong is found, and nothing else."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.header = self.folder / "include/doorbell/rdma/thing.hpp"
        self.header.parent.mkdir(parents=True)

    def read(self, source):
        self.header.write_text(source, encoding="utf-8")
        return complaints_and_names(self.folder, INPUT=self.header, STRIP_FROM_PATH=self.folder / "include")

    def test_names_without_a_comment(self):
        marked = re.findall(r"\{([A-Za-z_]+)\}", HEADER)
        complaints, seen = self.read(re.sub(r"\{([A-Za-z_]+)\}", r"\1", HEADER))
        self.assertEqual(complaints, "")
        found = undocumented(seen)
        self.assertEqual(sorted(entry.rpartition(":")[2].strip() for entry in found), sorted(marked), found)
        line = HEADER.splitlines().index("  int {bare} = 0;") + 1
        self.assertIn(f"doorbell/rdma/thing.hpp:{line}: doorbell::rdma::Good::bare", found)

    def test_a_broken_comment(self):
        complaints, _ = self.read("// SPDX\n// SPDX\n\n// A header.\n#pragma once\n\nnamespace doorbell::rdma {\n\n"
                                  "/// As @ref no_such_name has it.\nvoid run();\n\n}  // namespace doorbell::rdma\n")
        self.assertRegex(complaints, r"thing.hpp:9: .*no_such_name")


class Links(html.parser.HTMLParser):
    def __init__(self, page):
        super().__init__()
        self.targets, self.names = [], set()
        self.feed(page.read_text(encoding="utf-8"))

    def handle_starttag(self, tag, attributes):
        attributes = dict(attributes)
        self.names |= {attributes.get("id"), attributes.get("name")}
        if tag == "a" and attributes.get("href"):
            self.targets.append(attributes["href"])
        if tag == "img":
            self.targets.append(attributes["src"])


@needs_doxygen
class Pages(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.done = subprocess.run([ROOT / "scripts/docs/make.py", folder.name], capture_output=True, text=True, check=False)
        cls.pages = pathlib.Path(folder.name) / "html"

    def setUp(self):
        self.assertEqual((self.done.returncode, self.done.stderr), (0, ""))

    def words(self, name):
        return re.sub(r"\s+", " ", re.sub(r"<[^>]*>", "", (self.pages / name).read_text(encoding="utf-8")))

    def test_it_says_where_they_are_and_nothing_else(self):
        self.assertEqual(self.done.stdout, f"{self.pages.resolve()}/index.html\n")

    def test_links_lead_somewhere(self):
        pages = {p.name: Links(p) for p in self.pages.glob("*.html")}
        self.assertGreater(len(pages), 100)
        for name, page in pages.items():
            for link in page.targets:
                to = urllib.parse.urlsplit(link)
                if to.scheme in ("http", "https", "javascript", "data"):
                    continue
                if to.path and to.path not in pages:
                    self.assertTrue((self.pages / urllib.parse.unquote(to.path)).exists(), f"{name}: {link}")
                elif to.fragment:
                    self.assertIn(urllib.parse.unquote(to.fragment), pages[to.path or name].names, f"{name}: {link}")

    def test_no_mark_is_left_in_the_text(self):
        for page in self.pages.glob("*.html"):
            whole = page.read_text(encoding="utf-8").partition('<div class="contents">')[2]
            if page.name.endswith("_source.html"):
                continue
            for code in (r"<(script|style|pre|code)\b.*?</\1>", r'<div class="fragment">.*?<!-- fragment -->'):
                whole = re.sub(code, "", whole, flags=re.S)
            plain = html.unescape(re.sub(r"<[^>]*>", "", whole))
            left = re.search(r".{,40}(`|\]\(|</?(tt|b|p)>|@(ref|code|name)|\*\*|\{#|%file).{,40}", plain)
            self.assertIsNone(left, page.name)

    def test_the_entry_of_each_path(self):
        start = Links(self.pages / "index.html").targets
        for group, title, header in pages_filter.GROUPS:
            with self.subTest(group):
                file = f"group__{group.replace('_', '__')}.html"
                self.assertIn(title, self.words(file))
                self.assertIn(title, self.words("modules.html"))
                if group in ("nvme", "rdma", "cxi", "net", "qdma", "run"):
                    self.assertIn(file, start)
                    self.assertIn(f"#include &lt;doorbell/{header}&gt;", self.words(file))
        self.assertIn("rdma::open_nic(", self.words("group__rdma.html"))
        self.assertIn("RemoteOperations", self.words("group__rdma.html"))
        self.assertIn("group__c.html", start)

    def test_each_header_is_in_one_group(self):
        known = {name for name, *_ in pages_filter.GROUPS}
        for header in pages_filter.public_headers():
            self.assertIn(pages_filter.group_of(header), known, header)

    def test_each_document_has_a_page(self):
        listed = Links(self.pages / f"{pages_filter.page_name(pathlib.Path('scripts/docs/documents.md'))}.html").targets
        for document in sorted(ROOT.glob("docs/*.md")):
            if document.name != "library.md":
                name = pages_filter.page_name(document.relative_to(ROOT))
                self.assertIn(f"{name}.html", listed)
                title = document.read_text(encoding="utf-8").partition("\n")[0].lstrip("# ")
                self.assertIn(title, html.unescape(self.words(f"{name}.html")))
        self.assertIn("programs of your own", self.words("index.html"))

    def test_they_have_the_version(self):
        found = re.search(r"project\(doorbell VERSION ([\d.]+)", (ROOT / "CMakeLists.txt").read_text(encoding="utf-8"))[1]
        self.assertTrue(f'id="projectnumber">&#160;{found}<' in (self.pages / "index.html").read_text(encoding="utf-8"), found)


if __name__ == "__main__":
    unittest.main()
