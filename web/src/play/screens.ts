import { formatValue } from "../chart/format.ts";
import { h } from "../dom.ts";
import type { MapName } from "../model.ts";
import { colourTable, paintBar, type Rgb } from "../player/colourmaps.ts";

/** A picture of numbers: paints values on a colour scale. */
export class Canvas {
  readonly element: HTMLElement;
  readonly screen: HTMLElement;
  private readonly canvas: HTMLCanvasElement;
  private readonly image: ImageData;
  private readonly pixels: Uint32Array;
  private readonly palette: Uint32Array;
  private readonly missing = h("div", { class: "missing", hidden: true });
  private readonly range: readonly [number, number];

  constructor(name: string, key: string, alt: string, size: readonly [number, number], aspect: number, map: MapName, range: readonly [number, number]) {
    const [nx, ny] = size;
    this.range = range;
    this.canvas = h("canvas", { width: nx, height: ny, role: "img", "aria-label": alt });
    this.image = new ImageData(nx, ny);
    this.pixels = new Uint32Array(this.image.data.buffer);
    this.palette = Uint32Array.from(colourTable(map), ([r, g, b]: Rgb) => ((255 << 24) | (b << 16) | (g << 8) | r) >>> 0);
    this.screen = h("div", { class: "screen" }, this.canvas, this.missing);
    this.screen.style.aspectRatio = String(aspect);
    const bar = h("canvas", { class: "bar", "aria-hidden": "true" });
    paintBar(bar, map);
    const scale = h("div", { class: "scale" }, h("span", {}, formatValue(range[0], 3)), bar, h("span", {}, formatValue(range[1], 3)));
    this.element = h("div", { class: "panel", "data-panel": key }, h("div", { class: "panel-head" }, h("span", {}, name)), this.screen, scale);
  }

  /** Paint the values that `at` gives for each pixel. */
  paint(at: (pixel: number) => number): void {
    this.missing.hidden = true;
    const [low, high] = this.range;
    const scale = 255 / (high - low);
    for (let pixel = 0; pixel < this.pixels.length; pixel += 1) {
      const level = (at(pixel) - low) * scale + 0.5;
      this.pixels[pixel] = this.palette[level < 0 ? 0 : level > 255 ? 255 : level | 0] as number;
    }
    this.canvas.getContext("2d")?.putImageData(this.image, 0, 0);
  }

  /** Show words instead of a picture. */
  say(text: string): void {
    this.canvas.getContext("2d")?.clearRect(0, 0, this.canvas.width, this.canvas.height);
    this.missing.hidden = false;
    this.missing.textContent = text;
  }
}
