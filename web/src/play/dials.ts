import { formatValue } from "../chart/format.ts";
import { h, uniqueId } from "../dom.ts";
import { formula } from "../math.ts";
import type { Dial } from "../model.ts";

const STEPS = 400;

export interface Dials {
  element: HTMLElement;
  values: number[];
  reset(): void;
}

/** The reach of a coefficient's slider: from its negative, or zero, to well beyond its interval. */
export function reachOf({ value, low, high }: Dial): [number, number] {
  const size = Math.max(Math.abs(value), Math.abs(low ?? value), Math.abs(high ?? value)) || 1;
  const wide = Math.max(size, 3 * Math.abs((high ?? value) - (low ?? value)));
  return value < 0 ? [-2.5 * wide, 0.5 * wide] : [-0.5 * wide, 2.5 * wide];
}

/** Sliders for all coefficients, each with its interval marked and its value typed if need be. */
export function dials(models: Dial[], change: () => void): Dials {
  const values = models.map(({ value }) => value);
  const rows = models.map((model, index) => dial(model, (value) => { values[index] = value; change(); }));
  return {
    element: h("div", { class: "dials" }, ...rows.map(({ element }) => element)),
    values,
    reset() {
      models.forEach(({ value }, index) => { values[index] = value; });
      rows.forEach(({ show }, index) => show(models[index]!.value));
      change();
    },
  };
}

function dial(model: Dial, set: (value: number) => void): { element: HTMLElement; show(value: number): void } {
  const id = uniqueId("dial");
  const [least, most] = reachOf(model);
  const name = `Coefficient of ${model.symbol.plain}`;
  const slider = h("input", { type: "range", min: least, max: most, step: (most - least) / STEPS, "aria-label": name });
  const field = h("input", { id, type: "number", step: "any" });
  const track = h("div", { class: "dial-track" }, slider);
  const place = (value: number): string => `${(100 * (value - least)) / (most - least)}%`;
  if (model.low !== null && model.high !== null) {
    const mark = h("span", { class: "dial-interval", title: `95 % interval: ${formatValue(model.low)} to ${formatValue(model.high)}` });
    mark.style.left = place(model.low);
    mark.style.width = `max(3px, ${(100 * (model.high - model.low)) / (most - least)}%)`;
    track.append(h("div", { class: "dial-marks" }, mark));
  }
  const show = (value: number): void => {
    slider.value = String(value);
    field.value = String(Number(value.toPrecision(5)));
    field.setCustomValidity("");
    slider.setAttribute("aria-valuetext", `${formatValue(value)} ${model.unit}`);
  };
  slider.addEventListener("input", () => { show(Number(slider.value)); set(Number(slider.value)); });
  field.addEventListener("change", () => {
    const value = field.value === "" ? NaN : Number(field.value);
    field.setCustomValidity(Number.isFinite(value) ? "" : "Type a number.");
    field.reportValidity();
    if (!Number.isFinite(value)) return;
    slider.value = String(value);
    set(value);
  });
  show(model.value);
  const label = h("label", { for: id, title: model.meaning }, formula(model.symbol.tree, model.symbol.plain), h("span", { class: "fine" }, ` ${model.meaning}`));
  const unit = h("span", { class: "fine unit" }, model.unit === "1" ? "" : model.unit);
  return { element: h("div", { class: "dial" }, label, track, field, unit), show };
}
