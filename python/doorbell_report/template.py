# SPDX-FileCopyrightText: 2026 The doorbell authors
# SPDX-License-Identifier: Apache-2.0

"""The templates of the page, and whether they can be filled; matplotlib, which takes half a second to import, is not needed for that."""

import base64
import datetime
import functools
import hashlib
import html
import json
import pathlib

from . import form

try:
    import jinja2
    from markupsafe import Markup
except ImportError:
    jinja2 = Markup = None

TEMPLATES = pathlib.Path(__file__).with_name("templates")


def available():
    return jinja2 is not None


@functools.cache
def _templates():
    def finalize(value):
        if isinstance(value, Markup):
            return value
        return form.MISSING if value is None else form.printable(value)

    made = jinja2.Environment(loader=jinja2.FileSystemLoader(TEMPLATES), autoescape=True, trim_blocks=True,
                              lstrip_blocks=True, undefined=jinja2.StrictUndefined, finalize=finalize)
    made.globals["json"] = _json
    return made


def _json(value):
    # JSON is full of quotes, which between tags need no escape; a third of a page of many cells is JSON.
    return Markup(html.escape(form.printable(json.dumps(value, indent=1)), quote=False))


def _inline(name):
    return Markup((TEMPLATES / name).read_text(encoding="utf-8").split("*/", 1)[1].strip())


def render_template(name, title, **context):
    """A whole page. Nothing is loaded from anywhere, and no script runs but the page's own, whose hash it names."""
    script = _inline("page.js")
    digest = base64.b64encode(hashlib.sha256(str(script).encode()).digest()).decode()
    made = datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d %H:%M UTC")
    return _templates().get_template(name).render(title=title, made=made, style=_inline("page.css"), script=script,
                                                  script_hash=digest, **context) + "\n"
