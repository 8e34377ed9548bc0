import { h } from "./dom.ts";
import { head } from "./head.ts";
import { renderItem } from "./items.ts";
import type { Page, Section } from "./model.ts";
import type { Load } from "./player/player.ts";
import { inline, says } from "./text.ts";
import { themeButton } from "./theme.ts";

/** Build the whole report inside `root`; embedded in another page it leaves colours and the page's frame to that. */
export function mountPage(root: HTMLElement, model: Page, load: Load, { embedded = false } = {}): void {
  openForPrint(); // before any chart listens to the same event, so that folds open first
  const sections = model.sections.map((section) => renderSection(section, load));
  const links = model.sections.map(({ id, title }) => h("li", {}, h("a", { href: `#${id}` }, title)));
  const top = h("li", {}, h("a", { href: "#top" }, "Result"));
  const list = h("details", { class: "contents-box", open: true }, h("summary", {}, "Contents"), h("ol", {}, top, ...links));
  const contents = h("nav", { class: "contents", "aria-label": "Contents" }, list);
  const title = h("div", {}, h("h1", {}, model.title), model.subtitle !== "" && h("p", { class: "subtitle" }, model.subtitle));
  const header = h(embedded ? "div" : "header", { class: "masthead" }, title, embedded ? null : themeButton());
  const first = h("section", { id: "top", class: "top" }, ...head(model.head, load));
  const footer = h("footer", {}, ...inline(model.footer));
  const inside = [first, ...sections, says(model.footer) && footer];
  const main = embedded ? h("div", { class: "report-main" }, ...inside) : h("main", { id: "main" }, ...inside);
  const skip = embedded ? [] : [h("a", { class: "skip", href: "#main" }, "Skip to the report")];
  root.replaceChildren(...skip, header, h("div", { class: "layout" }, contents, main));
  foldContents(list);
  followScroll([first, ...sections], contents);
  openTargets();
}

function renderSection(model: Section, load: Load): HTMLElement {
  const items = model.items.map((item) => renderItem(item, load));
  const sentence = h("p", { class: "sentence" }, ...inline(model.sentence));
  const heading = h("h2", {}, model.title);
  if (!model.collapsed) return h("section", { id: model.id }, heading, sentence, ...items);
  const fold = h("details", { class: "fold" }, h("summary", {}, "Show the figures and tables"), ...items);
  return h("section", { id: model.id }, heading, sentence, fold);
}

/** On a narrow screen the contents start closed. */
function foldContents(list: HTMLDetailsElement): void {
  const wide = matchMedia("(min-width: 70rem)");
  const apply = (): void => { list.open = wide.matches; };
  wide.addEventListener("change", apply);
  apply();
}

function followScroll(sections: HTMLElement[], contents: HTMLElement): void {
  const visible = new Set<string>();
  const observer = new IntersectionObserver((entries) => {
    for (const { target, isIntersecting } of entries) {
      if (isIntersecting) visible.add(target.id);
      else visible.delete(target.id);
    }
    const current = sections.find(({ id }) => visible.has(id))?.id;
    for (const link of contents.querySelectorAll("a")) {
      if (link.hash === `#${current}`) link.setAttribute("aria-current", "true");
      else link.removeAttribute("aria-current");
    }
  }, { rootMargin: "-10% 0px -70% 0px" });
  sections.forEach((section) => observer.observe(section));
}

/** A link to a folded section opens it. */
function openTargets(): void {
  const open = (): void => {
    const target = location.hash.length > 1 ? document.getElementById(location.hash.slice(1)) : null;
    const fold = target?.querySelector<HTMLDetailsElement>(":scope > details.fold");
    if (fold) fold.open = true;
  };
  addEventListener("hashchange", open);
  open();
}

/** Paper has no folds: open them for printing and close them again. */
function openForPrint(): void {
  let closed: HTMLDetailsElement[] = [];
  addEventListener("beforeprint", () => {
    closed = [...document.querySelectorAll<HTMLDetailsElement>("main details:not([open])")];
    for (const fold of closed) fold.open = true;
  });
  addEventListener("afterprint", () => {
    for (const fold of closed) fold.open = false;
  });
}
