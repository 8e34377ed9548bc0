import { h } from "../dom.ts";

export interface Line { text: string; value: string; colour?: string }
export interface Tooltip {
  element: HTMLElement;
  show(x: number, y: number, title: string, lines: Line[]): void;
  hide(): void;
}

/** A small box beside the pointer; it is announced to screen readers as well. */
export function tooltip(): Tooltip {
  const element = h("div", { class: "tooltip", role: "status", hidden: true });
  return {
    element,
    show(x, y, title, lines) {
      element.replaceChildren(h("div", { class: "tip-title" }, title));
      for (const { text, value, colour } of lines) {
        const dot = h("span", { class: "dot" });
        if (colour) dot.style.background = colour;
        element.append(h("div", { class: "tip-line" }, colour ? dot : null, h("span", {}, text), h("b", {}, value)));
      }
      element.hidden = false;
      const room = (element.parentElement?.clientWidth ?? 0) - element.offsetWidth;
      const left = x + 14 > room ? x - element.offsetWidth - 14 : x + 14;
      element.style.left = `${Math.max(0, Math.min(Math.max(0, room), left))}px`;
      element.style.top = `${Math.max(0, y - element.offsetHeight / 2)}px`;
    },
    hide() {
      element.hidden = true;
    },
  };
}
