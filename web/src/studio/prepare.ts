import { formatValue } from "../chart/format.ts";
import { h, uniqueId, type Child } from "../dom.ts";
import type { Player } from "../model.ts";
import { Canvas } from "../play/screens.ts";
import { player } from "../player/player.ts";
import { ask, get, lines, post, send } from "./api.ts";
import { Draft } from "./draft.ts";
import { fit, scaleOf, type Box, type Point } from "./geometry.ts";
import type { FilmInfo, Plan } from "./model.ts";
import { allSettings } from "./settings.ts";
import { button, complain, say, sayBytes, saySeconds, type View } from "./shell.ts";
import { Stage, type Tool } from "./stage.ts";

const TOOLS: [Tool, string][] = [["crop", "Crop"], ["ruler", "Ruler"], ["polygon", "Mask: polygon"], ["brush", "Mask: brush"], ["erase", "Mask: rub out"]];

const LIVE_PIXELS = 1e9;

/** Prepare a run by looking: crop, scale, mask, time range, observable, with the checks beside it. */
export function prepareView(film: string, started: (out: string) => void): View {
  const element = h("section", { class: "view prepare" }, h("h1", {}, film), h("p", {}, "Opening…"));
  let leave = (): void => undefined;
  get<FilmInfo>("film", { name: film }).then(
    (info) => { leave = build(element, info, started); element.dataset["ready"] = "true"; },
    (error: unknown) => { element.replaceChildren(h("h1", {}, film), h("p", { class: "note error" }, error instanceof Error ? error.message : String(error))); },
  );
  return { element, leave: () => leave() };
}

function build(element: HTMLElement, info: FilmInfo, started: (out: string) => void): () => void {
  const draft = new Draft(info.name, info.out);
  const size = [info.width, info.height] as const;
  let plan: Plan | null = null;
  let checking: AbortController | null = null;
  let timer = 0;
  let later = 0;
  let line: [Point, Point] | null = null;
  const turns = { look: 0, plan: 0 }; // an answer that a later question has overtaken is not shown
  const stage = new Stage(info, {
    crop: (box) => draft.set("recording.crop", box),
    ruler: (from, to) => { line = [from, to]; takeScale(); },
    mask: () => { keep.disabled = false; },
    replaced: () => location.reload(),
  });

  // --- fields that show what is automatic until they are touched
  const refreshers: (() => void)[] = [];
  function field(label: string, key: string, read: (text: string) => unknown, attributes: Record<string, string | number> = {}): HTMLElement {
    const id = uniqueId("field");
    const input = h("input", { id, type: "text", ...attributes });
    input.addEventListener("change", () => {
      const value = input.value.trim() === "" ? null : read(input.value.trim());
      const wrong = value === undefined || (typeof value === "number" && !Number.isFinite(value));
      input.setCustomValidity(wrong ? "This cannot be read; leave it empty for the automatic value." : "");
      input.reportValidity();
      if (!wrong) draft.set(key, value);
    });
    refreshers.push(() => {
      const value = draft.get(key);
      // what is being typed is not to be overwritten
      if (document.activeElement !== input) input.value = value === undefined ? "" : String(value);
      const own = plan?.automatic[key];
      input.placeholder = own === undefined || own === null ? "automatic" : `${String(own)} (automatic)`;
    });
    return h("div", { class: "field" }, h("label", { for: id }, label), input);
  }
  const numbers = (count: number) => (text: string): unknown => {
    const parts = text.split(",").map(Number);
    return parts.length === count && parts.every((part) => Number.isFinite(part)) ? parts : undefined;
  };
  const choose = (label: string, key: string, values: string[], names: string[] = values): HTMLElement => {
    const id = uniqueId("field");
    const select = h("select", { id }, h("option", { value: "" }, "automatic"), ...values.map((value, index) => h("option", { value }, names[index] ?? value)));
    select.addEventListener("change", () => draft.set(key, select.value));
    refreshers.push(() => {
      select.value = String(draft.get(key) ?? "");
      const own = plan?.automatic[key];
      const first = select.options[0];
      if (first && own !== undefined) first.textContent = `${String(own)} (automatic)`;
    });
    return h("div", { class: "field" }, h("label", { for: id }, label), select);
  };

  // --- tools
  const tools = h("div", { class: "tools", role: "radiogroup", "aria-label": "Tool" }, ...TOOLS.map(([tool, name], index) => {
    const id = uniqueId("tool");
    const radio = h("input", { type: "radio", name: "tool", id, value: tool, checked: index === 0 });
    radio.addEventListener("change", () => stage.setTool(tool));
    return h("span", { class: "tool" }, radio, h("label", { for: id }, name));
  }));
  const brush = h("input", { type: "range", min: 4, max: Math.max(40, Math.round(info.width / 6)), value: 30, "aria-label": "Width of the brush" });
  brush.addEventListener("input", () => { stage.brush = Number(brush.value); });
  const length = h("input", { type: "number", step: "any", min: 0, "aria-label": "Length of the line" });
  const unit = h("input", { type: "text", value: "mm", size: 4, "aria-label": "Unit of the length" });
  function takeScale(): void {
    stage.setLine(line);
    const scale = line && scaleOf(line[0], line[1], Number(length.value), unit.value.trim());
    if (scale) draft.set("recording.scale", scale);
    else if (line && length.value === "") say("Type how long the line is, with its unit.", "info");
  }
  for (const input of [length, unit]) input.addEventListener("change", takeScale);
  const keep = button("Use this mask", () => void keepMask(), { disabled: true });
  async function keepMask(): Promise<void> {
    try {
      const picture = await stage.packMask();
      if (!picture) return;
      const answer = await ask("mask", { film: info.name }, { method: "PUT", body: picture });
      draft.set("recording.mask", ((await answer.json()) as { name: string }).name);
      say("The mask is kept in the folder and used for the run.", "good");
    } catch (error) {
      complain(error);
    }
  }
  const level = h("input", { type: "number", step: "any", value: 0.3, "aria-label": "Threshold of u for the mask" });
  const above = button("Mask: u above it in this frame", () => { if (level.value !== "") draft.set("recording.mask", `u>${Number(level.value)}@${fieldFrame()}`); });
  /** The number that the frame on the screen has in the field: counted from the first one that is used, in steps. */
  function fieldFrame(): number {
    const [start, every] = ["recording.start", "recording.every"].map((key) => Number(draft.get(key) ?? plan?.automatic[key]));
    return Math.max(0, Math.round((stage.frame - (start || 0)) / (every || 1)));
  }
  const rub = button("Clear the drawing", () => { stage.clearMask(); keep.disabled = true; });

  // --- u in this frame, and the checks of the whole recording
  const seen = h("div", { class: "u-box" });
  const range = h("p", { class: "fine", role: "status" });
  async function look(): Promise<void> {
    const turn = (turns.look += 1);
    try {
      const { preset, settings } = draft.choice;
      const answer = await send("look", { film: info.name, version: info.version, number: stage.frame, preset, settings: without(settings, ["recording.mask"]) });
      const { ny, nx, low, high, inner } = JSON.parse(answer.headers.get("x-u") ?? "{}") as { ny: number; nx: number; low: number; high: number; inner: Box };
      const levels = new Uint8Array(await answer.arrayBuffer());
      if (turn !== turns.look) return;
      const top = high > low ? high : low + 1e-9;
      const canvas = new Canvas("u in this frame", "u", "The observable in this frame, on the grid of the run", [nx, ny], inner[2] / inner[3], "viridis", [low, top]);
      const least = thresholdOf(settings["recording.mask"], fieldFrame()); // what a threshold leaves out here is shown as lowest
      const value = (pixel: number): number => low + ((top - low) * (levels[pixel] as number)) / 255;
      canvas.paint((pixel) => (value(pixel) > least ? value(pixel) : low));
      seen.replaceChildren(canvas.element);
      range.textContent = `${nx} × ${ny} cells, u from ${formatValue(low, 3)} to ${formatValue(high, 3)}`;
    } catch (error) {
      if (turn === turns.look) range.textContent = error instanceof Error ? error.message : String(error);
    }
  }
  stage.onMove(() => void look());

  const checks = h("div", { class: "checks", role: "status" });
  const check = button("Check the whole recording", () => void examine());
  // a long film takes its time to read: then it is checked when asked for
  const live = h("input", { type: "checkbox", id: uniqueId("live"), checked: info.width * info.height * (info.frames ?? 0) < LIVE_PIXELS });
  async function examine(): Promise<void> {
    checking?.abort();
    const mine = (checking = new AbortController());
    delete checks.dataset["done"];
    const bar = h("progress", { "aria-label": "Reading the recording" });
    checks.replaceChildren(h("p", {}, "Reading… ", bar));
    try {
      const { preset, settings } = draft.choice;
      for await (const told of lines(await send("checks", { film: info.name, preset, settings }, mine.signal))) {
        if (typeof told["done"] === "number") {
          if (typeof told["total"] === "number") bar.max = told["total"];
          bar.value = told["done"];
        } else if (typeof told["error"] === "string") checks.replaceChildren(h("p", { class: "note error" }, told["error"]));
        else if (told["result"]) showChecks(told["result"] as CheckResult);
      }
    } catch (error) {
      if (mine === checking) checks.replaceChildren();
      complain(error);
    }
  }
  function showChecks(found: CheckResult): void {
    const lines: Child[] = found.warnings.length === 0
      ? [h("p", { class: "note good" }, "✓ Nothing speaks against this recording.")]
      : found.warnings.map((text) => h("p", { class: "note warning" }, `⚠ ${text}`));
    const notes = found.notes.map((text) => h("li", {}, text));
    checks.replaceChildren(
      ...(lines as Node[]), h("p", { class: "fine" }, `${found.frames} frames on ${found.grid[0]} × ${found.grid[1]} cells`),
      h("ul", { class: "fine" }, ...notes), player(found.player, (film) => found.films[film] ?? ""));
    checks.dataset["done"] = "true";
  }

  // --- what the run would be
  const command = h("code", { class: "command", tabindex: 0, role: "region", "aria-label": "The same on the command line" });
  const expected = h("p", { class: "fine", role: "status" });
  const problems = h("div", { class: "problems", role: "status" });
  const out = h("input", { type: "text", "aria-label": "Folder of the run", value: draft.choice.out });
  out.addEventListener("change", () => draft.change((choice) => { choice.out = out.value.trim(); }));
  const preset = h("select", { "aria-label": "Preset" }, ...info.presets.map((name) => h("option", {}, name)));
  preset.addEventListener("change", () => draft.change((choice) => { choice.preset = preset.value; }));
  const figures = h("input", { type: "checkbox", id: uniqueId("figures"), checked: true });
  figures.addEventListener("change", () => draft.change((choice) => { choice.figures = figures.checked; }));
  const undo = button("Undo", () => draft.undo(), { title: "Ctrl+Z" });
  const redo = button("Redo", () => draft.redo(), { title: "Ctrl+Shift+Z" });
  const copy = button("Copy", () => { navigator.clipboard?.writeText(`cd ${plan?.folder ?? "."} && ${plan?.command ?? ""}`).then(() => say("Copied.", "good"), complain); });
  const start = button("Start the run", () => void begin(), { class: "primary" });
  async function begin(): Promise<void> {
    start.disabled = true;
    try {
      const { out: folder } = await post<{ out: string }>("jobs", { film: info.name, ...draft.choice });
      started(folder);
    } catch (error) {
      complain(error);
    } finally {
      start.disabled = false;
    }
  }

  async function replan(): Promise<void> {
    const turn = (turns.plan += 1);
    try {
      const answer = await post<Plan>("plan", { film: info.name, ...draft.choice });
      if (turn !== turns.plan) return;
      plan = answer;
      problems.replaceChildren(...plan.problems.map((text) => h("p", { class: "note warning" }, text)), ...plan.notes.map((text) => h("p", { class: "note info" }, text)));
      command.textContent = plan.command;
      const [high, wide] = plan.extent.map((value) => formatValue(value, 4));
      expected.textContent = `${plan.frames} frames, field of ${wide} × ${high} ${plan.unit}; about ${saySeconds(plan.seconds)} on two cores, ${sayBytes(plan.memory)} of memory (${sayBytes(plan.free)} free).`;
      stage.setBox(boxOf(draft.get("recording.crop") ?? plan.automatic["recording.crop"], size));
      element.dataset["planned"] = String(Number(element.dataset["planned"] ?? 0) + 1);
    } catch (error) {
      if (turn !== turns.plan) return;
      problems.replaceChildren(h("p", { class: "note error" }, error instanceof Error ? error.message : String(error)));
    }
    refresh();
  }
  function refresh(): void {
    for (const one of refreshers) one();
    if (document.activeElement !== out) out.value = draft.choice.out;
    preset.value = draft.choice.preset;
    figures.checked = draft.choice.figures;
    undo.disabled = !draft.canUndo;
    redo.disabled = !draft.canRedo;
  }
  draft.onChange(() => {
    refresh();
    stage.setBox(boxOf(draft.get("recording.crop"), size));
    window.clearTimeout(timer);
    timer = window.setTimeout(() => { void replan(); void look(); }, 150);
    window.clearTimeout(later);
    if (live.checked) later = window.setTimeout(() => void examine(), 1200);
  });

  const here = (key: string, offset: number): HTMLElement => button(key === "recording.start" ? "Start here" : "Stop here", () => draft.set(key, stage.frame + offset));
  const kind = `${info.kind}, ${info.width} × ${info.height}, ${info.frames ?? "unknown number of"} frames${info.duration === null ? "" : `, ${formatValue(info.duration, 4)} s`}`;
  const controls = h("div", { class: "controls" },
    h("h2", {}, "Region"), h("div", { class: "fields" },
      field("Crop x0, y0, width, height", "recording.crop", (text) => { const box = numbers(4)(text); return Array.isArray(box) ? fit(box as Box, size) : undefined; }),
      field("Border cut off, pixels", "recording.border", (text) => (text === "auto" ? text : Number(text))),
      field("Grid rows, columns", "recording.grid", numbers(2)),
      field("Mask: a picture, or such as u>0.3@0", "recording.mask", String)),
    h("h2", {}, "Length"), h("p", { class: "fine" }, "Draw a line over a ruler, then type its length; or type the size of a camera pixel."),
    h("div", { class: "fields" }, h("div", { class: "field" }, h("span", {}, "The line is"), h("span", { class: "pair" }, length, unit)), field("Size of a camera pixel", "recording.scale", String)),
    h("h2", {}, "Time"), h("div", { class: "fields" },
      field("First frame", "recording.start", Number), field("First frame no longer used", "recording.stop", Number), field("Every n-th frame", "recording.every", Number), field("Frames per second", "recording.fps", Number)),
    h("div", { class: "tools" }, here("recording.start", 0), here("recording.stop", 1)),
    h("h2", {}, "Observable"), h("div", { class: "fields" }, choose("What u is", "recording.observable", ["dark", "bright", "absorbance"]), ...(info.channels.length ? [choose("Channel", "recording.channel", info.channels.map((one) => one.value), info.channels.map((one) => one.name))] : []), field("Smoothing σ, cells", "recording.smooth", Number)),
    allSettings(draft, refreshers));
  const run = h("div", { class: "run-box" },
    h("h2", {}, "Run"), h("div", { class: "fields" },
      h("div", { class: "field" }, h("span", {}, "Preset"), preset), h("div", { class: "field" }, h("span", {}, "Folder of the run"), out)),
    h("p", {}, figures, h("label", { for: figures.id }, " figures for a paper, too (PNG and PDF; takes longer)")),
    expected, problems, h("p", { class: "fine" }, "The same on the command line, in the folder that is open:"), h("div", { class: "command-box" }, command, copy),
    h("div", { class: "tools" }, start, undo, redo));
  element.replaceChildren(
    h("h1", {}, info.name), h("p", { class: "subtitle" }, kind), ...info.notes.map((text) => h("p", { class: "fine" }, text)),
    h("div", { class: "prepare-layout" },
      h("div", { class: "prepare-film" }, tools, h("div", { class: "tools" }, brush, keep, rub, level, above), stage.element, h("div", { class: "prepare-u" }, seen, range),
        h("h2", {}, "Checks"), h("div", { class: "tools" }, check, h("label", { for: live.id, class: "fine" }, live, " after every change")), checks),
      h("div", { class: "prepare-side" }, run, controls)));
  const keys = (event: KeyboardEvent): void => {
    if (!(event.ctrlKey || event.metaKey) || event.key.toLowerCase() !== "z" || event.target instanceof HTMLInputElement) return;
    if (event.shiftKey) draft.redo();
    else draft.undo();
    event.preventDefault();
  };
  addEventListener("keydown", keys);
  void replan();
  void look();
  if (live.checked) void examine();
  return () => {
    removeEventListener("keydown", keys);
    checking?.abort();
    window.clearTimeout(timer);
    window.clearTimeout(later);
    stage.close();
  };
}

interface CheckResult { warnings: string[]; notes: string[]; frames: number; grid: [number, number]; player: Player; films: string[] }

function boxOf(value: unknown, size: readonly [number, number]): Box {
  return Array.isArray(value) && value.length === 4 ? fit(value as Box, size) : [0, 0, ...size];
}

/** Return the threshold of a mask such as `u>0.3@12`, where it is taken in this frame of the field. */
export function thresholdOf(mask: unknown, frame: number): number {
  const found = /^u>(-?[\d.]+(?:e-?\d+)?)@(\d+)$/.exec(typeof mask === "string" ? mask : "");
  return found && Number(found[2]) === frame ? Number(found[1]) : -Infinity;
}

function without(settings: Record<string, unknown>, keys: string[]): Record<string, unknown> {
  return Object.fromEntries(Object.entries(settings).filter(([key]) => !keys.includes(key)));
}
