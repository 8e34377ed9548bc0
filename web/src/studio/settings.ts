import { h, uniqueId } from "../dom.ts";
import { get } from "./api.ts";
import type { Draft } from "./draft.ts";
import { complain } from "./shell.ts";

interface Listed { sections: Record<string, { title: string; keys: { key: string; value: unknown; meaning: string }[] }> }

/** Every setting there is, folded away: what is left empty stays as the preset has it. */
export function allSettings(draft: Draft, refreshers: (() => void)[]): HTMLElement {
  const body = h("div", { class: "all-settings" });
  const fold = h("details", {}, h("summary", {}, "All settings"), body);
  let shown = "";
  const show = async (): Promise<void> => {
    const { preset } = draft.choice;
    if (!fold.open || shown === preset) return;
    shown = preset;
    try {
      const { sections } = await get<Listed>("settings", { preset });
      body.replaceChildren(...Object.entries(sections).map(([section, { title, keys }]) => h("fieldset", {}, h("legend", {}, title || section), ...keys.map(({ key, value, meaning }) => row(draft, `${section}.${key}`, value, meaning, refreshers)))));
    } catch (error) {
      shown = "";
      complain(error);
    }
  };
  fold.addEventListener("toggle", () => void show());
  draft.onChange(() => void show());
  return fold;
}

function row(draft: Draft, key: string, value: unknown, meaning: string, refreshers: (() => void)[]): HTMLElement {
  const id = uniqueId("setting");
  const input = h("input", { id, type: "text", placeholder: value === null ? "automatic" : String(value) });
  input.addEventListener("change", () => draft.set(key, parse(input.value.trim(), value)));
  const refresh = (): void => {
    const touched = draft.get(key);
    if (document.activeElement !== input) input.value = touched === undefined ? "" : String(touched);
  };
  refresh();
  refreshers.push(refresh);
  return h("div", { class: "field wide" }, h("label", { for: id }, h("code", {}, key), h("span", { class: "fine block" }, meaning)), input);
}

/** Read what was typed as the kind of value that the setting has; the server checks it. */
export function parse(text: string, like: unknown): unknown {
  if (text === "") return null;
  if (text === "true" || text === "false") return text === "true";
  if (Array.isArray(like) || /^-?[\d.]+(e-?\d+)?(,-?[\d.]+(e-?\d+)?)+$/i.test(text)) return text.split(",").map((part) => scalar(part.trim()));
  return scalar(text);
}

function scalar(text: string): unknown {
  return text !== "" && Number.isFinite(Number(text)) ? Number(text) : text;
}
