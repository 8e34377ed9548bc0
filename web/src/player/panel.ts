import { formatValue, formatWithin } from "../chart/format.ts";
import { h } from "../dom.ts";
import type { Film, MapName } from "../model.ts";
import { colourIndex, colourTable, paintBar, type Rgb } from "./colourmaps.ts";

/** Turn a stored level into a value. */
export function valueOf(film: Film, level: number): number {
  return film.low + ((film.high - film.low) * level) / 255;
}

/** Return each of the 256 levels its colour, as the pixel's four bytes in one number. */
export function paletteOf(film: Film, map: MapName, low: number, high: number): Uint32Array<ArrayBuffer> {
  const table = colourTable(map);
  return Uint32Array.from({ length: 256 }, (_, level) => {
    const [r, g, b] = table[colourIndex(valueOf(film, level), low, high)] as Rgb;
    return ((255 << 24) | (b << 16) | (g << 8) | r) >>> 0;
  });
}

/** One picture of the player: paints a frame of its film and tells values. */
export class Panel {
  readonly element: HTMLElement;
  readonly screen: HTMLElement;
  private readonly canvas: HTMLCanvasElement;
  private readonly cross = h("div", { class: "cross", hidden: true });
  private readonly missing: HTMLElement;
  private readonly shown = h("output", { class: "panel-value" });
  private readonly bar = h("canvas", { class: "bar", "aria-hidden": "true" });
  private readonly ends: [HTMLElement, HTMLElement] = [h("span"), h("span")];
  private readonly places = new Map<number, number>();
  private palette = new Uint32Array(256);
  private levels: Uint8Array | null = null;
  private readonly film: Film;
  private readonly mask: Uint8Array | null;

  constructor(name: string, key: string, film: Film, aspect: number, alt: string, mask: Uint8Array | null) {
    this.film = film;
    this.mask = mask;
    this.canvas = h("canvas", { width: film.nx, height: film.ny, role: "img", "aria-label": alt });
    this.missing = h("div", { class: "missing" }, "Loading…");
    this.screen = h("div", { class: "screen" }, this.canvas, this.cross, this.missing);
    this.screen.style.aspectRatio = String(aspect);
    film.frames.forEach((frame, place) => this.places.set(frame, place));
    const title = h("div", { class: "panel-head" }, h("span", {}, name), this.shown);
    const scale = h("div", { class: "scale" }, this.ends[0], this.bar, this.ends[1]);
    this.element = h("div", { class: "panel", "data-panel": key }, title, this.screen, scale);
  }

  setLevels(levels: Uint8Array): void {
    this.levels = levels;
  }

  setColours(map: MapName, low: number, high: number): void {
    this.palette = paletteOf(this.film, map, low, high);
    paintBar(this.bar, map);
    this.ends[0].textContent = formatValue(low, 3);
    this.ends[1].textContent = formatValue(high, 3);
  }

  /** Return the value at a pixel of a frame, or null where there is none. */
  value(frame: number, pixel: number): number | null {
    const place = this.places.get(frame);
    if (place === undefined || this.levels === null || this.mask?.[pixel] === 0) return null;
    const level = this.levels[place * this.film.nx * this.film.ny + pixel];
    return level === undefined ? null : valueOf(this.film, level);
  }

  /** Write that value, as finely as the film resolves it. */
  say(frame: number, pixel: number): string {
    return formatWithin(this.value(frame, pixel), this.film.high - this.film.low);
  }

  /** Paint a frame; say so where the film has none. */
  paint(frame: number): void {
    const place = this.places.get(frame);
    const context = this.canvas.getContext("2d");
    if (this.levels === null || context === null) return;
    this.missing.hidden = place !== undefined;
    this.missing.textContent = "no prediction for this frame";
    const { nx, ny } = this.film;
    context.clearRect(0, 0, nx, ny);
    if (place === undefined) return;
    const image = context.createImageData(nx, ny);
    const pixels = new Uint32Array(image.data.buffer);
    const start = place * nx * ny;
    for (let pixel = 0; pixel < pixels.length; pixel += 1) {
      if (this.mask === null || this.mask[pixel] === 1) {
        pixels[pixel] = this.palette[this.levels[start + pixel] as number] as number;
      }
    }
    context.putImageData(image, 0, 0);
  }

  /** Mark a pixel and show its value; null clears both. */
  probe(frame: number, pixel: number | null): void {
    this.cross.hidden = pixel === null;
    this.shown.textContent = pixel === null ? "" : this.say(frame, pixel);
    if (pixel === null) return;
    const { nx, ny } = this.film;
    this.cross.style.left = `${(100 * ((pixel % nx) + 0.5)) / nx}%`;
    this.cross.style.top = `${(100 * (Math.floor(pixel / nx) + 0.5)) / ny}%`;
  }
}
