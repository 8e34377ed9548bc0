import { chart } from "../chart/xy.ts";
import { h } from "../dom.ts";
import type { Axis, Chart, Film, Player, Series } from "../model.ts";
import { figure } from "../text.ts";
import { colourControls, sayPosition, sayTime, transport, type Colours } from "./controls.ts";
import { decompress, fromBase64, undelta, unpackBits } from "./decode.ts";
import { Panel } from "./panel.ts";

const FRAMES_PER_SECOND = 15;

/** Hands over the base64 text of a film's payload. */
export type Load = (payload: number) => string | Promise<string>;

const NAMES = { observed: "Observed", predicted: "Predicted", difference: "Difference" } as const;
type Key = keyof typeof NAMES;

/** Play a film of the observed field, the prediction and their difference. */
export function player(model: Player, load: Load): HTMLElement {
  const { observed } = model;
  const last = model.times.length - 1;
  const keys = (Object.keys(NAMES) as Key[]).filter((key) => model[key] !== null);
  const panels = new Map<Key, Panel>();
  const row = h("div", { class: "panels", tabindex: 0, role: "group" });
  row.setAttribute("aria-label", `${model.title}. Arrow keys step, space plays, shift with arrow keys moves the point that is read.`);
  const readout = h("div", { class: "readout", role: "status" });
  const trace = h("div", { class: "trace", hidden: true });
  const colours: Colours = { map: "viridis", low: observed.low, high: observed.high, reach: reachOf(model.difference) };
  let frame = startFrame(model);
  let pixel: number | null = null;
  let pinned = false;
  let speed = 1;
  let playing = false;
  let previous = 0;
  let owed = 0;

  const controls = transport(model, {
    toggle: () => setPlaying(!playing),
    step: (by) => { setPlaying(false); seek(frame + by); },
    seek: (to) => seek(to),
    speed: (factor) => { speed = factor; },
  });

  function seek(to: number): void {
    frame = Math.min(last, Math.max(0, to));
    for (const panel of panels.values()) panel.paint(frame);
    controls.show(frame, playing);
    probe(pixel);
  }

  function setPlaying(next: boolean): void {
    if (next && frame === last) seek(0);
    playing = next;
    owed = 0;
    controls.show(frame, playing);
    if (playing) requestAnimationFrame((now) => { previous = now; tick(now); });
  }

  function tick(now: number): void {
    if (!playing) return;
    owed += ((now - previous) / 1000) * FRAMES_PER_SECOND * speed;
    previous = now;
    const whole = Math.floor(owed);
    owed -= whole;
    if (whole > 0) seek(frame + whole);
    if (frame === last) setPlaying(false);
    else requestAnimationFrame(tick);
  }

  function probe(next: number | null): void {
    pixel = next;
    for (const panel of panels.values()) panel.probe(frame, pixel);
    if (pixel === null) {
      readout.textContent = "Point at a picture to read its values; click to see that point over time.";
      return;
    }
    const at = pixel;
    const values = keys.map((key) => `${NAMES[key].toLowerCase()} ${panels.get(key)?.say(frame, at)}`);
    readout.textContent = `${sayPosition(model, at)}, t = ${sayTime(model, frame)}: ${values.join(", ")}`;
  }

  function pin(at: number | null): void {
    pinned = at !== null;
    trace.hidden = !pinned;
    if (at === null) return trace.replaceChildren();
    const close = h("button", { type: "button" }, "Close");
    close.addEventListener("click", () => { pin(null); probe(null); row.focus(); });
    trace.replaceChildren(close, chart(traceChart(model, panels, at), { aspect: 0.3 }));
  }

  function pixelAt(event: PointerEvent | MouseEvent, screen: HTMLElement): number {
    const bounds = screen.getBoundingClientRect();
    const cell = (share: number, count: number): number => Math.min(count - 1, Math.max(0, Math.floor(share * count)));
    const column = cell((event.clientX - bounds.left) / bounds.width, observed.nx);
    return cell((event.clientY - bounds.top) / bounds.height, observed.ny) * observed.nx + column;
  }

  function watch(panel: Panel): void {
    panel.screen.addEventListener("pointermove", (event) => { if (!pinned) probe(pixelAt(event, panel.screen)); });
    panel.screen.addEventListener("pointerleave", () => { if (!pinned) probe(null); });
    panel.screen.addEventListener("click", (event) => {
      const at = pixelAt(event, panel.screen);
      probe(at);
      pin(at);
    });
  }

  function recolour(next: Colours): void {
    Object.assign(colours, next);
    for (const [key, panel] of panels) {
      if (key === "difference") panel.setColours("diverging", -colours.reach, colours.reach);
      else panel.setColours(colours.map, colours.low, colours.high);
    }
    seek(frame);
  }

  row.addEventListener("keydown", (event) => {
    const arrow = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] }[event.key];
    const step = { ArrowLeft: -1, ArrowRight: 1, PageUp: -10, PageDown: 10, Home: -last, End: last }[event.key];
    if (event.shiftKey && arrow) probe(movePixel(observed, pixel, arrow[0] as number, arrow[1] as number));
    else if (event.key === "Enter" && pixel !== null) pin(pixel);
    else if (event.key === "Escape") { pin(null); probe(null); }
    else if (event.key === " ") setPlaying(!playing);
    else if (step !== undefined) { setPlaying(false); seek(frame + step); }
    else return;
    event.preventDefault();
  });

  const clipped = keys.filter((key) => model[key]?.clipped).map((key) => NAMES[key].toLowerCase());
  const notice = clipped.length > 0 && h("p", { class: "fine" }, `Some values of ${clipped.join(" and ")} lie beyond the stored range and are shown at its ends.`);
  const element = figure(
    "player", model.caption, h("h3", {}, model.title), row, readout, controls.element,
    colourControls(colours, model.difference !== null, recolour), notice, trace,
  );

  async function open(): Promise<void> {
    const { nx, ny } = observed;
    const packed = model.mask === null ? null : await decompress(fromBase64(model.mask), Math.ceil((nx * ny) / 8));
    const mask = packed && unpackBits(packed, nx * ny);
    for (const key of keys) {
      const alt = `${key === "difference" ? "Predicted minus observed" : NAMES[key]}. ${model.alt}`;
      const panel = new Panel(NAMES[key], key, model[key] as Film, model.width / model.height, alt, mask);
      panels.set(key, panel);
      row.append(panel.element);
      watch(panel);
    }
    row.style.setProperty("--panels", String(keys.length));
    controls.show(frame, false);
    for (const key of keys) {
      const film = model[key] as Film;
      const levels = await decompress(fromBase64(await load(film.payload)), film.frames.length * nx * ny);
      panels.get(key)?.setLevels(undelta(levels, nx * ny));
    }
    recolour(colours);
    element.dataset["ready"] = "true";
  }

  open().catch((error: unknown) => {
    readout.textContent = `The film could not be read: ${error instanceof Error ? error.message : String(error)}`;
    element.dataset["ready"] = "failed";
  });
  return element;
}

function reachOf(film: Film | null): number {
  return film === null ? 1 : Math.max(Math.abs(film.low), Math.abs(film.high));
}

/** Start where there is most to see: within the last window, on a predicted frame. */
function startFrame(model: Player): number {
  const frames = model.predicted?.frames ?? [];
  if (frames.length === 0) return 0;
  const final = model.windows[model.windows.length - 1];
  const inside = final ? frames.filter((frame) => frame >= final.start && frame < final.end) : [];
  const choice = inside.length > 0 ? inside : frames;
  return choice[Math.floor(choice.length / 2)] ?? 0;
}

function movePixel({ nx, ny }: Film, pixel: number | null, dx: number, dy: number): number {
  const now = pixel ?? Math.floor(ny / 2) * nx + Math.floor(nx / 2);
  const x = Math.min(nx - 1, Math.max(0, (now % nx) + dx));
  const y = Math.min(ny - 1, Math.max(0, Math.floor(now / nx) + dy));
  return y * nx + x;
}

/** Plot one point of the picture over time. */
function traceChart(model: Player, panels: Map<Key, Panel>, pixel: number): Chart {
  const axis = (label: string, unit: string): Axis => ({ label, unit, log: false, categories: [], limits: null, downwards: false });
  const series = (key: Key, colour: Series["colour"], dashed: boolean): Series => ({
    name: NAMES[key], x: model.times, y: model.times.map((_, frame) => panels.get(key)?.value(frame, pixel) ?? null),
    style: "line", low: null, high: null, band: false, colour, dashed, markers: false, labels: [],
  });
  const drawn = [series("observed", "ink", false)];
  if (panels.has("predicted")) drawn.push(series("predicted", "orange", true));
  const time = (frame: number): number => model.times[Math.min(frame, model.times.length - 1)] ?? 0;
  return {
    kind: "chart", title: `At ${sayPosition(model, pixel)}`, x: axis("time", "s"), y: axis(model.quantity, ""), series: drawn,
    alt: "Observed and predicted values at one point over time", caption: "", markers: [], ellipses: [], equal_aspect: false, stacked: false,
    spans: model.windows.map(({ label, start, end, colour }) => ({ label, start: time(start), end: time(end), colour })),
  };
}
