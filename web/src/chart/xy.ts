import { h, onWidth, s, uniqueId } from "../dom.ts";
import type { Chart } from "../model.ts";
import { figure } from "../text.ts";
import { drawAxes, layOut, type Laid } from "./axes.ts";
import { watchPlot } from "./interaction.ts";
import { colourOf, drawMarks, drawSeries, drawSpans, placeBars, traceEllipse, type Bars, type Point } from "./layers.ts";
import { equalise, extent, widen, type Interval } from "./scale.ts";
import { tooltip } from "./tooltip.ts";

export interface Zoom { x: Interval; y: Interval }

export interface Options {
  /** Leave out title, legend and controls, as within a pairs plot. */
  bare?: boolean;
  /** Height over width. */
  aspect?: number;
}

/** What the pointer and the keyboard need to know of a drawn chart. */
export interface Drawn { laid: Laid; points: Point[] }

/** Draw a chart that can be read, zoomed and thinned by its reader. */
export function chart(model: Chart, options: Options = {}): HTMLElement {
  const hidden = new Set<number>();
  let zoom: Zoom | null = null;
  let width = 0;
  const clip = uniqueId("clip");
  const svg = s("svg", { role: "img", "aria-label": model.alt });
  const tip = tooltip();
  const reset = h("button", { type: "button", class: "reset", hidden: true }, "Reset zoom");
  const plot = h("div", { class: "plot", tabindex: 0, role: "group", "aria-roledescription": "chart" }, svg, tip.element);
  plot.setAttribute("aria-label", `${model.title || "Chart"}. Arrow keys read values, plus and minus zoom, Escape resets.`);
  const drawn: Drawn = { laid: lay(640), points: [] };

  function lay(total: number): Laid {
    const height = Math.round(Math.min(400, Math.max(options.bare ? 120 : 230, total * (options.aspect ?? 0.56))));
    let { x, y } = zoom ?? domains(model, hidden);
    if (model.equal_aspect && zoom === null) {
      const first = layOut(model.x, model.y, x, y, [total, height], options.bare);
      [x, y] = equalise(x, y, first.width, first.height);
    }
    return layOut(model.x, model.y, x, y, [total, height], options.bare);
  }

  function draw(): void {
    if (width === 0) return;
    const laid = lay(width);
    drawn.laid = laid;
    drawn.points = [];
    const area = s("rect", { x: laid.left, y: laid.top, width: laid.width, height: laid.height });
    const inside = s("g", { "clip-path": `url(#${clip})` });
    inside.append(drawSpans(laid, model));
    const bars = placeBars(model, hidden);
    model.series.forEach((series, index) => {
      if (hidden.has(index)) return;
      const [group, points] = drawSeries(laid, series, index, bars[index] as Bars);
      inside.append(group);
      for (const point of points) {
        const within = point.px >= laid.left - 1 && point.px <= laid.left + laid.width + 1;
        if (within) drawn.points.push(point);
      }
    });
    inside.append(drawMarks(laid, model, hidden));
    svg.setAttribute("viewBox", `0 0 ${laid.total[0]} ${laid.total[1]}`);
    svg.replaceChildren(s("defs", {}, s("clipPath", { id: clip }, area)), drawAxes(laid, model.x, model.y), inside);
    reset.hidden = zoom === null;
  }

  function setZoom(next: Zoom | null): void {
    zoom = next;
    tip.hide();
    draw();
  }

  reset.addEventListener("click", () => {
    setZoom(null);
    plot.focus();
  });
  watchPlot({ plot, svg, model, drawn, tip, setZoom });
  onWidth(plot, (next) => {
    width = next;
    draw();
  });
  if (options.bare) return h("div", { class: "chart bare" }, plot);
  const head = h("div", { class: "chart-head" }, h("h3", {}, model.title), reset);
  const toggle = (index: number): void => {
    if (!hidden.delete(index)) hidden.add(index);
    tip.hide();
    draw();
  };
  return figure("chart", model.caption, head, legend(model, toggle), plot);
}

/** Find what the visible series need of each axis. */
function domains(model: Chart, hidden: Set<number>): Zoom {
  const shown = model.series.filter((_, index) => !hidden.has(index));
  const traces = model.ellipses.filter((_, index) => !hidden.has(model.series.length + index)).map((e) => traceEllipse(e));
  const along = (axis: "x" | "y"): Interval => {
    const { log, limits, categories } = model[axis];
    if (limits) return limits;
    if (categories.length > 0) return [-0.5, categories.length - 0.5];
    const marks = model.markers.filter((marker) => marker.axis === axis).map((marker) => marker.at);
    const ends = axis === "y" ? shown.flatMap((series) => [...(series.low ?? []), ...(series.high ?? [])]) : [];
    const edges = traces.flatMap((trace) => trace.map((point) => point[axis === "x" ? 0 : 1]));
    const standing = shown.some((series) => series.style === "bars" || series.style === "histogram");
    const bars = placeBars(model, hidden);
    const tops = model.series.flatMap((series, index) => (hidden.has(index) ? [] : series.y.map((value, place) =>
      value === null ? null : value + (bars[index]?.base[place] ?? 0))));
    const values = [...(axis === "y" ? tops : shown.flatMap((series) => series.x)), ...ends, ...edges, ...marks];
    const found = extent(standing && axis === "y" && !log ? [...values, 0] : values, log) ?? (log ? [1, 10] : [0, 1]);
    const wide = widen(found, axis === "y" ? 0.06 : flush(model) ? 0.01 : 0.04, log);
    // Bars stand on the axis: no gap below zero, and half a bar's room beside the outermost.
    if (standing && axis === "y" && !log) return [found[0] === 0 ? 0 : wide[0], found[1] === 0 ? 0 : wide[1]];
    return wide;
  };
  return { x: along("x"), y: along("y") };
}

function flush(model: Chart): boolean {
  return model.series.every((series) => ["line", "steps", "histogram"].includes(series.style));
}

function legend(model: Chart, toggle: (index: number) => void): HTMLElement | null {
  const entries = [
    ...model.series.map(({ name, colour, style, dashed }) => ({ name, colour, style: dashed ? "dashed" : style })),
    ...model.ellipses.map(({ name, colour }) => ({ name, colour, style: "line" })),
  ];
  if (entries.length < 2) return null;
  const buttons = entries.map((entry, index) => {
    const swatch = s("svg", { class: "swatch", viewBox: "0 0 18 10", width: 18, height: 10, "aria-hidden": "true" });
    const colour = colourOf(entry.colour, index);
    if (entry.style === "line" || entry.style === "steps" || entry.style === "dashed") {
      const dashes = entry.style === "dashed" ? "5 3" : null;
      swatch.append(s("line", { x1: 0, x2: 18, y1: 5, y2: 5, stroke: colour, "stroke-width": 2.5, "stroke-dasharray": dashes }));
    } else if (entry.style === "scatter") swatch.append(s("circle", { cx: 9, cy: 5, r: 4, fill: colour }));
    else swatch.append(s("rect", { x: 2, width: 14, height: 10, fill: colour }));
    const button = h("button", { type: "button", "aria-pressed": "true", title: "Show or hide" }, swatch, entry.name);
    button.addEventListener("click", () => {
      button.setAttribute("aria-pressed", String(button.getAttribute("aria-pressed") !== "true"));
      toggle(index);
    });
    return button;
  });
  return h("div", { class: "legend", role: "group", "aria-label": "Series" }, ...buttons);
}
