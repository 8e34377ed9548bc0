import { heatmap } from "./chart/heatmap.ts";
import { pairs } from "./chart/pairs.ts";
import { chart } from "./chart/xy.ts";
import { h } from "./dom.ts";
import { formula } from "./math.ts";
import type { Equation, Item, Note, Tiles } from "./model.ts";
import { play } from "./play/play.ts";
import { player, type Load } from "./player/player.ts";
import { table } from "./table.ts";
import { figure, inline } from "./text.ts";

const SIGNS = { info: "ℹ", good: "✓", warning: "⚠", error: "✗" } as const;
const WORDS = { info: "Note", good: "Good", warning: "Warning", error: "Error" } as const;

/** Build the element that shows an item. */
export function renderItem(item: Item, load: Load): HTMLElement {
  switch (item.kind) {
    case "paragraph": return h("p", {}, ...inline(item.text));
    case "note": return note(item);
    case "equation": return equation(item);
    case "table": return table(item);
    case "chart": return chart(item);
    case "heatmap": return heatmap(item);
    case "pairs": return pairs(item);
    case "image": return figure("picture", item.caption, h("img", { src: item.source, alt: item.alt }));
    case "player": return player(item, load);
    case "play": return play(item, load);
    case "tiles": return tiles(item, load);
    case "details": {
      const body = item.items.map((inner) => renderItem(inner, load));
      return h("details", { open: item.open }, h("summary", {}, item.title), ...body);
    }
  }
}

export function note({ text, level, title }: Note): HTMLElement {
  const sign = h("span", { class: "sign", "aria-hidden": "true" }, SIGNS[level]);
  const head = h("strong", {}, title || WORDS[level]);
  return h("div", { class: `note ${level}`, role: "note" }, sign, h("div", {}, head, " ", ...inline(text)));
}

export function equation({ tree, plain, caption }: Equation): HTMLElement {
  return figure("equation", caption, h("div", { class: "equation-box", tabindex: 0 }, formula(tree, plain, true)));
}

function tiles({ items, columns }: Tiles, load: Load): HTMLElement {
  const grid = h("div", { class: "tiles" }, ...items.map((item) => renderItem(item, load)));
  grid.style.setProperty("--columns", String(columns));
  return grid;
}
