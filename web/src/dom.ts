/** Build elements without ever parsing markup: text stays text. */

export type Child = Node | string | null | undefined | false;
type Attributes = Record<string, string | number | boolean | null | undefined>;

const SVG = "http://www.w3.org/2000/svg";

function fill<T extends Element>(element: T, attributes: Attributes, children: Child[]): T {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    element.setAttribute(name, value === true ? "" : String(value));
  }
  for (const child of children) {
    if (child !== null && child !== undefined && child !== false) element.append(child);
  }
  return element;
}

export function h<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  attributes: Attributes = {},
  ...children: Child[]
): HTMLElementTagNameMap[K] {
  return fill(document.createElement(tag), attributes, children);
}

export function s<K extends keyof SVGElementTagNameMap>(
  tag: K,
  attributes: Attributes = {},
  ...children: Child[]
): SVGElementTagNameMap[K] {
  return fill(document.createElementNS(SVG, tag), attributes, children);
}

let counter = 0;

/** Return an id that no other element of the page has. */
export function uniqueId(prefix: string): string {
  counter += 1;
  return `${prefix}-${counter}`;
}

/** Call `render` with the element's width, now and whenever it changes. */
export function onWidth(element: HTMLElement, render: (width: number) => void): void {
  let last = 0;
  const update = (width: number): void => {
    if (width > 0 && width !== last) {
      last = width;
      render(width);
    }
  };
  new ResizeObserver((entries) => update(Math.floor(entries[entries.length - 1]?.contentRect.width ?? 0))).observe(element);
  // What was folded away until now has no width yet, and a printer does not wait for observers.
  addEventListener("beforeprint", () => { if (last === 0) update(element.clientWidth); });
}
