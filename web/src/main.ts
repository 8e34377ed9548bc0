import "./style.css";
import "./play/play.css";
import type { Page } from "./model.ts";
import { mountPage } from "./page.ts";

function textOf(id: string): string {
  const element = document.getElementById(id);
  if (element === null) throw new Error(`the page has no #${id}`);
  return element.textContent ?? "";
}

// for scripts: the same loop that the page runs, over any law of `video2pdeLaws`
export { Rollout } from "./play/rollout.ts";

const root = document.getElementById("report");
if (root) {
  const model = JSON.parse(textOf("document")) as Page;
  mountPage(root, model, (payload) => textOf(`film-${payload}`));
}
