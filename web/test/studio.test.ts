import assert from "node:assert/strict";
import test from "node:test";
import { driftAt, Rollout, type Law } from "../src/play/rollout.ts";
import { reachOf } from "../src/play/dials.ts";
import { nearest } from "../src/studio/compare.ts";
import { Draft } from "../src/studio/draft.ts";
import { between, drag, fit, scaleOf } from "../src/studio/geometry.ts";
import { thresholdOf } from "../src/studio/prepare.ts";
import { middleOf } from "../src/studio/run.ts";
import { parse } from "../src/studio/settings.ts";
import { hrefOf, readPlace } from "../src/studio/shell.ts";

const SIZE = [240, 200] as const;

test("a crop stays inside the picture, in whole pixels", () => {
  assert.deepEqual(fit([-5, 190, 50.4, 40], SIZE), [0, 160, 50, 40]);
  assert.deepEqual(fit([10, 10, 1, 900], SIZE), [10, 0, 8, 200]);
  assert.deepEqual(between([100, 80], [40, 20], SIZE), [40, 20, 60, 60]);
});

test("handles move their own edges alone", () => {
  const box = [40, 20, 160, 160] as [number, number, number, number];
  assert.deepEqual(drag(box, "move", 10, -5, SIZE), [50, 15, 160, 160]);
  assert.deepEqual(drag(box, "nw", 10, 5, SIZE), [50, 25, 150, 155]);
  assert.deepEqual(drag(box, "e", 10, 99, SIZE), [40, 20, 170, 160]);
  assert.deepEqual(drag(box, "e", -500, 0, SIZE), [40, 20, 8, 160]);
  assert.deepEqual(drag(box, "s", 0, 500, SIZE), [40, 20, 160, 180]);
});

test("a ruler gives the size of a pixel, or nothing", () => {
  assert.equal(scaleOf([0, 0], [30, 40], 25, "mm"), "0.5mm");
  assert.equal(scaleOf([0, 0], [0, 0], 25, "mm"), null);
  assert.equal(scaleOf([0, 0], [30, 40], 0, "mm"), null);
  assert.equal(scaleOf([0, 0], [30, 40], 25, "2 mm"), null);
});

test("a draft keeps what was touched and undoes step by step", () => {
  const draft = new Draft("film.mp4", "run");
  let told = 0;
  draft.onChange(() => { told += 1; });
  draft.set("recording.crop", [1, 2, 3, 4]);
  draft.set("recording.crop", [1, 2, 3, 4]); // nothing changes: no step
  draft.set("recording.every", 2);
  draft.set("recording.every", null);
  assert.deepEqual(draft.choice.settings, { "recording.crop": [1, 2, 3, 4] });
  assert.equal(told, 3);
  draft.undo();
  assert.equal(draft.get("recording.every"), 2);
  draft.undo();
  draft.undo();
  assert.deepEqual(draft.choice.settings, {});
  assert.equal(draft.canUndo, false);
  draft.redo();
  assert.deepEqual(draft.get("recording.crop"), [1, 2, 3, 4]);
});

test("typed settings become values", () => {
  assert.deepEqual(["", "true", "12", "1e-3", "0.1,0.2", "sqrt"].map((text) => parse(text, null)), [null, true, 12, 0.001, [0.1, 0.2], "sqrt"]);
  assert.deepEqual(parse("laplacian", ["u"]), ["laplacian"]);
});

test("places survive their address", () => {
  for (const place of [{ view: "library" }, { view: "run", run: "a b/<c>&d" }, { view: "compare", runs: ["x", "y=1"] }, { view: "prepare", film: "f?.mp4" }]) {
    assert.deepEqual(readPlace(new URL(hrefOf(place), "http://127.0.0.1/").search), place);
  }
});

test("the nearest frame is found", () => {
  assert.deepEqual([-1, 0.4, 0.6, 9].map((time) => nearest([0, 1, 2], time)), [0, 0, 1, 2]);
});

test("the drift is linear between frames and steady after the film", () => {
  const times = [0, 1, 2];
  const drift = [[0, 1], [2, 1], [4, 3]];
  assert.deepEqual(driftAt(times, drift, 0.5), [1, 1]);
  assert.deepEqual(driftAt(times, drift, 2), [4, 3]);
  assert.deepEqual(driftAt(times, drift, 7), [4, 3]);
  assert.deepEqual(driftAt([], [], 1), [0, 0]);
});

test("sliders reach beyond the interval, and to the other sign", () => {
  const dial = { symbol: { kind: "math" as const, latex: "", plain: "", tree: null }, meaning: "", unit: "" };
  assert.deepEqual(reachOf({ ...dial, value: 2, low: 1.9, high: 2.1 }), [-1.05, 5.25]);
  const [least, most] = reachOf({ ...dial, value: -2, low: null, high: null });
  assert.ok(least < -2 && most > 0);
});

test("a law that needs steps too small, or blows up, says so", () => {
  const still: Law = { radius: 1, advection: 1, stage: () => NaN, bound: () => 0 };
  const scheme = { ny: 4, nx: 4, dx: 1, dy: 1, periodic: false, clip: null, safety: 0.25, maxSubsteps: 10 };
  const rollout = new Rollout(still, scheme);
  rollout.start(new Float64Array(16));
  assert.equal(rollout.advance(1, [], [0, 0], [0, 0]), false);
  assert.match(rollout.failure, /blew up/);
  const stiff = new Rollout({ ...still, bound: () => 1e9 }, scheme);
  stiff.start(new Float64Array(16));
  assert.equal(stiff.advance(1, [], [0, 0], [0, 0]), false);
  assert.match(stiff.failure, /too small/);
});

test("a threshold is shown in its own frame alone", () => {
  assert.equal(thresholdOf("u>0.25@3", 3), 0.25);
  assert.equal(thresholdOf("u>0.25@3", 4), -Infinity);
  assert.equal(thresholdOf("masked-mask.png", 3), -Infinity);
  assert.equal(thresholdOf(undefined, 0), -Infinity);
});

test("the middle of replicates is their median", () => {
  assert.equal(middleOf([3, 1, 2]), 2);
  assert.equal(middleOf([4, 1, 2, 3]), 2.5);
});
