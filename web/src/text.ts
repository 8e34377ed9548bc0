import { h, type Child } from "./dom.ts";
import { formula } from "./math.ts";
import type { Inline, Text } from "./model.ts";

/** Turn inline text into nodes. */
export function inline(text: Text): Child[] {
  return Array.isArray(text) ? text.map(piece) : [piece(text)];
}

function piece(part: Inline): Child {
  if (typeof part === "string") return part;
  switch (part.kind) {
    case "math": return formula(part.tree, part.plain);
    case "code": return h("code", {}, part.text);
    case "strong": return h("strong", {}, part.text);
    case "link": return h("a", { href: `#${part.section}` }, part.text);
  }
}

/** Tell whether there is anything to say. */
export function says(text: Text): boolean {
  return Array.isArray(text) ? text.length > 0 : text !== "";
}

/** Wrap a figure with its caption, where it has one. */
export function figure(className: string, caption: Text, ...children: Child[]): HTMLElement {
  const said = says(caption) ? h("figcaption", {}, ...inline(caption)) : null;
  return h("figure", { class: className }, ...children, said);
}
