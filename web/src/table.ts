import { h } from "./dom.ts";
import { formula } from "./math.ts";
import type { Cell, Column, Table } from "./model.ts";
import { inline, says } from "./text.ts";

const MANY_LETTERS = 50;
const SIGNS = { pass: "✓", fail: "✗", none: "–" } as const;

/** Order two cells: numbers before words, missing ones last. */
export function compareCells(a: Cell, b: Cell): number {
  if (a.sort === null || b.sort === null) return Number(a.sort === null) - Number(b.sort === null);
  if (typeof a.sort === "number" && typeof b.sort === "number") return a.sort - b.sort;
  if (typeof a.sort === "string" && typeof b.sort === "string") {
    return a.sort.localeCompare(b.sort, "en", { numeric: true });
  }
  return typeof a.sort === "number" ? -1 : 1;
}

/** Show a table that scrolls inside its own box and sorts by a click on a heading. */
export function table(model: Table): HTMLElement {
  const body = h("tbody");
  const lines = model.rows.map((row) => ({ row, line: tableRow(row, model.columns) }));
  body.append(...lines.map(({ line }) => line));
  const headings = model.columns.map((column, index) => {
    const heading = h("th", { scope: "col", class: column.align });
    const label = [...inline(column.label), column.unit !== "" && h("span", { class: "unit" }, ` ${column.unit}`)];
    if (model.rows.length < 3) {
      heading.append(h("span", {}, ...label));
      return heading;
    }
    const button = h("button", { type: "button", class: "sort", title: "Sort by this column" }, ...label);
    button.addEventListener("click", () => {
      const descending = heading.getAttribute("aria-sort") === "ascending";
      headings.forEach((other) => other.removeAttribute("aria-sort"));
      heading.setAttribute("aria-sort", descending ? "descending" : "ascending");
      const order = [...lines].sort((a, b) => {
        const [left, right] = [a.row[index], b.row[index]];
        if (!left || !right) return 0;
        const missing = left.sort === null || right.sort === null;
        return compareCells(left, right) * (descending && !missing ? -1 : 1);
      });
      body.append(...order.map(({ line }) => line));
    });
    heading.append(button);
    return heading;
  });
  const caption = says(model.caption) ? h("caption", {}, h("span", { class: "caption-text" }, ...inline(model.caption))) : null;
  const element = h("table", {}, caption, h("thead", {}, h("tr", {}, ...headings)), body);
  return h("div", { class: "table-box", tabindex: 0, role: "region", "aria-label": caption?.textContent || "Table" }, element);
}

function tableRow(row: Cell[], columns: Column[]): HTMLTableRowElement {
  return h("tr", {}, ...row.map((cell, index) => tableCell(cell, columns[index]?.align ?? "left")));
}

function tableCell(cell: Cell, align: string): HTMLTableCellElement {
  const box = h("td", { class: cell.text.length > MANY_LETTERS ? `${align} long` : align });
  if (cell.state) {
    const sign = h("span", { "aria-hidden": "true", class: "sign" }, SIGNS[cell.state]);
    box.append(h("span", { class: `check ${cell.state}` }, sign, cell.text));
  } else if (cell.tree) {
    box.append(formula(cell.tree, cell.text));
  } else if (cell.face) {
    box.append(h(cell.face, {}, cell.text));
  } else {
    box.append(cell.text);
  }
  if (cell.interval) box.append(h("span", { class: "interval" }, ` ${cell.interval}`));
  return box;
}
