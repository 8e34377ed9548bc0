import { pairs } from "../chart/pairs.ts";
import { chart } from "../chart/xy.ts";
import { formatValue } from "../chart/format.ts";
import { h } from "../dom.ts";
import { renderItem } from "../items.ts";
import type { Axis, Chart, Page, Pairs } from "../model.ts";
import { player } from "../player/player.ts";
import { inline } from "../text.ts";
import { ask, post } from "./api.ts";
import type { Job, RunState, Stage } from "./model.ts";
import { button, complain, link, saySeconds, type View } from "./shell.ts";

const SIGNS: Record<Stage["state"], string> = { waiting: "○", running: "◐", done: "●", cached: "●" };
const STATES: Record<Job["state"], string> = {
  waiting: "waiting", running: "running", stopping: "stopping…", done: "done", stopped: "stopped", refused: "refused", failed: "failed",
};

/** One run as it goes on: stages, figures and charts as they come, the log. */
export function runView(run: string, jobs: () => Job[]): View & { onRun(state: RunState): void; onLive(): void; onJobs(): void } {
  const stages = h("ol", { class: "stages", "aria-label": "Stages" });
  const headline = h("p", { class: "sentence", role: "status" }, "Looking…");
  const actions = h("div", { class: "tools" });
  const figures = h("div", { class: "figures" });
  const growing = h("details", { class: "live-section", open: true, hidden: true }, h("summary", {}, "Coefficients and replicates, as they come"), figures);
  const sections = h("div", { class: "live", "aria-live": "off" });
  const log = h("pre", { class: "log", tabindex: 0, role: "log", "aria-label": "Log" });
  let state: RunState | null = null;
  let asked = "";
  let drawn = "";

  function onRun(next: RunState): void {
    state = next;
    stages.replaceChildren(...next.stages.map(stageLine));
    const busy = next.stages.find((stage) => stage.state === "running");
    const done = next.stages.filter((stage) => stage.state === "done" || stage.state === "cached").length;
    headline.textContent = next.finished ? "This run is finished." : next.working ? `${done} of ${next.stages.length} stages are done${busy ? `; now: ${busy.title}` : ""}.` : waitingText();
    const near = log.scrollHeight - log.scrollTop - log.clientHeight < 40;
    log.textContent = next.lines.join("\n");
    if (near) log.scrollTop = log.scrollHeight;
    grow(next);
    element.dataset["done"] = String(done);
    element.dataset["finished"] = String(next.finished);
    onJobs();
    if (next.finished && asked !== "finished") { asked = "finished"; void show(); }
  }

  /** Draw what grows while a stage goes on; what has not changed stays as its reader left it. */
  function grow(next: RunState): void {
    const now = JSON.stringify([next.figures, next.clouds]);
    if (now !== drawn) {
      drawn = now;
      const charts = [...cloudCharts(next), ...figureCharts(next)];
      figures.replaceChildren(...charts);
      growing.hidden = charts.length === 0;
    }
    if (next.finished && asked !== "finished") growing.open = false; // the report below has it all
  }

  function waitingText(): string {
    const job = mine();
    if (job?.state === "waiting") return "This run waits for the one before it.";
    if (job?.message) return `This run is ${STATES[job.state]}: ${job.message}`;
    return state?.stopped ? `This run stopped: ${state.stopped}` : "This run does not work at the moment; what it has finished is kept.";
  }

  function mine(): Job | undefined {
    return [...jobs()].reverse().find((job) => job.out === run);
  }

  function onJobs(): void {
    const job = mine();
    const act = (name: string) => (): void => { if (job) post(`jobs/${job.id}/${name}`, {}).catch(complain); };
    const made: HTMLElement[] = [];
    if (job && !state?.finished && (job.state === "running" || job.state === "waiting")) made.push(button("Stop", act("stop")));
    if (job && ["stopped", "failed", "refused"].includes(job.state)) made.push(button("Continue", act("continue"), { class: "primary" }));
    if (state?.finished) made.push(link({ view: "result", run }, "button primary", "Open the result"));
    actions.replaceChildren(...made);
    if (state && !state.finished && !state.working) headline.textContent = waitingText();
    element.dataset["job"] = job?.state ?? "";
  }

  /** Draw what the run has found so far with the report's own parts. */
  async function show(): Promise<void> {
    try {
      const answer = await ask("page", { run });
      if (answer.status === 204) return; // nothing is drawn yet; the next stage brings something
      const page = (await answer.json()) as Page;
      const load = async (film: number): Promise<string> => (await ask("page/film", { run, film })).text();
      const shown = page.sections.filter(({ collapsed, id }) => !collapsed && id !== "play");
      sections.replaceChildren(
        ...(page.head.player ? [player(page.head.player, load)] : []),
        ...shown.map((section) => h("details", { class: "live-section", "data-section": section.id, open: true },
          h("summary", {}, section.title), h("p", {}, ...inline(section.sentence)), ...section.items.map((item) => renderItem(item, load)))));
    } catch (error) {
      complain(error);
    }
  }

  const element = h("section", { class: "view run", "data-run": run },
    h("h1", {}, run), headline, actions,
    h("div", { class: "run-layout" }, h("div", { class: "run-side" }, h("h2", {}, "Stages"), stages, h("details", { open: true }, h("summary", {}, "Log"), log)), h("div", { class: "run-main" }, growing, sections)));
  void show();
  return { element, onRun, onLive: () => void show(), onJobs };
}

function stageLine(stage: Stage): HTMLElement {
  const { state, seconds, done, total, left, note } = stage;
  const words = { waiting: "waiting", running: "running", done: "done", cached: "done before" }[state];
  const time = seconds === null ? (left === null ? "" : `about ${saySeconds(left)} left`) : saySeconds(seconds);
  const bar = state === "running" && total ? h("progress", { max: total, value: done ?? 0, "aria-label": stage.title }) : null;
  return h("li", { class: `stage ${state}`, "data-stage": stage.name },
    h("span", { class: "sign", "aria-hidden": "true" }, SIGNS[state]), h("span", { class: "stage-title" }, stage.title),
    h("span", { class: "fine" }, time === "" ? words : `${words}, ${time}`), bar, note !== "" && state === "running" && h("span", { class: "fine block" }, note));
}

/** Coefficients of the inverse PINN over its steps, as far as the log tells. */
function figureCharts(state: RunState): HTMLElement[] {
  const axis = (label: string): Axis => ({ label, unit: "", log: false, categories: [], limits: null, downwards: false });
  return Object.entries(state.figures).filter(([, path]) => path.length > 1).map(([name, path]) => {
    const model: Chart = {
      kind: "chart", title: `Inverse PINN, ${name}`, x: axis("step"), y: axis(name), alt: `${name} over the steps, now ${formatValue(path[path.length - 1]?.[1] ?? null)}`,
      series: [{ name, x: path.map(([step]) => step), y: path.map(([, value]) => value), style: "line", low: null, high: null, band: false, colour: "blue", dashed: false, markers: true, labels: [] }],
      caption: "", spans: [], markers: [], ellipses: [], equal_aspect: false, stacked: false,
    };
    return chart(model, { aspect: 0.3 });
  });
}

/** The replicates of the bootstrap, law by law, as far as the log tells; the newest law comes first. */
function cloudCharts(state: RunState): HTMLElement[] {
  return state.clouds.filter(({ draws }) => draws.length > 1).reverse().map(({ library, terms, draws }) => {
    const quantities = terms.map((name, index) => ({ name, unit: "", value: middleOf(draws.map((draw) => draw[index] ?? 0)), low: null, high: null, truth: null }));
    const model: Pairs = {
      kind: "pairs", title: `Bootstrap of ${library}: ${draws.length} replicates so far`, quantities, samples: draws, alt: `Coefficients of the replicates of ${library}`,
      centre: null, covariance: null, radius: 0, caption: "", colour: "blue",
    };
    const element = pairs(model);
    element.dataset["cloud"] = library;
    element.dataset["draws"] = String(draws.length);
    return element;
  });
}

/** Return the median. */
export function middleOf(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  const half = Math.floor(sorted.length / 2);
  return sorted.length % 2 === 1 ? (sorted[half] as number) : ((sorted[half - 1] ?? NaN) + (sorted[half] ?? NaN)) / 2;
}

/** The queue: what waits, runs and has ended. */
export function queueView(jobs: () => Job[]): View & { onJobs(): void } {
  const list = h("ul", { class: "queue", "aria-label": "Runs" });
  const empty = h("p", { role: "status" });
  function onJobs(): void {
    const all = [...jobs()].sort((a, b) => b.created - a.created);
    empty.textContent = all.length === 0 ? "No run has been started here. Open a recording in the library and start one." : "";
    list.replaceChildren(...all.map((job) => {
      const act = (name: string) => (): void => { post(`jobs/${job.id}/${name}`, {}).catch(complain); };
      const open = job.state === "waiting" || job.state === "running" || job.state === "stopping";
      return h("li", { class: "job", "data-state": job.state },
        h("div", {}, link({ view: "run", run: job.out }, "", job.out), h("span", { class: `badge ${job.state === "done" ? "good" : job.state === "failed" || job.state === "refused" ? "error" : "info"}` }, STATES[job.state])),
        job.message !== "" && h("p", { class: "fine" }, job.message), h("p", { class: "fine" }, h("code", {}, job.command)),
        h("div", { class: "tools" }, open ? button("Stop", act("stop"), { "aria-label": `Stop ${job.out}` }) : null,
          !open && job.state !== "done" ? button("Continue", act("continue"), { "aria-label": `Continue ${job.out}` }) : null,
          !open ? button("Remove from the list", act("remove"), { "aria-label": `Remove ${job.out} from the list` }) : null));
    }));
  }
  onJobs();
  return { element: h("section", { class: "view queue-view" }, h("h1", {}, "Runs"), empty, list), onJobs };
}
