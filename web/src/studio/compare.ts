import { formatValue } from "../chart/format.ts";
import { linearTicks, makeScale, widen, type Interval as Range } from "../chart/scale.ts";
import { h, onWidth, s } from "../dom.ts";
import type { Page, Player, Table } from "../model.ts";
import { decompress, fromBase64, undelta } from "../player/decode.ts";
import { mountPage } from "../page.ts";
import { Panel } from "../player/panel.ts";
import { table } from "../table.ts";
import { ask, get } from "./api.ts";
import type { ComparedRun, Comparison, Interval } from "./model.ts";
import { link, VERDICTS, type View } from "./shell.ts";

const ERRORS: [string, string][] = [["rrmse", "held-out error"], ["one_step_rrmse", "one-step error"], ["front_rmse", "front error"], ["centroid_rmse", "centroid error"]];

const MOST = 8;

/** Runs and studies side by side: coefficients as a forest plot, errors, differing settings, films in step. */
export function compareView(names: string[]): View {
  const element = h("section", { class: "view compare" }, h("h1", {}, "Compare"), h("p", {}, "Reading…"));
  const open = async (): Promise<void> => {
    try {
      const found = await get<Comparison>("compare", { run: names });
      const [first] = found.runs;
      if (found.runs.length === 1 && first?.kind === "study") {
        await openStudy(element, first);
        return;
      }
      element.replaceChildren(
        h("h1", {}, "Compare"),
        h("ul", { class: "compared" }, ...found.runs.map((run) => h("li", {}, link(run.kind === "study" ? { view: "compare", runs: [run.name] } : { view: "result", run: run.name }, "", run.name), `${run.kind === "study" ? " (study, the shared law)" : ""} ${VERDICTS[run.verdict]?.[0] ?? run.verdict}${run.equation === "" ? "" : `: ${run.equation}`}`))),
        h("h2", {}, "Coefficients"), ...[units(found)].filter((part) => part !== null), ...forests(found.runs),
        h("h2", {}, "Errors"), errors(found.runs),
        h("h2", {}, "Settings that differ"), differences(found),
        h("h2", {}, "Films in step"), films(found.runs));
      element.dataset["ready"] = "true";
    } catch (error) {
      element.replaceChildren(h("h1", {}, "Compare"), h("p", { class: "note error" }, error instanceof Error ? error.message : String(error)));
    }
  };
  void open();
  return { element };
}

/** A study's own page: the shared law, forest plots, whether it is one law, films left out, tables, films in step. */
async function openStudy(element: HTMLElement, study: ComparedRun): Promise<void> {
  const runs = (study.films ?? []).map((film) => `${study.name}/films/${film}`);
  const bar = h("nav", { class: "tools", "aria-label": "This study" }, runs.length > 0 && link({ view: "compare", runs: runs.slice(0, MOST) }, "button", runs.length > MOST ? `Compare its first ${MOST} films as runs` : "Compare its films as runs"));
  const page = h("div", { class: "embedded" });
  element.replaceChildren(bar, page);
  const answer = study.page ? await ask("page", { run: study.name }) : null;
  if (answer === null || answer.status === 204) {
    page.append(h("h1", {}, study.name), h("p", {}, `This study is ${study.running ? "under way" : "not finished"}: ${runs.length} of its films have been begun. Its command goes on from there.`));
  } else {
    const model = (await answer.json()) as Page;
    mountPage(page, model, async (film) => (await ask("page/film", { run: study.name, film })).text(), { embedded: true });
  }
  element.dataset["ready"] = "true";
}

function forests(runs: ComparedRun[]): HTMLElement[] {
  const terms = [...new Set(runs.flatMap((run) => Object.keys(run.terms ?? {})))];
  if (terms.length === 0) return [h("p", {}, "None of these runs has found a law.")];
  return terms.map((term) => forest(term, runs));
}

/** Image units are shares of the crop: with another crop the same number means another length. */
function units({ runs, differences: rows }: Comparison): HTMLElement | null {
  const relative = runs.some(({ length }) => length === "image units") && rows.some(({ key }) => key === "recording.crop" || key === "recording.extent");
  return relative ? h("p", { class: "note warning" }, "The runs have different crops and lengths in image units, which depend on the crop: give a scale to compare coefficients.") : null;
}

/** One coefficient in all runs: a line for the interval, a square for the estimate. */
function forest(term: string, runs: ComparedRun[]): HTMLElement {
  const units = new Set(runs.flatMap((run) => (run.terms?.[term] ? [run.units[term] ?? ""] : [])));
  const rows = runs.map((run) => ({ name: run.name, estimate: run.terms?.[term] ?? null }));
  const said = rows.map(({ name, estimate }) => `${name}: ${estimate ? sayEstimate(estimate) : "not in the law"}`).join("; ");
  const svg = s("svg", { role: "img", "aria-label": `Coefficient ${term}. ${said}` });
  const box = h("div", { class: "plot forest-plot" }, svg);
  onWidth(box, (width) => drawForest(svg, rows, width));
  const mixed = units.size > 1 ? h("p", { class: "note warning" }, `The units differ (${[...units].join(", ")}): these numbers cannot be compared.`) : null;
  return h("figure", { class: "chart", "data-term": term }, h("div", { class: "chart-head" }, h("h3", {}, `${term}${units.size === 1 ? `, ${[...units][0]}` : ""}`)), mixed, box);
}

function sayEstimate({ value, low, high }: Interval): string {
  return low === null || high === null ? formatValue(value) : `${formatValue(value)}, interval ${formatValue(low)} to ${formatValue(high)}`;
}

function drawForest(svg: SVGSVGElement, rows: { name: string; estimate: Interval | null }[], width: number): void {
  const ends = rows.flatMap(({ estimate }) => (estimate ? [estimate.value, estimate.low ?? estimate.value, estimate.high ?? estimate.value] : []));
  const domain: Range = widen([Math.min(...ends), Math.max(...ends)], 0.12, false);
  // where there is little room, name and numbers stand above their interval
  const narrow = width < 620;
  const [left, right, line] = narrow ? [12, 12, 46] : [180, 190, 26];
  const scale = makeScale(domain, [left, width - right]);
  const height = line * rows.length + 34;
  svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
  const parts: SVGElement[] = linearTicks(...domain, 5).flatMap((tick) => [
    s("line", { class: "grid-line", x1: scale.at(tick), x2: scale.at(tick), y1: 4, y2: height - 26 }),
    s("text", { x: scale.at(tick), y: height - 10, "text-anchor": "middle" }, formatValue(tick, 3)),
  ]);
  rows.forEach(({ name, estimate }, index) => {
    const words = (narrow ? 18 : 24) + line * index;
    const y = narrow ? words + 14 : words - 4;
    parts.push(s("text", { x: 4, y: words }, name.length > 24 ? `…${name.slice(-23)}` : name));
    const said = { x: width - 4, y: words, "text-anchor": "end" };
    if (!estimate) { parts.push(s("text", { ...said, class: "soft" }, "not in the law")); return; }
    const { value, low, high } = estimate;
    if (low !== null && high !== null) parts.push(s("line", { class: "interval-line", x1: scale.at(low), x2: scale.at(high), y1: y, y2: y }));
    parts.push(s("rect", { class: "estimate", x: scale.at(value) - 5, y: y - 5, width: 10, height: 10 }));
    parts.push(s("text", said, low === null || high === null ? formatValue(value, 4) : `${formatValue(value, 4)} [${formatValue(low, 4)}, ${formatValue(high, 4)}]`));
  });
  svg.replaceChildren(...parts);
}

function errors(runs: ComparedRun[]): HTMLElement {
  const model: Table = {
    kind: "table", caption: "On the held-out frames; less is better.",
    columns: [{ label: "run", unit: "", align: "left" }, { label: "verdict", unit: "", align: "left" }, ...ERRORS.map(([, label]) => ({ label, unit: label.endsWith("error") && !/front|centroid/.test(label) ? "%" : "", align: "right" as const })), { label: "nothing changes", unit: "%", align: "right" as const }],
    rows: runs.map((run) => [
      { text: run.name, sort: run.name }, { text: VERDICTS[run.verdict]?.[0] ?? run.verdict, sort: run.verdict },
      ...ERRORS.map(([key]) => { const value = run.errors[key] ?? null; return { text: formatValue(value === null ? null : key.includes("rrmse") ? 100 * value : value, 3), sort: value }; }),
      { text: formatValue(run.persistence === null ? null : 100 * run.persistence, 3), sort: run.persistence },
    ]),
  };
  return table(model);
}

function differences({ runs, differences: rows }: Comparison): HTMLElement {
  if (rows.length === 0) return h("p", {}, "All settings are the same.");
  const model: Table = {
    kind: "table", caption: "", columns: [{ label: "setting", unit: "", align: "left" }, ...runs.map(({ name }) => ({ label: name, unit: "", align: "left" as const }))],
    rows: rows.map(({ key, values }) => [{ text: key, sort: key, face: "code" as const }, ...values.map((value) => ({ text: value, sort: value }))]),
  };
  return table(model);
}

/** The runs' films under one time line. */
function films(runs: ComparedRun[]): HTMLElement {
  const row = h("div", { class: "panels" });
  const slider = h("input", { type: "range", min: 0, max: 1000, value: 500, "aria-label": "Time, in all films" });
  const clock = h("output", { class: "clock" });
  const shown: { panel: Panel; model: Player }[] = [];
  const seek = (): void => {
    const longest = Math.max(0, ...shown.map(({ model }) => model.times[model.times.length - 1] ?? 0));
    const time = (Number(slider.value) / 1000) * longest;
    for (const { panel, model } of shown) panel.paint(nearest(model.times, time));
    clock.textContent = `t = ${formatValue(time, 3)} s`;
  };
  slider.addEventListener("input", seek);
  const open = async (run: ComparedRun): Promise<void> => {
    const { head } = await get<Page>("page", { run: run.name });
    const model = head.player;
    if (!model) return;
    const { observed } = model;
    const data = await (await ask("page/film", { run: run.name, film: observed.payload })).text();
    const levels = await decompress(fromBase64(data), observed.frames.length * observed.nx * observed.ny);
    const panel = new Panel(run.name, run.name, observed, model.width / model.height, `Film of ${run.name}`, null);
    panel.setLevels(undelta(levels, observed.nx * observed.ny));
    panel.setColours("viridis", observed.low, observed.high);
    shown.push({ panel, model });
    row.append(panel.element);
    row.style.setProperty("--panels", String(Math.max(2, shown.length)));
    seek();
  };
  void (async () => { for (const run of runs) await open(run).catch(() => undefined); })();
  return h("div", { class: "player" }, row, h("div", { class: "transport" }, h("div", { class: "timeline" }, slider), clock));
}

/** Return the frame that is nearest to a time. */
export function nearest(times: readonly number[], time: number): number {
  let best = 0;
  times.forEach((value, index) => { if (Math.abs(value - time) < Math.abs((times[best] as number) - time)) best = index; });
  return best;
}
