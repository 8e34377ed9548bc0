import type { Tree } from "./model.ts";

const MATHML = "http://www.w3.org/1998/Math/MathML";
const TAG = /^(math|m[a-z]{1,10})$/;
const ATTRIBUTE =
  /^(stretchy|fence|form|width|linethickness|accent|accentunder|minsize|maxsize|lspace|rspace|displaystyle|scriptlevel|mathvariant|columnalign|rowspacing|columnspacing)$/;

/** Build a formula from its tree; `plain` is what a screen reader says, and what stands in for a missing tree. */
export function formula(tree: Tree | null, plain: string, display = false): Element {
  if (tree === null) {
    const span = document.createElement("span");
    span.className = "plain-math";
    span.textContent = plain;
    return span;
  }
  const math = build(tree);
  math.setAttribute("display", display ? "block" : "inline");
  math.setAttribute("aria-label", plain);
  return math;
}

function build([tag, attributes, content]: Tree): Element {
  if (!TAG.test(tag)) throw new Error(`not a MathML element: ${tag}`);
  const element = document.createElementNS(MATHML, tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (ATTRIBUTE.test(name)) element.setAttribute(name, value);
  }
  if (typeof content === "string") element.textContent = content;
  else element.append(...content.map(build));
  return element;
}
