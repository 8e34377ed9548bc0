import { h } from "../dom.ts";
import type { Axis, Chart, Marker, Pairs, Quantity, Series, Span } from "../model.ts";
import { figure } from "../text.ts";
import { formatValue } from "./format.ts";
import { extent, linearTicks, widen, type Interval } from "./scale.ts";
import { chart } from "./xy.ts";

/** Draw every pair of quantities: histograms on the diagonal, points and ellipses below it. */
export function pairs(model: Pairs): HTMLElement {
  const count = model.quantities.length;
  const columns = model.quantities.map((_, index) => model.samples.map((row) => row[index] ?? null));
  const limits = model.quantities.map((quantity, index) => {
    const marks = [quantity.value, quantity.low, quantity.high, quantity.truth];
    const half = model.radius * Math.sqrt(model.covariance?.[index]?.[index] ?? 0);
    const middle = model.centre?.[index];
    if (middle !== undefined) marks.push(middle - half, middle + half);
    return widen(extent([...(columns[index] ?? []), ...marks], false) ?? [0, 1], 0.06, false);
  });
  const grid = h("div", { class: "pairs" });
  grid.style.setProperty("--count", String(count));
  grid.style.gridTemplateColumns = `repeat(${count}, minmax(0, 1fr))`;
  for (let row = 0; row < count; row += 1) {
    for (let column = 0; column <= row; column += 1) {
      const panel = row === column ? diagonal(model, row, columns, limits) : below(model, row, column, columns, limits);
      const element = chart(panel, { bare: true, aspect: 0.8 });
      element.style.gridRow = String(row + 1);
      element.style.gridColumn = String(column + 1);
      grid.append(element);
    }
  }
  const said = model.quantities.map((quantity) => h("li", {}, sayQuantity(quantity)));
  const head = h("div", { class: "chart-head" }, h("h3", {}, model.title));
  return figure("chart", model.caption, head, h("div", { class: "pairs-box" }, grid), h("ul", { class: "pairs-key" }, ...said));
}

function sayQuantity({ name, unit, value, low, high, truth }: Quantity): string {
  const interval = low === null || high === null ? "" : ` [${formatValue(low)}, ${formatValue(high)}]`;
  const true_ = truth === null ? "" : `, true value ${formatValue(truth)}`;
  return `${name}: ${formatValue(value)}${interval}${unit === "" ? "" : ` ${unit}`}${true_}`;
}

function axis(label: string, unit: string, limits: Interval | null): Axis {
  return { label, unit, log: false, categories: [], limits, downwards: false };
}

function series(name: string, style: Series["style"], x: Series["x"], y: Series["y"], colour: Series["colour"]): Series {
  return { name, x, y, style, low: null, high: null, band: false, colour, dashed: false, markers: false, labels: [] };
}

function panel(model: Pairs, x: Axis, y: Axis, drawn: Series[]): Chart {
  return {
    kind: "chart", title: `${model.title}: ${x.label}, ${y.label || "count"}`, x, y, series: drawn, alt: `${y.label || "count"} against ${x.label}`,
    caption: "", spans: [], markers: [], ellipses: [], equal_aspect: false, stacked: false,
  };
}

function marksOf(quantity: Quantity, along: "x" | "y"): Marker[] {
  const marks: Marker[] = [];
  if (quantity.value !== null) marks.push({ label: "", at: quantity.value, axis: along, colour: "ink" });
  if (quantity.truth !== null) marks.push({ label: "", at: quantity.truth, axis: along, colour: "red" });
  return marks;
}

function diagonal(model: Pairs, index: number, columns: Series["x"][], limits: Interval[]): Chart {
  const quantity = model.quantities[index] as Quantity;
  const range = limits[index] as Interval;
  const values = (columns[index] ?? []).filter((value): value is number => value !== null);
  const edges = linearTicks(range[0], range[1], Math.min(24, Math.max(8, Math.sqrt(values.length) * 1.6)));
  const step = (edges[1] ?? 1) - (edges[0] ?? 0);
  const all = [(edges[0] ?? 0) - step, ...edges, (edges[edges.length - 1] ?? 1) + step];
  const counts = new Array<number>(all.length - 1).fill(0);
  for (const value of values) counts[Math.min(counts.length - 1, Math.floor((value - (all[0] as number)) / step))]! += 1;
  const made = panel(model, axis(quantity.name, quantity.unit, range), axis("", "", null), [
    series(quantity.name, "histogram", all, counts, model.colour),
  ]);
  const { low, high } = quantity;
  const spans: Span[] = low === null || high === null ? [] : [{ label: "", start: low, end: high, colour: "grey" }];
  return { ...made, markers: marksOf(quantity, "x"), spans };
}

function below(model: Pairs, row: number, column: number, columns: Series["x"][], limits: Interval[]): Chart {
  const [across, up] = [model.quantities[column] as Quantity, model.quantities[row] as Quantity];
  const made = panel(
    model,
    axis(across.name, across.unit, limits[column] ?? null),
    axis(up.name, up.unit, limits[row] ?? null),
    [series("sample", "scatter", columns[column] ?? [], columns[row] ?? [], model.colour)],
  );
  made.markers = [...marksOf(across, "x"), ...marksOf(up, "y")];
  const { centre, covariance } = model;
  if (centre && covariance) {
    const entry = (i: number, j: number): number => covariance[i]?.[j] ?? 0;
    made.ellipses = [{
      name: "ellipse",
      centre: [centre[column] ?? 0, centre[row] ?? 0],
      covariance: [[entry(column, column), entry(column, row)], [entry(row, column), entry(row, row)]],
      radius: model.radius,
      colour: "orange",
    }];
  }
  return made;
}
