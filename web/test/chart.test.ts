import assert from "node:assert/strict";
import test from "node:test";
import { formatTicks, formatValue, formatWithin } from "../src/chart/format.ts";
import { nearest } from "../src/chart/interaction.ts";
import { placeBars, thin, traceEllipse } from "../src/chart/layers.ts";
import { equalise, extent, linearTicks, logTicks, makeScale, widen } from "../src/chart/scale.ts";
import type { Series } from "../src/model.ts";
import { colourIndex, colourTable, isLight } from "../src/player/colourmaps.ts";
import { compareCells } from "../src/table.ts";

test("values are written as people write them", () => {
  assert.equal(formatValue(9.00561), "9.006");
  assert.equal(formatValue(-0.5), "−0.5");
  assert.equal(formatValue(1.5e-7), "1.5×10⁻⁷");
  assert.equal(formatValue(-2e6), "−2×10⁶");
  assert.equal(formatValue(0), "0");
  assert.equal(formatValue(null), "–");
  assert.equal(formatValue(-Infinity), "−∞");
});

test("readings keep their decimals", () => {
  assert.deepEqual([0.51234, -0.1, -0.00004, null].map((value) => formatWithin(value, 0.78)), ["0.512", "−0.100", "0.000", "–"]);
  assert.equal(formatWithin(123.4, 255), "123");
  assert.equal(formatWithin(2e-9, 1e-8), "2×10⁻⁹");
});

test("ticks share their decimals", () => {
  assert.deepEqual(formatTicks([0, 0.05, 0.1], false), ["0.00", "0.05", "0.10"]);
  assert.deepEqual(formatTicks([-20, 0, 20], false), ["−20", "0", "20"]);
  assert.deepEqual(formatTicks([0.25, 0.5, 0.75], false), ["0.25", "0.50", "0.75"]);
  assert.deepEqual(formatTicks([1e-4, 1e-3, 1e-2], true), ["10⁻⁴", "10⁻³", "10⁻²"]);
  assert.deepEqual(formatTicks([0.1, 1, 10], true), ["0.1", "1", "10"]);
});

test("ticks are round and lie inside", () => {
  assert.deepEqual(linearTicks(0.13, 0.98, 4).map((tick) => tick.toFixed(1)), ["0.2", "0.4", "0.6", "0.8"]);
  assert.deepEqual(linearTicks(-3, 3, 3), [-2, 0, 2]);
  assert.deepEqual(logTicks(2e-4, 3, 9), [1e-3, 1e-2, 0.1, 1]);
  assert.deepEqual(logTicks(1.5, 6, 5), [2, 5]);
  assert.equal(linearTicks(1, 1, 4).length, 1);
});

test("scales invert, and a log scale has no zero", () => {
  for (const log of [false, true]) {
    const scale = makeScale([0.01, 100], [40, 440], log);
    for (const value of [0.01, 0.5, 1, 100]) assert.ok(Math.abs(scale.invert(scale.at(value)) / value - 1) < 1e-12);
  }
  assert.ok(Number.isNaN(makeScale([1, 10], [0, 1], true).at(0)));
});

test("extents skip what cannot be drawn", () => {
  assert.deepEqual(extent([null, 3, NaN, -1, Infinity], false), [-1, 3]);
  assert.deepEqual(extent([0, -1, 0.1, 5], true), [0.1, 5]);
  assert.equal(extent([null], false), null);
  assert.deepEqual(widen([5, 5], 0.1, false), [4.5, 5.5]);
  assert.deepEqual(equalise([0, 1], [0, 4], 100, 100), [[-1.5, 2.5], [0, 4]]);
});

test("stacked bars stand on those before them, others side by side", () => {
  const bars = (y: (number | null)[]): Series => ({
    name: "", x: [0, 1], y, style: "bars", low: null, high: null, band: false, colour: null, dashed: false, markers: false, labels: [],
  });
  const series = [bars([1, 2]), bars([3, null]), bars([5, 7])];
  assert.deepEqual(placeBars({ series, stacked: true }, new Set()).map(({ base }) => base), [[0, 0], [1, 2], [4, 2]]);
  assert.deepEqual(placeBars({ series, stacked: true }, new Set([0]))[2], { index: 0, count: 1, base: [3, 0] });
  assert.deepEqual(placeBars({ series, stacked: false }, new Set([0]))[2], { index: 1, count: 2, base: [0, 0] });
});

test("thinning keeps ends and extremes", () => {
  const points = Array.from({ length: 10_000 }, (_, index): [number, number] => [index / 100, index === 4321 ? 99 : Math.sin(index)]);
  const kept = thin(points, 100);
  assert.ok(kept.length <= 404);
  assert.deepEqual(kept[0], points[0]);
  assert.deepEqual(kept[kept.length - 1], points[9999]);
  assert.ok(kept.some(([, y]) => y === 99));
});

test("an ellipse satisfies its equation", () => {
  const [a, b, d] = [0.5, 0.2, 0.3];
  const points = traceEllipse({ name: "", centre: [1, 2], covariance: [[a, b], [b, d]], radius: 2, colour: null });
  for (const [x, y] of points) {
    const [u, v] = [x - 1, y - 2];
    assert.ok(Math.abs((d * u * u - 2 * b * u * v + a * v * v) / (a * d - b * b) - 4) < 1e-9);
  }
});

test("the nearest point is found, or none where all are far", () => {
  const points = [0, 1, 2].map((index) => ({ series: 0, index, px: 100 * index, py: 50 * index }));
  assert.equal(nearest(points, 110, 400, false)?.index, 1);
  assert.equal(nearest(points, 95, 60, true)?.index, 1);
  assert.equal(nearest(points, 110, 400, true), null);
});

test("colour tables have 256 entries, grey is the identity, the difference is neutral at zero", () => {
  for (const name of ["viridis", "cividis", "magma", "grey", "diverging"] as const) {
    assert.equal(colourTable(name).length, 256);
    assert.ok(colourTable(name).flat().every((channel) => Number.isInteger(channel) && channel >= 0 && channel <= 255));
  }
  assert.deepEqual(colourTable("grey")[77], [77, 77, 77]);
  assert.deepEqual(colourTable("diverging")[128], [245, 245, 242]);
  assert.equal(colourIndex(0, -1, 1), 128);
  assert.equal(colourIndex(9, 0, 1), 255);
  assert.ok(isLight("diverging", 0, -1, 1) && !isLight("diverging", 1, -1, 1));
});

test("sequential maps grow steadily lighter", () => {
  for (const name of ["viridis", "cividis", "magma"] as const) {
    const light = colourTable(name).map(([r, g, b]) => 0.2126 * r ** 2.2 + 0.7152 * g ** 2.2 + 0.0722 * b ** 2.2);
    for (let index = 8; index < 256; index += 8) assert.ok((light[index] as number) > (light[index - 8] as number), `${name} ${index}`);
  }
});

test("cells sort by number, then by word, missing ones last", () => {
  const cells = [null, "b", 10, 9, "a2", "a10"].map((sort) => ({ text: "", sort }));
  assert.deepEqual(cells.sort(compareCells).map(({ sort }) => sort), [9, 10, "a2", "a10", "b", null]);
});
