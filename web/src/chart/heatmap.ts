import { h, onWidth, s } from "../dom.ts";
import type { Heatmap } from "../model.ts";
import { cssColour, isLight, paintBar } from "../player/colourmaps.ts";
import { figure } from "../text.ts";
import { textWidth } from "./axes.ts";
import { formatValue } from "./format.ts";
import { extent, type Interval } from "./scale.ts";
import { tooltip } from "./tooltip.ts";

/** Draw a matrix as coloured cells, with their values where these fit. */
export function heatmap(model: Heatmap): HTMLElement {
  const found = extent(model.values.flat(), false) ?? [0, 1];
  const [low, high]: Interval = model.limits ?? (found[0] < found[1] ? found : [found[0] - 0.5, found[1] + 0.5]);
  const svg = s("svg", { role: "img", "aria-label": model.alt });
  const tip = tooltip();
  const plot = h("div", { class: "plot heat", tabindex: 0, role: "group", "aria-roledescription": "heat map" }, svg, tip.element);
  plot.setAttribute("aria-label", `${model.title}. Arrow keys read the cells.`);
  const left = Math.max(0, ...model.rows.map(textWidth)) + 10 + (model.row_title === "" ? 0 : 18);
  const longest = Math.max(0, ...model.columns.map(textWidth));
  const widest = Math.max(0, ...model.texts.flat().map(textWidth));
  let cell: Interval = [0, 0];
  let scale = 1;
  let current: Interval = [-1, 0];

  function draw(width: number): void {
    const across = Math.max(4, Math.min(64, (width - left - 6) / model.columns.length));
    const down = Math.max(14, Math.min(44, across));
    const turned = longest > across - 4;
    const foot = (turned ? longest * 0.64 + 14 : 20) + (model.column_title === "" ? 0 : 18);
    const total: Interval = [left + across * model.columns.length + 4, down * model.rows.length + foot];
    cell = [across, down];
    scale = Math.min(1, width / total[0]);
    svg.setAttribute("viewBox", `0 0 ${total[0]} ${total[1]}`);
    svg.style.maxWidth = `${total[0]}px`;
    const fits = widest * (10 / 12) < across - 3;
    const small = widest > across - 3;
    const parts: SVGElement[] = [];
    model.values.forEach((row, r) => row.forEach((value, c) => {
      const text = model.texts[r]?.[c] ?? "";
      const fill = value === null ? "none" : cssColour(model.colour_map, value, low, high);
      parts.push(s("rect", { x: left + c * across, y: r * down, width: across - 1, height: down - 1, fill, class: "cell" }));
      if (value !== null && fits) {
        const ink = isLight(model.colour_map, value, low, high) ? "#111" : "#fff";
        const place = { x: left + (c + 0.5) * across, y: (r + 0.5) * down + 4, "text-anchor": "middle" };
        parts.push(s("text", { ...place, fill: ink, class: small ? "cell-text small" : "cell-text" }, text));
      }
    }));
    model.rows.forEach((name, r) => parts.push(s("text", { x: left - 7, y: (r + 0.5) * down + 4, "text-anchor": "end" }, name)));
    const base = down * model.rows.length + 15;
    model.columns.forEach((name, c) => {
      const x = left + (c + 0.5) * across;
      const turn = turned ? { "text-anchor": "end", transform: `rotate(-38 ${x + 4} ${base})`, x: x + 4 } : { "text-anchor": "middle", x };
      parts.push(s("text", { y: base, ...turn }, name));
    });
    if (model.column_title !== "") {
      const middle = left + (across * model.columns.length) / 2;
      parts.push(s("text", { class: "label", x: middle, y: total[1] - 4, "text-anchor": "middle" }, model.column_title));
    }
    if (model.row_title !== "") {
      const y = (down * model.rows.length) / 2;
      parts.push(s("text", { class: "label", x: 12, y, "text-anchor": "middle", transform: `rotate(-90 12 ${y})` }, model.row_title));
    }
    svg.replaceChildren(...parts);
  }

  function show(row: number, column: number): void {
    const text = model.texts[row]?.[column];
    if (text === undefined) return tip.hide();
    current = [row, column];
    const value = formatValue(model.values[row]?.[column] ?? null);
    const [x, y] = [(left + (column + 0.5) * cell[0]) * scale, row * cell[1] * scale];
    tip.show(x, y, `${model.rows[row]} × ${model.columns[column]}`, [{ text: model.label || "value", value }]);
  }

  plot.addEventListener("pointermove", (event) => {
    const bounds = svg.getBoundingClientRect();
    const [x, y] = [(event.clientX - bounds.left) / scale, (event.clientY - bounds.top) / scale];
    show(Math.floor(y / cell[1]), Math.floor((x - left) / cell[0]));
  });
  plot.addEventListener("pointerleave", () => tip.hide());
  plot.addEventListener("blur", () => tip.hide());
  plot.addEventListener("keydown", (event) => {
    const step = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] }[event.key];
    if (!step) return;
    const move = (now: number, by: number, count: number): number => Math.min(count - 1, Math.max(0, now + by));
    show(move(current[0], step[0] as number, model.rows.length), move(current[1], step[1] as number, model.columns.length));
    event.preventDefault();
  });
  onWidth(plot, draw);
  const bar = h("canvas", { class: "bar", "aria-hidden": "true" });
  paintBar(bar, model.colour_map);
  const scaleLine = h("div", { class: "scale" }, h("span", {}, formatValue(low, 3)), bar, h("span", {}, formatValue(high, 3)), model.label !== "" && h("span", {}, model.label));
  return figure("chart", model.caption, h("div", { class: "chart-head" }, h("h3", {}, model.title)), plot, scaleLine);
}
