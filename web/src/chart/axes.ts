import { s } from "../dom.ts";
import type { Axis } from "../model.ts";
import { formatTicks, withUnit } from "./format.ts";
import { linearTicks, logTicks, makeScale, type Interval, type Scale } from "./scale.ts";

export const FONT_SIZE = 12;
const FONT = `${FONT_SIZE}px system-ui, sans-serif`;

let context: CanvasRenderingContext2D | null = null;

/** Measure a text as the chart will set it. */
export function textWidth(text: string): number {
  context ??= document.createElement("canvas").getContext("2d");
  if (context === null) return text.length * 7;
  context.font = FONT;
  return context.measureText(text).width;
}

interface Ticks { values: number[]; texts: string[] }

export interface Frame {
  x: Scale;
  y: Scale;
  left: number;
  top: number;
  width: number;
  height: number;
}

export interface Laid extends Frame { xTicks: Ticks; yTicks: Ticks; turned: boolean; total: Interval }

function ticksOf(axis: Axis, domain: Interval, count: number): Ticks {
  if (axis.categories.length > 0) {
    const values = axis.categories.map((_, index) => index).filter((at) => at >= domain[0] && at <= domain[1]);
    return { values, texts: values.map((at) => axis.categories[at] ?? "") };
  }
  const values = (axis.log ? logTicks : linearTicks)(domain[0], domain[1], count);
  return { values, texts: formatTicks(values, axis.log) };
}

/** Divide a picture of the given size into margins and plot, as the labels need. */
export function layOut(xAxis: Axis, yAxis: Axis, x: Interval, y: Interval, size: Interval, bare = false): Laid {
  const [total, height] = size;
  const yTicks = ticksOf(yAxis, y, Math.max(2, (height - 60) / 44));
  const labels = Math.max(0, ...yTicks.texts.map(textWidth));
  // Panels of one column share their left edge, so that their x axes lie under one another.
  const left = bare ? Math.min(62, total * 0.4) : Math.min(Math.ceil(labels) + (yAxis.label === "" ? 12 : 32), total * 0.45);
  const width = Math.max(40, total - left - 14);
  const xTicks = ticksOf(xAxis, x, Math.max(2, width / 74));
  const slot = width / Math.max(1, xAxis.categories.length);
  const longest = Math.max(0, ...xTicks.texts.map(textWidth));
  const turned = xAxis.categories.length > 0 && longest > slot - 6;
  const bottom = (turned ? Math.min(longest, 150) * 0.64 + 16 : 22) + (xAxis.label === "" ? 0 : 20);
  const plot = Math.max(40, height - 10 - bottom);
  const vertical: Interval = yAxis.downwards ? [10, 10 + plot] : [10 + plot, 10];
  return {
    x: makeScale(x, xAxis.downwards ? [left + width, left] : [left, left + width], xAxis.log),
    y: makeScale(y, vertical, yAxis.log),
    left, top: 10, width, height: plot, xTicks, yTicks, turned, total: [total, height],
  };
}

/** Draw grid lines, ticks and labels. */
export function drawAxes(laid: Laid, xAxis: Axis, yAxis: Axis): SVGGElement {
  const { left, top, width, height } = laid;
  const group = s("g", { class: "axes" });
  laid.yTicks.values.forEach((tick, index) => {
    const at = laid.y.at(tick);
    group.append(s("line", { class: "grid", x1: left, x2: left + width, y1: at, y2: at }));
    const text = s("text", { x: left - 7, y: at + 4, "text-anchor": "end" }, laid.yTicks.texts[index]);
    group.append(text);
  });
  laid.xTicks.values.forEach((tick, index) => {
    const at = laid.x.at(tick);
    if (xAxis.categories.length === 0) {
      group.append(s("line", { class: "grid", x1: at, x2: at, y1: top, y2: top + height }));
    }
    const base = top + height + 17;
    const attributes = laid.turned
      ? { x: at + 4, y: base - 3, "text-anchor": "end", transform: `rotate(-38 ${at + 4} ${base - 3})` }
      : { x: at, y: base, "text-anchor": "middle" };
    group.append(s("text", attributes, laid.xTicks.texts[index]));
  });
  group.append(s("line", { class: "base", x1: left, x2: left + width, y1: top + height, y2: top + height }));
  group.append(s("line", { class: "base", x1: left, x2: left, y1: top, y2: top + height }));
  if (xAxis.label !== "") {
    const y = laid.total[1] - 5;
    group.append(s("text", { class: "label", x: left + width / 2, y, "text-anchor": "middle" }, withUnit(xAxis.label, xAxis.unit)));
  }
  if (yAxis.label !== "") {
    const [x, y] = [13, top + height / 2];
    const turn = `rotate(-90 ${x} ${y})`;
    const text = withUnit(yAxis.label, yAxis.unit);
    const room = 2 * Math.min(y, laid.total[1] - y) - 6;
    const tight = textWidth(text) > room ? { textLength: room, lengthAdjust: "spacingAndGlyphs" } : {};
    group.append(s("text", { class: "label", x, y, "text-anchor": "middle", transform: turn, ...tight }, text));
  }
  return group;
}
