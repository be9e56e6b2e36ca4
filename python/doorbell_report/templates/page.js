/* SPDX-FileCopyrightText: 2026 The doorbell authors
   SPDX-License-Identifier: Apache-2.0 */
"use strict";
for (const table of document.querySelectorAll("table.sortable")) {
  const heads = [...table.tHead.rows[0].cells], body = table.tBodies[0];
  const value = (row, i) => {
    const text = row.cells[i].dataset.v ?? row.cells[i].textContent.trim();
    const figure = Number(text.replace(/[\u2009\s]/g, ""));
    return text === "-" || text === "" ? null : Number.isNaN(figure) ? text : figure;
  };
  const before = (a, b) => typeof a === "number" && typeof b === "number" ? a - b : String(a).localeCompare(String(b));
  heads.forEach((head, i) => {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...head.childNodes);
    head.append(button);
    button.addEventListener("click", () => {
      const up = head.getAttribute("aria-sort") !== "ascending";
      heads.forEach(h => h.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", up ? "ascending" : "descending");
      const rows = [...body.rows].map(row => [value(row, i), row]);
      /* Missing values come last in both directions. */
      rows.sort(([a], [b]) => a === null || b === null ? (a === null) - (b === null) : up ? before(a, b) : before(b, a));
      body.append(...rows.map(([, row]) => row));
    });
  });
}
const unfold = () => {
  const target = location.hash && document.getElementById(decodeURIComponent(location.hash.slice(1)));
  if (!target) return;
  for (let e = target; e; e = e.parentElement) if (e.tagName === "DETAILS") e.open = true;
  const own = target.querySelector(":scope > details");
  if (own) own.open = true;
};
addEventListener("hashchange", unfold);
unfold();
