import "../style.css";
import "../play/play.css";
import "./studio.css";
import { h } from "../dom.ts";
import { themeButton } from "../theme.ts";
import { address } from "./api.ts";
import { compareView } from "./compare.ts";
import { libraryView } from "./library.ts";
import type { Job, RunState } from "./model.ts";
import { prepareView } from "./prepare.ts";
import { resultView } from "./result.ts";
import { queueView, runView } from "./run.ts";
import { hrefOf, link, messageBox, readPlace, say, type Place, type View } from "./shell.ts";

interface Watching extends View { onRun?(state: RunState): void; onLive?(): void; onJobs?(): void }

let jobs: Job[] = [];
let view: Watching | null = null;
let stream: EventSource | null = null;
let lost = false;
const main = h("main", { id: "main", tabindex: "-1" });
const queue = link({ view: "queue" }, "", "Runs");
const navigation = h("nav", { class: "studio-nav", "aria-label": "Studio" }, link({ view: "library" }, "", "Library"), queue);

function go(place: Place): void {
  history.pushState(null, "", hrefOf(place));
  show();
}

function make(place: Place): Watching {
  if (place.view === "prepare" && place.film) return prepareView(place.film, (run) => go({ view: "run", run }));
  if (place.view === "run" && place.run) return runView(place.run, () => jobs);
  if (place.view === "result" && place.run) return resultView(place.run);
  if (place.view === "compare" && place.runs) return compareView(place.runs);
  if (place.view === "queue") return queueView(() => jobs);
  return libraryView((runs) => go({ view: "compare", runs }));
}

function show(): void {
  view?.leave?.();
  const place = readPlace(location.search);
  view = make(place);
  main.replaceChildren(view.element);
  document.title = `${[place.run ?? place.film, place.view].filter(Boolean).join(" · ")} · video2pde studio`;
  for (const one of navigation.querySelectorAll("a")) {
    if (readPlace(new URL(one.href).search).view === place.view) one.setAttribute("aria-current", "page");
    else one.removeAttribute("aria-current");
  }
  listen(place.view === "run" ? place.run : undefined);
  if (location.hash === "") scrollTo(0, 0);
}

/** One event stream for the page: everybody's jobs, and the run that is shown. */
function listen(run: string | undefined): void {
  stream?.close();
  stream = new EventSource(address("events", { run }));
  stream.addEventListener("jobs", (event) => {
    jobs = JSON.parse((event as MessageEvent<string>).data) as Job[];
    const open = jobs.filter(({ state }) => state === "running" || state === "waiting" || state === "stopping").length;
    queue.textContent = open > 0 ? `Runs (${open})` : "Runs";
    view?.onJobs?.();
  });
  stream.addEventListener("run", (event) => view?.onRun?.(JSON.parse((event as MessageEvent<string>).data) as RunState));
  stream.addEventListener("library", () => view?.onLibrary?.());
  stream.addEventListener("live", () => view?.onLive?.());
  stream.addEventListener("open", () => { if (lost) say("The studio answers again.", "good"); lost = false; });
  stream.addEventListener("error", () => {
    if (!lost) say("The studio does not answer; runs go on without it. The page tries again by itself.", "warning");
    lost = true;
  });
}

/** Follow links within the studio without loading it anew. */
function follow(event: MouseEvent): void {
  const target = (event.target as Element).closest<HTMLAnchorElement>("a[data-studio]");
  if (!target || event.defaultPrevented || event.button !== 0 || event.ctrlKey || event.metaKey || event.shiftKey) return;
  event.preventDefault();
  history.pushState(null, "", target.href);
  show();
  main.focus({ preventScroll: true });
}

const root = document.getElementById("studio");
if (root) {
  root.replaceChildren(
    h("a", { class: "skip", href: "#main" }, "Skip to the content"),
    h("header", { class: "studio-head" }, h("span", { class: "brand" }, "video2pde studio"), navigation, themeButton()), messageBox(), main);
  addEventListener("popstate", show);
  addEventListener("click", follow);
  show();
}
