import { formatValue } from "../chart/format.ts";
import { h, uniqueId } from "../dom.ts";
import type { MapName, Player } from "../model.ts";
import { SEQUENTIAL } from "./colourmaps.ts";

const SPEEDS = [0.25, 0.5, 1, 2, 4];

export interface Colours { map: MapName; low: number; high: number; reach: number }

/** The row of buttons and the time line. */
export interface Transport {
  element: HTMLElement;
  show(frame: number, playing: boolean): void;
}

interface TransportActions {
  toggle(): void;
  step(by: number): void;
  seek(frame: number): void;
  speed(factor: number): void;
}

export function transport(model: Player, actions: TransportActions): Transport {
  const last = model.times.length - 1;
  const play = h("button", { type: "button", class: "play" }, "Play");
  const back = h("button", { type: "button", "aria-label": "One frame back", title: "One frame back (←)" }, "‹");
  const on = h("button", { type: "button", "aria-label": "One frame on", title: "One frame on (→)" }, "›");
  const slider = h("input", { type: "range", min: 0, max: last, step: 1, value: 0, "aria-label": "Frame" });
  const clock = h("output", { class: "clock" });
  const speed = h("select", { "aria-label": "Speed" }, ...SPEEDS.map((factor) => h("option", { value: factor, selected: factor === 1 }, `${factor}×`)));
  play.addEventListener("click", actions.toggle);
  back.addEventListener("click", () => actions.step(-1));
  on.addEventListener("click", () => actions.step(1));
  slider.addEventListener("input", () => actions.seek(Number(slider.value)));
  speed.addEventListener("change", () => actions.speed(Number(speed.value)));
  const strip = h("div", { class: "windows" });
  for (const { label, start, end, colour } of model.windows) {
    const mark = h("span", { title: `${label}: ${sayTime(model, start)} to ${sayTime(model, Math.max(start, end - 1))}` }, label);
    mark.style.left = `${(100 * start) / Math.max(1, last)}%`;
    mark.style.width = `${(100 * (Math.min(end, last) - start)) / Math.max(1, last)}%`;
    mark.style.setProperty("--window", `var(--c-${colour})`);
    strip.append(mark);
  }
  const timeline = h("div", { class: "timeline" }, slider, strip);
  return {
    element: h("div", { class: "transport" }, back, play, on, timeline, clock, speed),
    show(frame, playing) {
      slider.value = String(frame);
      const window = model.windows.find(({ start, end }) => frame >= start && frame < end);
      const said = `${sayTime(model, frame)}${window ? `, ${window.label}` : ""}`;
      slider.setAttribute("aria-valuetext", said);
      clock.textContent = `t = ${said}`;
      play.textContent = playing ? "Pause" : "Play";
      play.setAttribute("aria-pressed", String(playing));
    },
  };
}

export function sayTime(model: Player, frame: number): string {
  const length = (model.times[model.times.length - 1] ?? 1) - (model.times[0] ?? 0);
  const decimals = Math.max(0, Math.min(6, 2 - Math.floor(Math.log10(length || 1))));
  return `${(model.times[frame] ?? 0).toFixed(decimals)} s`;
}

/** The choice of colour map and the ends of the colour scales. */
export function colourControls(first: Readonly<Colours>, hasDifference: boolean, change: (colours: Colours) => void): HTMLElement {
  const start = { ...first };
  let now = { ...start };
  const map = h("select", { "aria-label": "Colour map" }, ...SEQUENTIAL.map((name) => h("option", { value: name }, name)));
  const number = (name: string, key: "low" | "high" | "reach"): [HTMLElement, HTMLInputElement] => {
    const id = uniqueId("scale");
    const field = h("input", { id, type: "number", step: "any", value: short(start[key]) });
    field.addEventListener("change", () => {
      const next = { ...now, [key]: field.value === "" ? NaN : Number(field.value) };
      const valid = Number.isFinite(next[key]) && next.low < next.high && next.reach > 0;
      field.setCustomValidity(valid ? "" : "The scale needs a lower end below its upper end.");
      field.reportValidity();
      if (valid) change((now = next));
    });
    return [h("label", { for: id }, name, field), field];
  };
  const [low, lowField] = number("from", "low");
  const [high, highField] = number("to", "high");
  const [reach, reachField] = number("difference ±", "reach");
  const reset = h("button", { type: "button" }, "Reset colours");
  map.addEventListener("change", () => change((now = { ...now, map: map.value as MapName })));
  reset.addEventListener("click", () => {
    change((now = { ...start }));
    map.value = start.map;
    for (const [field, value] of [[lowField, start.low], [highField, start.high], [reachField, start.reach]] as const) {
      field.value = short(value);
      field.setCustomValidity("");
    }
  });
  return h("div", { class: "colours" }, h("label", {}, "Colours", map), low, high, hasDifference && reach, reset);
}

function short(value: number): string {
  return String(Number(value.toPrecision(3)));
}

export function sayPosition(model: Player, pixel: number): string {
  const { nx, ny } = model.observed;
  const x = (((pixel % nx) + 0.5) * model.width) / nx;
  const y = ((Math.floor(pixel / nx) + 0.5) * model.height) / ny;
  return `x = ${formatValue(x, 3)}, y = ${formatValue(y, 3)} ${model.unit}`;
}
