import { s } from "../dom.ts";
import type { Chart, Colour, Ellipse, Series, Value } from "../model.ts";
import { textWidth, type Frame } from "./axes.ts";

const CYCLE: Colour[] = ["blue", "orange", "green", "purple", "sky", "red", "olive"];

/** Name the colour of a series: its own, or the next of the palette. */
export function colourOf(own: Colour | null, index: number): string {
  return `var(--c-${own ?? CYCLE[index % CYCLE.length]})`;
}

/** A drawn point: where it is, and which value it stands for. */
export interface Point { series: number; index: number; px: number; py: number }

/** Where a series' bars stand: beside how many others, and from which height each rises. */
export interface Bars { index: number; count: number; base: number[] }

/** Place the bars of a chart: beside each other, or (stacked) each on the top of those before it. */
export function placeBars({ series, stacked }: Pick<Chart, "series" | "stacked">, hidden: Set<number>): Bars[] {
  const shown = series.flatMap(({ style }, index) => (style === "bars" && !hidden.has(index) ? [index] : []));
  const tops = new Map<Value, number>();
  return series.map(({ x, y }, index) => {
    if (!stacked || !shown.includes(index)) return { index: shown.indexOf(index), count: shown.length, base: y.map(() => 0) };
    const base = x.map((at) => tops.get(at) ?? 0);
    x.forEach((at, place) => tops.set(at, (base[place] as number) + (y[place] ?? 0)));
    return { index: 0, count: 1, base };
  });
}

/** Return the data position of a series' value: a histogram's bin has its middle. */
export function positionOf(series: Series, index: number): Value {
  const x = series.x[index] ?? null;
  if (series.style !== "histogram") return x;
  const next = series.x[index + 1] ?? null;
  return x === null || next === null ? null : (x + next) / 2;
}

/** Thin a run of pixels to the first, least, greatest and last of each pixel column. */
export function thin(points: Interval2[], columns: number): Interval2[] {
  if (points.length <= 4 * columns) return points;
  const kept: Interval2[] = [];
  for (let start = 0; start < points.length; ) {
    const column = Math.floor((points[start] as Interval2)[0]);
    let end = start;
    let least = start;
    let greatest = start;
    while (end < points.length && Math.floor((points[end] as Interval2)[0]) === column) {
      if ((points[end] as Interval2)[1] < (points[least] as Interval2)[1]) least = end;
      if ((points[end] as Interval2)[1] > (points[greatest] as Interval2)[1]) greatest = end;
      end += 1;
    }
    const wanted = [...new Set([start, least, greatest, end - 1])].sort((a, b) => a - b);
    kept.push(...wanted.map((index) => points[index] as Interval2));
    start = end;
  }
  return kept;
}

type Interval2 = [number, number];

function round(value: number): string {
  return String(Math.round(value * 100) / 100);
}

function runs(frame: Frame, x: Value[], y: Value[]): Interval2[][] {
  const found: Interval2[][] = [[]];
  y.forEach((value, index) => {
    const at = x[index] ?? null;
    const point: Interval2 = [frame.x.at(at ?? NaN), frame.y.at(value ?? NaN)];
    if (at === null || value === null || !Number.isFinite(point[0]) || !Number.isFinite(point[1])) found.push([]);
    else found[found.length - 1]?.push(point);
  });
  return found.filter((run) => run.length > 0);
}

function pathOf(run: Interval2[], steps: boolean, move = "M"): string {
  let path = "";
  run.forEach(([x, y], index) => {
    if (index === 0) path += `${move}${round(x)} ${round(y)}`;
    else path += steps ? `H${round(x)}V${round(y)}` : `L${round(x)} ${round(y)}`;
  });
  return path;
}

/** Draw one series and report its points. */
export function drawSeries(frame: Frame, series: Series, number: number, bars: Bars): [SVGGElement, Point[]] {
  const colour = colourOf(series.colour, number);
  const group = s("g", { class: `series ${series.style}`, "data-series": number, stroke: colour, fill: colour });
  const offset = series.style === "bars" ? barOffset(frame, series, bars) : { shift: 0, width: 0 };
  const points: Point[] = [];
  series.y.forEach((value, index) => {
    const at = positionOf(series, index);
    if (at === null || value === null) return;
    const [px, py] = [frame.x.at(at) + offset.shift, frame.y.at(value + (bars.base[index] ?? 0))];
    if (Number.isFinite(px) && Number.isFinite(py)) points.push({ series: number, index, px, py });
  });
  if (series.low && series.high && series.band) group.append(band(frame, series));
  if (series.style === "line" || series.style === "steps") {
    const path = runs(frame, series.x, series.y)
      .map((run) => pathOf(thin(run, frame.width), series.style === "steps")).join("");
    group.append(s("path", { class: "stroke", d: path, fill: "none", "stroke-dasharray": series.dashed ? "6 4" : null }));
  } else if (series.style === "bars" || series.style === "histogram") {
    group.append(...rectangles(frame, series, points, offset.width, bars.base));
  }
  if (series.low && series.high && !series.band) group.append(errorBars(frame, series, points));
  if (series.style === "scatter" || (series.markers && points.length <= 400)) {
    const radius = points.length > 300 ? 2 : 3.2;
    group.append(...points.map(({ px, py }) => s("circle", { cx: round(px), cy: round(py), r: radius })));
  }
  return [group, points];
}

function barOffset(frame: Frame, series: Series, bars: Bars): { shift: number; width: number } {
  const known = series.x.filter((value): value is number => value !== null).sort((a, b) => a - b);
  let gap = Infinity;
  for (let index = 1; index < known.length; index += 1) {
    const step = Math.abs(frame.x.at(known[index] as number) - frame.x.at(known[index - 1] as number));
    if (step > 0) gap = Math.min(gap, step);
  }
  if (!Number.isFinite(gap)) gap = Math.min(frame.width / 2, Math.abs(frame.x.at(1) - frame.x.at(0)) || frame.width / 2);
  const width = Math.min(64, (0.78 * gap) / bars.count);
  return { shift: (bars.index - (bars.count - 1) / 2) * width, width };
}

function rectangles(frame: Frame, series: Series, points: Point[], width: number, base: number[]): SVGRectElement[] {
  const floor = frame.top + frame.height;
  return points.map(({ index, px, py }) => {
    const zero = frame.y.log ? floor : frame.y.at(base[index] ?? 0);
    let [left, right] = [px - width / 2 + 0.5, px + width / 2 - 0.5];
    if (series.style === "histogram") {
      left = frame.x.at(series.x[index] as number) + 0.5;
      right = frame.x.at(series.x[index + 1] as number) - 0.5;
    }
    return s("rect", {
      x: round(left), width: round(Math.max(0.5, right - left)), y: round(Math.min(py, zero)),
      height: round(Math.abs(zero - py)), stroke: "none",
    });
  });
}

function band(frame: Frame, series: Series): SVGPathElement {
  const [low, high] = [series.low ?? [], series.high ?? []];
  const both = series.y.map((_, index) => (low[index] ?? null) !== null && (high[index] ?? null) !== null);
  const lower = runs(frame, series.x, low.map((value, index) => (both[index] ? value : null)));
  const upper = runs(frame, series.x, high.map((value, index) => (both[index] ? value : null)));
  const path = upper.map((run, index) => {
    const back = [...(lower[index] ?? [])].reverse();
    return `${pathOf(run, false)}${pathOf(back, false, "L")}Z`;
  });
  return s("path", { class: "band", d: path.join(""), stroke: "none" });
}

function errorBars(frame: Frame, series: Series, points: Point[]): SVGPathElement {
  const cap = Math.min(5, frame.width / Math.max(1, points.length) / 3);
  const path = points.map(({ index, px }) => {
    const [low, high] = [series.low?.[index] ?? null, series.high?.[index] ?? null];
    if (low === null || high === null) return "";
    const bottom = frame.y.log && low <= 0 ? frame.top + frame.height : frame.y.at(low);
    const [a, b] = [round(bottom), round(frame.y.at(high))];
    return `M${round(px)} ${a}V${b}M${round(px - cap)} ${a}h${round(2 * cap)}M${round(px - cap)} ${b}h${round(2 * cap)}`;
  });
  return s("path", { class: "errors", d: path.join(""), fill: "none" });
}

/** Trace an ellipse: centre + radius · L (cos φ, sin φ) with C = L Lᵀ. */
export function traceEllipse({ centre, covariance, radius }: Ellipse, count = 96): Interval2[] {
  const [[a, b], [, d]] = covariance;
  const l11 = Math.sqrt(Math.max(0, a));
  const l21 = l11 > 0 ? b / l11 : 0;
  const l22 = Math.sqrt(Math.max(0, d - l21 * l21));
  return Array.from({ length: count + 1 }, (_, index) => {
    const angle = (2 * Math.PI * index) / count;
    const [c, t] = [radius * Math.cos(angle), radius * Math.sin(angle)];
    return [centre[0] + l11 * c, centre[1] + l21 * c + l22 * t];
  });
}

/** Draw what lies behind the series: shaded windows; and above it: markers and ellipses. */
export function drawSpans(frame: Frame, model: Chart): SVGGElement {
  const group = s("g", { class: "spans" });
  const [left, right] = [frame.left, frame.left + frame.width];
  const clamp = (value: number): number => Math.min(right, Math.max(left, value));
  for (const span of model.spans) {
    const [a, b] = [clamp(frame.x.at(span.start)), clamp(frame.x.at(span.end))];
    if (!(Math.abs(b - a) >= 1)) continue;
    const [x, width] = [Math.min(a, b), Math.abs(b - a)];
    group.append(s("rect", { x, width, y: frame.top, height: frame.height, fill: `var(--c-${span.colour})` }, s("title", {}, span.label)));
    if (textWidth(span.label) < width - 6) {
      group.append(s("text", { x: x + width / 2, y: frame.top + 13, "text-anchor": "middle" }, span.label));
    }
  }
  return group;
}

export function drawMarks(frame: Frame, model: Chart, hidden: Set<number>): SVGGElement {
  const group = s("g", { class: "marks" });
  model.markers.forEach((marker, index) => {
    const stroke = `var(--c-${marker.colour})`;
    const at = frame[marker.axis].at(marker.at);
    const [x1, x2] = marker.axis === "x" ? [at, at] : [frame.left, frame.left + frame.width];
    const [y1, y2] = marker.axis === "x" ? [frame.top, frame.top + frame.height] : [at, at];
    if (!Number.isFinite(at)) return;
    group.append(s("line", { x1, x2, y1, y2, stroke }, s("title", {}, marker.label)));
    const flip = marker.axis === "x" && at + 6 + textWidth(marker.label) > frame.left + frame.width;
    const x = marker.axis === "x" ? at + (flip ? -5 : 5) : frame.left + frame.width - 4;
    const y = marker.axis === "x" ? frame.top + 14 + (model.spans.length > 0 ? 15 : 0) + 15 * (index % 3) : at - 5;
    const anchor = marker.axis === "y" || flip ? "end" : "start";
    group.append(s("text", { x, y, "text-anchor": anchor, fill: stroke }, marker.label));
  });
  model.ellipses.forEach((ellipse, index) => {
    if (hidden.has(model.series.length + index)) return;
    const run = traceEllipse(ellipse).map(([x, y]): Interval2 => [frame.x.at(x), frame.y.at(y)]);
    const stroke = colourOf(ellipse.colour, model.series.length + index);
    group.append(s("path", { class: "ellipse", d: pathOf(run, false), stroke }));
  });
  return group;
}
