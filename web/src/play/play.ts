import { formatValue } from "../chart/format.ts";
import { h, uniqueId } from "../dom.ts";
import type { Play } from "../model.ts";
import { decompress, fromBase64, undelta, unpackBits } from "../player/decode.ts";
import { valueOf } from "../player/panel.ts";
import type { Load } from "../player/player.ts";
import { figure } from "../text.ts";
import { dials } from "./dials.ts";
import { driftAt, Rollout, type Law } from "./rollout.ts";
import { Canvas } from "./screens.ts";

declare global {
  var video2pdeLaws: Record<string, Law> | undefined;
}

const FILM_FRAMES_PER_SECOND = 40;
const BUDGET_MS = 22;
const SPEEDS = [0.25, 0.5, 1, 2, 4];
const BRUSHES = [2, 4, 8, 16];

/** Run the law live beside the film: coefficients to turn, drift to switch off, dye to paint. */
export function play(model: Play, load: Load): HTMLElement {
  const element = figure("player play-box", model.caption);
  const state = h("p", { class: "readout", role: "status" }, "Loading…");
  element.prepend(h("h3", {}, "Film and law, side by side"), state);
  const law = globalThis.video2pdeLaws?.[model.law];
  if (!law) {
    state.textContent = "The law's script is missing from this page; write the report again.";
    element.dataset["ready"] = "failed";
    return element;
  }
  open(model, load, law, element, state).then(
    () => { element.dataset["ready"] = "true"; },
    (error: unknown) => {
      state.textContent = `The law cannot be shown: ${error instanceof Error ? error.message : String(error)}`;
      element.dataset["ready"] = "failed";
    },
  );
  return element;
}

async function open(model: Play, load: Load, law: Law, element: HTMLElement, state: HTMLElement): Promise<void> {
  const { film } = model;
  const [nx, ny, size] = [film.nx, film.ny, film.nx * film.ny];
  const levels = undelta(await decompress(fromBase64(await load(film.payload)), film.frames.length * size), size);
  const packed = model.outside === null ? null : await decompress(fromBase64(model.outside), Math.ceil(size / 8));
  const outside = packed && unpackBits(packed, size);
  const last = model.times.length - 1;
  const step = last > 0 ? ((model.times[last] as number) - (model.times[0] as number)) / last : 1;
  const seen = (frame: number, pixel: number): number => valueOf(film, levels[frame * size + pixel] as number);
  const rollout = new Rollout(law, {
    ny, nx, dx: model.width / nx, dy: model.height / ny, periodic: model.periodic, clip: model.clip,
    safety: model.safety, maxSubsteps: model.max_substeps,
  });
  const now = new Float64Array(size);
  const stored = model.flow && new Float32Array(
    (await decompress(fromBase64(await load(model.flow.payload)), 8 * model.flow.fields * size)).slice().buffer);
  const wind = model.flow ? new Float64Array(2 * size) : null;
  const calm = model.flow ? new Float64Array(2 * size) : null;
  let blown = -1;
  let first = 0;
  let frame = 0;
  let playing = false;
  let speed = 1;
  let drifting = true;
  let flowing = true;
  let brush = 4;
  let strength = 0.5;
  const sum = { error: 0, scale: 0 };
  let previous = 0;
  let owed = 0;

  const range = [film.low, film.high] as const;
  const reach = Math.max(0.02 * (film.high - film.low), 0.25 * (film.high - film.low));
  const aspect = model.width / model.height;
  const screens = {
    film: new Canvas("Film", "film", "The film", [nx, ny], aspect, "viridis", range),
    law: new Canvas("Law", "law", "The simulation. Press and move to paint.", [nx, ny], aspect, "viridis", range),
    difference: new Canvas("Law minus film", "difference", "The simulation minus the film", [nx, ny], aspect, "diverging", [-reach, reach]),
  };
  const row = h("div", { class: "panels" }, screens.film.element, screens.law.element, screens.difference.element);
  row.style.setProperty("--panels", "3");
  const turned = dials(model.dials, () => { if (!playing) show(); });

  const timeAt = (place: number): number => (place <= last ? (model.times[place] as number) : (model.times[last] as number) + (place - last) * step);

  function measure(): [number, number] {
    let [error, scale] = [0, 0];
    for (let pixel = 0; pixel < size; pixel += 1) {
      if (outside?.[pixel] === 1) continue;
      const observed = seen(frame, pixel);
      error += (now[pixel]! - observed) ** 2;
      scale += observed ** 2;
    }
    return [error, scale];
  }

  function restart(): void {
    frame = first;
    Object.assign(sum, { error: 0, scale: 0 });
    rollout.start(Float64Array.from({ length: size }, (_, pixel) => seen(first, pixel)));
    show();
  }

  function advance(): boolean {
    if (outside && frame <= last) rollout.edit((pixel) => (outside[pixel] === 1 ? seen(frame, pixel) : null));
    const [t0, t1] = [timeAt(frame), timeAt(frame + 1)];
    const still = [0, 0] as const;
    const drift = (t: number): readonly [number, number] => (drifting ? driftAt(model.drift_times, model.drift, t) : still);
    if (!rollout.advance(t1 - t0, turned.values, drift(t0), drift(t1), blow())) return false;
    frame += 1;
    if (frame <= last) {
      rollout.read(now);
      const [error, scale] = measure();
      sum.error += error;
      sum.scale += scale;
    }
    return true;
  }

  /** Add the flow's fields up for this interval; after the film's end it stays as it was. */
  function blow(): Float64Array | null {
    if (!wind || !model.flow_weights) return null;
    if (!flowing) return calm;
    const interval = Math.min(frame, model.flow_weights.length - 1);
    if (interval === blown) return wind;
    blown = interval;
    wind.fill(0);
    const width = 2 * size;
    for (let field = 0; stored && field * width < stored.length; field += 1) {
      const factor = model.flow_weights[interval]?.[field] ?? 0;
      if (factor === 0) continue;
      for (let place = 0; place < width; place += 1) wind[place]! += factor * stored[field * width + place]!;
    }
    return wind;
  }

  function show(): void {
    rollout.read(now);
    screens.law.paint((pixel) => now[pixel]!);
    slider.value = String(Math.min(frame, last));
    slider.setAttribute("aria-valuetext", `${formatValue(timeAt(frame), 3)} s`);
    if (frame > last) {
      screens.film.say("the film has ended");
      screens.difference.say("the film has ended");
    } else {
      screens.film.paint((pixel) => seen(frame, pixel));
      screens.difference.paint((pixel) => now[pixel]! - seen(frame, pixel));
    }
    toggle.textContent = playing ? "Pause" : "Run";
    toggle.setAttribute("aria-pressed", String(playing));
    say();
  }

  function say(): void {
    const [error, scale] = frame <= last ? measure() : [NaN, 1];
    const here = Math.sqrt(error / Math.max(scale, 1e-300));
    const since = Math.sqrt(sum.error / Math.max(sum.scale, 1e-300));
    const percent = (share: number): string => (Number.isFinite(share) ? `${(100 * share).toPrecision(3)} %` : "–");
    element.dataset["error"] = Number.isFinite(here) ? String(here) : "";
    element.dataset["frame"] = String(frame);
    const failure = rollout.failure === "" ? "" : ` Stopped: ${rollout.failure}; turn the coefficients back and start again.`;
    state.textContent = `t = ${formatValue(timeAt(frame), 4)} s, error against the film ${percent(here)} now, ${percent(sum.scale > 0 ? since : NaN)} since the start.${failure}`;
  }

  function setPlaying(next: boolean): void {
    playing = next;
    owed = 0;
    show();
    if (playing) requestAnimationFrame((at) => { previous = at; tick(at); });
  }

  function tick(at: number): void {
    if (!playing) return;
    if (!element.isConnected) { playing = false; return; }
    owed = Math.min(8, owed + ((at - previous) / 1000) * FILM_FRAMES_PER_SECOND * speed);
    previous = at;
    const begun = performance.now();
    let moved = false;
    while (owed >= 1 && performance.now() - begun < BUDGET_MS) {
      owed -= 1;
      moved = true;
      if (!advance()) { playing = false; break; }
    }
    if (moved) {
      element.dataset["shown"] = String(Number(element.dataset["shown"] ?? 0) + 1);
      show();
    }
    if (playing) requestAnimationFrame(tick);
  }

  const toggle = h("button", { type: "button", class: "play" }, "Run");
  toggle.addEventListener("click", () => setPlaying(!playing));
  const onwards = h("button", { type: "button", title: "One frame of the film onwards" }, "Step");
  onwards.addEventListener("click", () => {
    setPlaying(false);
    advance();
    show();
  });
  const again = h("button", { type: "button", title: "Start again from the chosen frame" }, "Start again");
  again.addEventListener("click", restart);
  const reset = h("button", { type: "button" }, "Reset all");
  const slider = h("input", { type: "range", min: 0, max: last, step: 1, value: 0, "aria-label": "Start from this frame of the film" });
  slider.addEventListener("input", () => { first = Number(slider.value); restart(); });
  const pace = h("select", { "aria-label": "Speed" }, ...SPEEDS.map((factor) => h("option", { value: factor, selected: factor === 1 }, `${factor}×`)));
  pace.addEventListener("change", () => { speed = Number(pace.value); });
  const driftId = uniqueId("drift");
  const drift = h("input", { type: "checkbox", id: driftId, checked: true });
  drift.addEventListener("change", () => { drifting = drift.checked; });
  const flowId = uniqueId("flow");
  const flow = h("input", { type: "checkbox", id: flowId, checked: true });
  flow.addEventListener("change", () => { flowing = flow.checked; blown = -1; });
  const width = h("select", { "aria-label": "Width of the brush" }, ...BRUSHES.map((cells) => h("option", { value: cells, selected: cells === brush }, `brush ${cells}`)));
  width.addEventListener("change", () => { brush = Number(width.value); });
  const power = h("select", { "aria-label": "What the brush does" }, h("option", { value: 0.5 }, "add dye"), h("option", { value: -0.5 }, "take dye away"));
  power.addEventListener("change", () => { strength = Number(power.value); });
  const centre = h("button", { type: "button", title: "For those who cannot point: a spot in the middle" }, "Dye in the middle");
  centre.addEventListener("click", () => paint(nx / 2, ny / 2));
  reset.addEventListener("click", () => {
    first = 0;
    drift.checked = drifting = true;
    flow.checked = flowing = true;
    blown = -1;
    turned.reset();
    setPlaying(false);
    restart();
  });

  function paint(x: number, y: number): void {
    const amount = strength * (film.high - film.low);
    rollout.edit((pixel, value) => {
      const away = ((pixel % nx) + 0.5 - x) ** 2 + (Math.floor(pixel / nx) + 0.5 - y) ** 2;
      return away > 9 * brush * brush ? null : value + amount * Math.exp(-away / (brush * brush));
    });
    if (!playing) show();
  }

  let painting = false;
  const { screen } = screens.law;
  screen.classList.add("paintable");
  const paintAt = (event: PointerEvent): void => {
    const bounds = screen.getBoundingClientRect();
    paint(((event.clientX - bounds.left) / bounds.width) * nx, ((event.clientY - bounds.top) / bounds.height) * ny);
  };
  screen.addEventListener("pointerdown", (event) => { painting = true; screen.setPointerCapture(event.pointerId); paintAt(event); event.preventDefault(); });
  screen.addEventListener("pointermove", (event) => { if (painting) paintAt(event); });
  for (const end of ["pointerup", "pointercancel"] as const) screen.addEventListener(end, () => { painting = false; });

  const transport = h("div", { class: "transport" }, toggle, onwards, again, h("div", { class: "timeline" }, slider), pace);
  const choices = h("div", { class: "colours" }, h("label", { for: driftId }, drift, "drift"), wind && h("label", { for: flowId }, flow, "flow"), width, power, centre, reset);
  state.before(row);
  state.after(transport, turned.element, choices);
  restart();
}
