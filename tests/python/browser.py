# SPDX-FileCopyrightText: 2026 The doorbell authors
# SPDX-License-Identifier: Apache-2.0

"""A headless Chromium, if there is one: pictures of pages, and what a script finds in them."""

import html
import json
import os
import pathlib
import re
import shutil
import subprocess
import tempfile

NAMES = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome", "chrome-headless-shell")
LIMIT_S = 120

# Runs in the page: what is wider than it, texts that lie over each other, texts of pictures that are cut off, columns of
# 99 % that are not seen without scrolling, and places between pictures or tiles that nothing fills.
LOOK = """
const found = {scroll: document.documentElement.scrollWidth, client: document.documentElement.clientWidth, overlaps: [], texts: 0,
               cut: [], hidden: [], p99: 0, holes: []};
const boxes = [];
const seen = e => e.checkVisibility ? e.checkVisibility() : e.offsetParent !== null;
/* Text that a scrolling region cuts off is not seen. */
const cut = (box, e) => {
  for (let p = e; p; p = p.parentElement) {
    if (p.namespaceURI.endsWith('svg') || getComputedStyle(p).overflowX === 'visible') continue;
    const r = p.getBoundingClientRect();
    box = {left: Math.max(box.left, r.left), right: Math.min(box.right, r.right), top: box.top, bottom: box.bottom};
  }
  return box;
};
const add = (box, e, text, inset) => {
  box = cut(box, e);
  if (box.right - box.left > 1 && box.bottom - box.top > 1)
    boxes.push({l: box.left + 1, r: box.right - 1, t: box.top + (box.bottom - box.top) * inset,
                b: box.bottom - (box.bottom - box.top) * inset, text: text.trim().slice(0, 60)});
};
const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
for (let n = walker.nextNode(); n; n = walker.nextNode()) {
  const e = n.parentElement;
  if (!n.data.trim() || ['SCRIPT', 'STYLE'].includes(e.tagName) || !seen(e) || e.closest('svg')) continue;
  const range = document.createRange();
  range.selectNodeContents(n);
  /* Text that takes several lines has a box a line. */
  for (const box of range.getClientRects()) add(box, e, n.data, 0.2);
}
/* A line of a picture is as high as its font's box, which is more than its letters. */
for (const e of document.querySelectorAll('svg text')) if (seen(e)) add(e.getBoundingClientRect(), e, e.textContent, 0.25);
boxes.sort((a, b) => a.t - b.t);
boxes.forEach((a, i) => {
  for (let k = i + 1; k < boxes.length && boxes[k].t < a.b; ++k) {
    const b = boxes[k];
    if (a.l < b.r && b.l < a.r) found.overlaps.push([a.text, b.text]);
  }
});
found.texts = boxes.length;
for (const text of document.querySelectorAll('svg text')) {
  if (!seen(text)) continue;
  const box = text.getBoundingClientRect(), all = text.closest('svg').getBoundingClientRect(), air = box.height * 0.2;
  if (box.left < all.left - 1 || box.right > all.right + 1 || box.top + air < all.top || box.bottom - air > all.bottom)
    found.cut.push(text.textContent.trim());
}
for (const head of document.querySelectorAll('.overview th')) {
  if (!head.textContent.startsWith('p99') || !seen(head)) continue;
  ++found.p99;
  if (head.getBoundingClientRect().right > head.closest('.scroll').getBoundingClientRect().right + 1)
    found.hidden.push(head.closest('.scroll').ariaLabel + ': ' + head.textContent);
}
for (const grid of document.querySelectorAll('.pictures, .tiles')) {
  if (!seen(grid)) continue;
  const whole = grid.getBoundingClientRect(), rows = {};
  for (const box of [...grid.children].map(e => e.getBoundingClientRect()))
    rows[Math.round(box.top)] = Math.max(rows[Math.round(box.top)] ?? 0, box.right);
  for (const right of Object.values(rows))
    if (right < whole.right - 20) found.holes.push(grid.className + ': ' + grid.textContent.trim().slice(0, 40));
}
"""


def program():
    """The browser to use: DOORBELL_CHROMIUM, or one in PATH; None without."""
    named = os.environ.get("DOORBELL_CHROMIUM")
    return named or next(filter(None, map(shutil.which, NAMES)), None)


def _run(page, width, height, *arguments):
    with tempfile.TemporaryDirectory() as profile:
        done = subprocess.run(
            [program(), "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--force-device-scale-factor=1",
             f"--user-data-dir={profile}", f"--window-size={width},{height}", *arguments, pathlib.Path(page).resolve().as_uri()],
            capture_output=True, text=True, timeout=LIMIT_S, check=False)
    if done.returncode != 0:
        raise AssertionError(f"{program()} ends with {done.returncode}: {done.stderr[-2000:]}")
    return done.stdout


def screenshot(page, target, width, height, dark=False):
    _run(page, width, height, f"--screenshot={target}", *(["--blink-settings=preferredColorScheme=0"] if dark else []))
    if not os.path.getsize(target):
        raise AssertionError(f"{target} is empty")


def look(page, width, height=900, script=LOOK, hash_=""):
    """The value that the script leaves in `found`. The page's own scripts have run before; its policy allows no other, so that
    of the copy that is looked at is taken out."""
    text = pathlib.Path(page).read_text(encoding="utf-8")
    text = re.sub(r'<meta http-equiv="Content-Security-Policy"[^>]*>', "", text)
    own = f"<script>{{ {script}\nconst out = document.createElement('output'); out.id = 'found'; " \
          "out.textContent = JSON.stringify(found); document.body.append(out); }</script>"
    start = f"<script>location.hash = {json.dumps(hash_)};</script>" if hash_ else ""
    with tempfile.TemporaryDirectory() as folder:
        copy = pathlib.Path(folder) / "page.html"
        copy.write_text(text.replace("<body", start + "<body", 1).replace("</body>", own + "</body>"), encoding="utf-8")
        dom = _run(copy, width, height, "--dump-dom")
    return json.loads(html.unescape(re.search(r'<output id="found">(.*?)</output>', dom, re.DOTALL).group(1)))
