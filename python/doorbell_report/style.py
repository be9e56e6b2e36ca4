# SPDX-FileCopyrightText: 2026 The doorbell authors
# SPDX-License-Identifier: Apache-2.0

"""The page's style sheet; the pictures take their colours from its variables."""

CSS = """
:root {
  --font: system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", "DejaVu Sans", sans-serif;
  --mono: ui-monospace, "SF Mono", Menlo, Consolas, "DejaVu Sans Mono", monospace;
  --page: #f6f7f9; --card: #ffffff; --ink: #16191d; --ink2: #545d68; --line: #dfe3e8; --link: #0b5cad;
  --s1: #1f77c9; --s2: #d9730d; --s3: #0f8f7e; --s4: #8a5cc7;
  --good: #12733b; --good-bg: #def3e5; --bad: #b3261e; --bad-bg: #fbe3e1; --warn: #85570a; --warn-bg: #fbefd2;
  --neutral-bg: #eaedf1; --model: #5b3fa0; --model-bg: #ebe5fa; --hard: #0b5cad; --hard-bg: #dcebfb;
}
@media (prefers-color-scheme: dark) { :root {
  --page: #101316; --card: #181c21; --ink: #e7eaee; --ink2: #a2abb6; --line: #2d343c; --link: #79b8ff;
  --s1: #5aa9f2; --s2: #f09a4a; --s3: #3fc3ae; --s4: #b492ea;
  --good: #76d49a; --good-bg: #15331f; --bad: #ff9a90; --bad-bg: #45191a; --warn: #f0c36a; --warn-bg: #3d2e0c;
  --neutral-bg: #272d34; --model: #c4aefb; --model-bg: #2b2247; --hard: #8cc3ff; --hard-bg: #14304d;
} }
* { box-sizing: border-box; }
body { margin: 0; background: var(--page); color: var(--ink); font: 15px/1.5 var(--font); }
header, main, footer { max-width: 1240px; margin: 0 auto; padding: 0 24px; }
header { padding-top: 36px; }
footer { padding-top: 8px; padding-bottom: 40px; color: var(--ink2); font-size: 13px; }
h1 { font-size: 28px; line-height: 1.2; margin: 0; letter-spacing: -0.01em; }
h2 { font-size: 20px; margin: 44px 0 8px; overflow-wrap: anywhere; }
h3 { font-size: 17px; margin: 0 0 8px; overflow-wrap: anywhere; }
h3 .device { font-weight: 400; color: var(--ink2); margin-left: 6px; }
h4 { font-size: 13px; margin: 0 0 6px; color: var(--ink2); font-weight: 600; }
.sub { color: var(--ink2); margin: 4px 0 10px; }
a { color: var(--link); text-decoration: none; font-weight: 600; }
a:hover { text-decoration: underline; }
.note { color: var(--ink2); max-width: 80ch; margin: 10px 0; }
.none { color: var(--ink2); }
.badges { display: flex; flex-wrap: wrap; gap: 6px; margin: 0 0 10px; }
.badge { display: inline-block; padding: 1px 9px; border-radius: 999px; font-size: 12.5px; font-weight: 600;
  white-space: nowrap; background: var(--neutral-bg); color: var(--ink); }
td .badge + .badge { margin-left: 6px; }
.good { color: var(--good); } .bad { color: var(--bad); } .warn { color: var(--warn); }
.badge.good { background: var(--good-bg); color: var(--good); }
.badge.bad { background: var(--bad-bg); color: var(--bad); }
.badge.warn { background: var(--warn-bg); color: var(--warn); }
.badge.kind-model, .badge.kind-emulated { background: var(--model-bg); color: var(--model); }
.badge.kind-hardware, .badge.kind-kernel { background: var(--hard-bg); color: var(--hard); }
.verdict { margin: 0 0 10px; font-weight: 650; font-size: 16px; }
.chips { display: flex; flex-wrap: wrap; gap: 4px 16px; margin: 0 0 12px; font-size: 13.5px; color: var(--ink2); }
.chip b { color: var(--ink); font-weight: 600; }
.scroll { overflow-x: auto; margin: 0 0 14px; }
table { border-collapse: collapse; width: 100%; font-size: 13.5px; font-variant-numeric: tabular-nums; }
th { text-align: left; font-weight: 600; color: var(--ink2); font-size: 12.5px; white-space: nowrap; }
th, td { padding: 6px 10px; border-bottom: 1px solid var(--line); }
td { white-space: nowrap; }
td.params { white-space: normal; min-width: 14em; overflow-wrap: anywhere; }
td.head { font-weight: 600; }
th.n, td.n { text-align: right; }
tbody tr:hover td { background: var(--neutral-bg); }
tr.group td { font-weight: 600; color: var(--ink2); padding-top: 16px; white-space: normal; overflow-wrap: anywhere; }
.summary { background: var(--card); border: 1px solid var(--line); }
.card { background: var(--card); border: 1px solid var(--line); border-radius: 10px; padding: 18px 20px 12px;
  margin: 18px 0; }
.card:target { border-color: var(--link); }
.pictures { display: grid; grid-template-columns: repeat(auto-fit, minmax(300px, 1fr)); gap: 14px;
  margin: 4px 0 16px; }
figure { margin: 0; }
figure svg { display: block; width: 100%; height: auto; }
figure.overview { margin: 14px 0; }
figure.small { display: flex; flex-wrap: wrap; align-items: end; gap: 4px 14px; margin: 0 0 12px; }
figure.small svg { width: 240px; }
figcaption { color: var(--ink2); font-size: 12.5px; }
.panels { display: grid; grid-template-columns: repeat(auto-fit, minmax(230px, 1fr)); gap: 14px 28px;
  margin: 0 0 14px; }
.facts { margin: 0; font-size: 13.5px; font-variant-numeric: tabular-nums; }
.facts > div { display: grid; grid-template-columns: minmax(0, 5fr) minmax(0, 6fr); gap: 0 12px; padding: 1px 0; }
.facts.wide { display: grid; grid-template-columns: repeat(auto-fit, minmax(320px, 1fr)); gap: 0 32px; }
.facts.wide > div { grid-template-columns: 8.5em minmax(0, 1fr); }
.facts dt { color: var(--ink2); }
.facts dd { margin: 0; overflow-wrap: anywhere; }
.first { margin: 6px 0 0; padding-left: 18px; font-size: 13px; color: var(--bad); }
.warnings { margin: 0 0 10px; padding-left: 20px; color: var(--warn); }
pre { font: 12.5px/1.5 var(--mono); background: var(--neutral-bg); border-radius: 8px; padding: 9px 12px;
  margin: 6px 0 12px; overflow-x: auto; white-space: pre-wrap; overflow-wrap: anywhere; }
.prompt { color: var(--ink2); user-select: none; }
details { margin: 0 0 8px; }
summary { cursor: pointer; color: var(--ink2); font-size: 13.5px; font-weight: 600; padding: 2px 0; }
details > .facts { margin: 6px 0 10px; }
@media (max-width: 640px) { header, main, footer { padding-left: 14px; padding-right: 14px; } .card { padding: 14px; } }
@media print { body { background: none; } .card { break-inside: avoid; } }
"""
