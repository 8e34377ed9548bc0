import { formatValue, withUnit } from "./chart/format.ts";
import { h } from "./dom.ts";
import { equation, note } from "./items.ts";
import { formula } from "./math.ts";
import type { Coefficient, Comparison, Head } from "./model.ts";
import { player, type Load } from "./player/player.ts";
import { inline } from "./text.ts";

const SIGNS = { info: "ℹ", good: "✓", warning: "⚠", error: "✗" } as const;

/** Build the top of the page: verdict, law, coefficients, how well it predicts, the film. */
export function head(model: Head, load: Load): HTMLElement[] {
  const sign = h("span", { class: "sign", "aria-hidden": "true" }, SIGNS[model.level]);
  const verdict = h(
    "div", { class: `verdict ${model.level}` },
    h("h2", { class: "verdict-line" }, sign, h("strong", {}, model.verdict)),
    h("p", {}, ...inline(model.summary)),
  );
  const law = h("div", { class: "law" });
  if (model.equation) law.append(equation(model.equation));
  if (model.coefficients.length > 0) law.append(coefficients(model.coefficients));
  const numbers = h("div", { class: "headlines" }, ...model.headlines.map(({ label, value, note: said }) =>
    h("div", { class: "headline" }, h("span", { class: "headline-label" }, label), h("span", { class: "headline-value" }, value), said !== "" && h("span", { class: "fine" }, said))));
  const comparisons = h("div", { class: "comparisons" }, ...model.comparisons.map(comparison));
  return [
    verdict,
    ...model.notes.map(note),
    law,
    ...(model.headlines.length > 0 ? [numbers] : []),
    ...(model.comparisons.length > 0 ? [comparisons] : []),
    ...(model.player ? [player(model.player, load)] : []),
  ];
}

function coefficients(list: Coefficient[]): HTMLElement {
  const rows = list.map(({ symbol, meaning, shown, interval, unit, note: said }) =>
    h("tr", {},
      h("th", { scope: "row" }, formula(symbol.tree, symbol.plain)),
      h("td", {}, meaning, said !== "" && h("span", { class: "fine block" }, said)),
      h("td", { class: "right number" }, shown),
      h("td", { class: "interval" }, interval),
      h("td", { class: "unit" }, unit === "1" ? "" : unit)));
  const titles = ["Coefficient", "of", "Value", "95 % interval", "Unit"];
  const headings = titles.map((title, index) => h("th", { scope: "col", class: index === 2 ? "right" : null }, title));
  const box = h("table", { class: "coefficients" }, h("thead", {}, h("tr", {}, ...headings)), h("tbody", {}, ...rows));
  return h("div", { class: "table-box", tabindex: 0, role: "region", "aria-label": "Coefficients" }, box);
}

function comparison({ label, bars, unit, note: said }: Comparison): HTMLElement {
  const largest = Math.max(...bars.map(({ value }) => value ?? 0), 0);
  const lines = bars.map(({ name, value, ours }) => {
    const fill = h("span", { class: "fill" });
    fill.style.width = `${largest > 0 ? (100 * Math.max(0, value ?? 0)) / largest : 0}%`;
    return h("li", { class: ours ? "ours" : null }, h("span", { class: "name" }, name), h("span", { class: "track" }, fill), h("span", { class: "number" }, formatValue(value, 3)));
  });
  return h("div", { class: "comparison" }, h("h3", {}, withUnit(label, unit)), h("ul", {}, ...lines), said !== "" && h("p", { class: "fine" }, said));
}
