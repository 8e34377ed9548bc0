import { h } from "../dom.ts";
import type { Page } from "../model.ts";
import { mountPage } from "../page.ts";
import { address, ask } from "./api.ts";
import { link, type View } from "./shell.ts";

/** The report's page, in the studio: the run's own document, shown by the studio's own script. */
export function resultView(run: string): View {
  const page = h("div", { class: "embedded" }, h("p", {}, "Opening…"));
  const bar = h("nav", { class: "tools", "aria-label": "This run" }, link({ view: "run", run }, "button", "Stages and log"));
  const element = h("section", { class: "view result" }, bar, page);
  void open();
  async function open(): Promise<void> {
    try {
      const answer = await ask("page", { run });
      if (answer.status === 204) throw new Error("This run has no report yet.");
      const model = (await answer.json()) as Page;
      if (model.sections.some(({ items }) => items.some(({ kind }) => kind === "play"))) await loadLaw(run);
      mountPage(page, model, async (film) => (await ask("page/film", { run, film })).text(), { embedded: true });
      element.dataset["ready"] = "true";
    } catch (error) {
      page.replaceChildren(h("h1", {}, run), h("p", { class: "note error" }, error instanceof Error ? error.message : String(error)));
    }
  }
  return { element };
}

/** Fetch the law's script, which the server writes anew from the model file; the one in the report is not trusted. */
async function loadLaw(run: string): Promise<void> {
  try {
    await import(/* @vite-ignore */ new URL(address("law.js", { run }), document.baseURI).href);
  } catch {
    // the page then says that the law is missing
  }
}
