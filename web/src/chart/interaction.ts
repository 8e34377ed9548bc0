import { s } from "../dom.ts";
import type { Axis, Chart, Series } from "../model.ts";
import { formatValue, withUnit } from "./format.ts";
import { colourOf, positionOf, type Point } from "./layers.ts";
import type { Interval, Scale } from "./scale.ts";
import type { Line, Tooltip } from "./tooltip.ts";
import type { Drawn, Zoom } from "./xy.ts";

interface Watched {
  plot: HTMLElement;
  svg: SVGSVGElement;
  model: Chart;
  drawn: Drawn;
  tip: Tooltip;
  setZoom(zoom: Zoom | null): void;
}

const SMALLEST_DRAG = 8;

/** Pick the point that the reader means: nearest in the plane, or along x where lines share their x. */
export function nearest(points: Point[], x: number, y: number, scattered: boolean): Point | null {
  let best: Point | null = null;
  let least = Infinity;
  for (const point of points) {
    const distance = Math.hypot(point.px - x, (point.py - y) * (scattered ? 1 : 0.15));
    if (distance < least) [best, least] = [point, distance];
  }
  return scattered && least > 40 ? null : best;
}

function valueText(series: Series, index: number, axis: Axis): string {
  const [low, high] = [series.low?.[index] ?? null, series.high?.[index] ?? null];
  const interval = low === null || high === null ? "" : ` [${formatValue(low, 3)}, ${formatValue(high, 3)}]`;
  // A long unit stands on the axis already and would only cover the curve.
  const unit = axis.unit === "" || axis.unit.length > 5 ? "" : ` ${axis.unit}`;
  return `${formatValue(series.y[index])}${interval}${unit}`;
}

/** Say what stands at a point: x, and the value of every series there. */
export function describe(model: Chart, point: Point, points: Point[], scattered: boolean): [string, Line[]] {
  const series = model.series[point.series] as Series;
  const at = positionOf(series, point.index);
  const category = model.x.categories[at ?? -1];
  const bin = series.style === "histogram" ? `${formatValue(series.x[point.index])} to ${formatValue(series.x[point.index + 1])}` : null;
  const unit = model.x.unit === "" ? "" : ` ${model.x.unit}`;
  const title = category ?? `${model.x.label || "x"} ${bin ?? formatValue(at)}${unit}`;
  const same = scattered ? [point] : points.filter((other) => {
    const there = positionOf(model.series[other.series] as Series, other.index);
    return there === at || (Math.abs(other.px - point.px) < 0.75 && other.series !== point.series);
  });
  const seen = new Set<number>();
  const lines: Line[] = [];
  for (const other of same) {
    if (seen.has(other.series)) continue;
    seen.add(other.series);
    const its = model.series[other.series] as Series;
    const label = its.labels[other.index];
    lines.push({
      text: label ? `${its.name}, ${label}` : its.name || withUnit(model.y.label, ""),
      value: valueText(its, other.index, model.y),
      colour: colourOf(its.colour, other.series),
    });
  }
  return [title, lines];
}

/** Let pointer and keyboard read and zoom the chart. */
export function watchPlot({ plot, svg, model, drawn, tip, setZoom }: Watched): void {
  const scattered = model.series.every((series) => series.style === "scatter") || model.equal_aspect;
  let start: Interval | null = null;
  let cursor: Point | null = null;
  let box: SVGRectElement | null = null;

  const place = (event: PointerEvent | MouseEvent): Interval => {
    const bounds = svg.getBoundingClientRect();
    const scale = drawn.laid.total[0] / bounds.width;
    return [(event.clientX - bounds.left) * scale, (event.clientY - bounds.top) * scale];
  };

  function show(point: Point | null): void {
    cursor = point;
    svg.querySelector(".cursor")?.remove();
    if (point === null) return tip.hide();
    const { top, height, left, width } = drawn.laid;
    const group = s("g", { class: "cursor" });
    if (!scattered) group.append(s("line", { x1: point.px, x2: point.px, y1: top, y2: top + height }));
    const [title, lines] = describe(model, point, drawn.points, scattered);
    for (const other of scattered ? [point] : drawn.points.filter((p) => Math.abs(p.px - point.px) < 0.75)) {
      const colour = colourOf((model.series[other.series] as Series).colour, other.series);
      group.append(s("circle", { cx: other.px, cy: other.py, r: 4.5, fill: colour }));
    }
    svg.append(group);
    const px = Math.min(left + width, Math.max(left, point.px));
    const scale = svg.getBoundingClientRect().width / drawn.laid.total[0];
    tip.show(px * scale, Math.min(top + height, Math.max(top, point.py)) * scale, title, lines);
  }

  const hide = (): void => {
    if (start === null) show(null);
  };

  plot.addEventListener("pointerdown", (event) => {
    const [x, y] = place(event);
    const { left, top, width, height } = drawn.laid;
    if (event.button !== 0 || x < left || x > left + width || y < top || y > top + height) return;
    start = [x, y];
    if (event.pointerType === "mouse") plot.setPointerCapture(event.pointerId);
  });
  plot.addEventListener("pointermove", (event) => {
    const [x, y] = place(event);
    if (start === null) {
      const { left, width } = drawn.laid;
      return x < left - 8 || x > left + width + 8 ? show(null) : show(nearest(drawn.points, x, y, scattered));
    }
    if (Math.abs(x - start[0]) < SMALLEST_DRAG) return;
    show(null);
    box ??= svg.appendChild(s("rect", { class: "zoom-box" }));
    const [left, right, top, bottom] = selection(start, [x, y], drawn);
    box.setAttribute("x", String(left));
    box.setAttribute("width", String(right - left));
    box.setAttribute("y", String(top));
    box.setAttribute("height", String(bottom - top));
  });
  plot.addEventListener("pointerup", (event) => {
    const from = start;
    start = null;
    box?.remove();
    box = null;
    if (from === null) return;
    const to = place(event);
    if (Math.abs(to[0] - from[0]) < SMALLEST_DRAG) return show(nearest(drawn.points, to[0], to[1], scattered));
    const [left, right, top, bottom] = selection(from, to, drawn);
    setZoom({ x: between(drawn.laid.x, left, right), y: between(drawn.laid.y, bottom, top) });
  });
  plot.addEventListener("pointercancel", () => {
    start = null;
    box?.remove();
    box = null;
  });
  plot.addEventListener("pointerleave", hide);
  plot.addEventListener("blur", hide);
  plot.addEventListener("dblclick", () => setZoom(null));
  plot.addEventListener("keydown", (event) => {
    const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    const turn = { ArrowUp: -1, ArrowDown: 1 }[event.key];
    if (step !== undefined) show(neighbour(drawn.points, cursor, step));
    else if (turn !== undefined) show(otherSeries(drawn.points, cursor, turn));
    else if (event.key === "+" || event.key === "=") setZoom(magnify(drawn, cursor, 0.5));
    else if (event.key === "-") setZoom(magnify(drawn, cursor, 2));
    else if (event.key === "Escape" || event.key === "0") setZoom(null);
    else return;
    event.preventDefault();
  });
}

/** Bound a drag: all of y where the drag was nearly level. */
function selection(from: Interval, to: Interval, { laid }: Drawn): [number, number, number, number] {
  const clampX = (x: number): number => Math.min(laid.left + laid.width, Math.max(laid.left, x));
  const clampY = (y: number): number => Math.min(laid.top + laid.height, Math.max(laid.top, y));
  const level = Math.abs(to[1] - from[1]) < 20;
  const [top, bottom] = level ? [laid.top, laid.top + laid.height] : [clampY(Math.min(from[1], to[1])), clampY(Math.max(from[1], to[1]))];
  return [clampX(Math.min(from[0], to[0])), clampX(Math.max(from[0], to[0])), top, bottom];
}

function between(scale: Scale, a: number, b: number): Interval {
  const [first, second] = [scale.invert(a), scale.invert(b)];
  return first < second ? [first, second] : [second, first];
}

function neighbour(points: Point[], cursor: Point | null, step: number): Point | null {
  if (cursor === null) return points[0] ?? null;
  const own = points.filter((point) => point.series === cursor.series).sort((a, b) => a.px - b.px);
  const now = own.findIndex((point) => point.index === cursor.index);
  return own[Math.min(own.length - 1, Math.max(0, now + step))] ?? null;
}

function otherSeries(points: Point[], cursor: Point | null, turn: number): Point | null {
  if (cursor === null) return points[0] ?? null;
  const present = [...new Set(points.map((point) => point.series))];
  const next = present[(present.indexOf(cursor.series) + turn + present.length) % present.length];
  return nearest(points.filter((point) => point.series === next), cursor.px, cursor.py, false);
}

/** Zoom about the cursor, or the middle. */
function magnify({ laid }: Drawn, cursor: Point | null, factor: number): Zoom {
  const scaled = (scale: Scale, centre: number): Interval => {
    const [a, b] = scale.range;
    return between(scale, centre + (a - centre) * factor, centre + (b - centre) * factor);
  };
  const middle = (scale: Scale): number => (scale.range[0] + scale.range[1]) / 2;
  return { x: scaled(laid.x, cursor?.px ?? middle(laid.x)), y: scaled(laid.y, cursor?.py ?? middle(laid.y)) };
}
