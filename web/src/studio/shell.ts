/** What all views share: places, messages, and small parts. */

import { h, type Child } from "../dom.ts";

export interface Place { view: string; run?: string; film?: string; runs?: string[] }
export interface View { element: HTMLElement; leave?(): void; onLibrary?(): void }

/** Read the place from the address, which survives reloading and can be shared between tabs. */
export function readPlace(search: string): Place {
  const words = new URLSearchParams(search);
  const place: Place = { view: words.get("view") ?? "library" };
  const [run, film, runs] = [words.get("run"), words.get("film"), words.getAll("runs")];
  if (run) place.run = run;
  if (film) place.film = film;
  if (runs.length > 0) place.runs = runs;
  return place;
}

export function hrefOf({ view, run, film, runs }: Place): string {
  const words = new URLSearchParams({ view });
  if (run) words.set("run", run);
  if (film) words.set("film", film);
  for (const one of runs ?? []) words.append("runs", one);
  return `./?${words}`;
}

/** A link within the studio: a plain address, followed without loading the page anew. */
export function link(place: Place, className: string, ...children: Child[]): HTMLAnchorElement {
  return h("a", { href: hrefOf(place), class: className || null, "data-studio": true }, ...children);
}

export function button(label: string, act: () => void, attributes: Record<string, string | boolean | null> = {}): HTMLButtonElement {
  const made = h("button", { type: "button", ...attributes }, label);
  made.addEventListener("click", act);
  return made;
}

let messages: HTMLElement | null = null;

/** The place where the studio says what went wrong, or well. */
export function messageBox(): HTMLElement {
  messages ??= h("div", { class: "messages", role: "status", "aria-live": "polite" });
  return messages;
}

export function say(text: string, level: "info" | "good" | "warning" | "error" = "info"): void {
  const close = h("button", { type: "button", class: "close", "aria-label": "Close this message" }, "×");
  const box = h("div", { class: `note ${level}` }, h("div", {}, text), close);
  close.addEventListener("click", () => box.remove());
  const all = messageBox();
  all.append(box);
  while (all.childElementCount > 4) all.firstElementChild?.remove();
  if (level === "info" || level === "good") setTimeout(() => box.remove(), 8000);
}

export function complain(error: unknown): void {
  if (error instanceof DOMException && error.name === "AbortError") return;
  say(error instanceof Error ? error.message : String(error), "error");
}

export function sayBytes(bytes: number | null): string {
  if (bytes === null) return "";
  if (bytes < 1e6) return `${Math.max(1, Math.round(bytes / 1e3))} kB`;
  return bytes < 1e9 ? `${(bytes / 1e6).toPrecision(3)} MB` : `${(bytes / 1e9).toPrecision(3)} GB`;
}

export function saySeconds(seconds: number | null): string {
  if (seconds === null) return "";
  if (seconds < 90) return `${Math.round(seconds)} s`;
  return seconds < 5400 ? `${Math.round(seconds / 60)} min` : `${(seconds / 3600).toFixed(1)} h`;
}

export function sayDate(seconds: number): string {
  return new Date(1000 * seconds).toLocaleString("en-GB", { dateStyle: "medium", timeStyle: "short" });
}

export const VERDICTS: Record<string, [word: string, level: string]> = {
  law: ["law found", "good"],
  approximation: ["approximation", "warning"],
  ambiguous: ["ambiguous", "warning"],
  no_law: ["no law", "warning"],
  unfinished: ["not finished", "info"],
  unreadable: ["cannot be read", "error"],
};
