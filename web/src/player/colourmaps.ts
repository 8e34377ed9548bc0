import type { MapName } from "../model.ts";
import { CIVIDIS, MAGMA, VIRIDIS } from "./colour-tables.ts";

export type Rgb = [number, number, number];

// Blue to orange through near-white: the two ends differ for every common kind of colour blindness.
const DIVERGING: Rgb[] = [
  [12, 44, 94], [30, 88, 152], [76, 140, 192], [150, 196, 222], [245, 245, 242],
  [246, 192, 132], [224, 130, 52], [168, 78, 20], [94, 38, 8],
];

function unpack(table: string): Rgb[] {
  return Array.from({ length: 256 }, (_, index) => {
    const value = Number.parseInt(table.slice(6 * index, 6 * index + 6), 16);
    return [value >> 16, (value >> 8) & 255, value & 255];
  });
}

/** Spread anchor colours over 256 entries so that entry 128 is exactly the middle one. */
function spread(anchors: Rgb[]): Rgb[] {
  const last = anchors.length - 1;
  return Array.from({ length: 256 }, (_, index) => {
    const place = (index <= 128 ? index / 256 : 0.5 + (index - 128) / 254) * last;
    const below = Math.min(last - 1, Math.floor(place));
    const [from, to] = [anchors[below] as Rgb, anchors[below + 1] as Rgb];
    return from.map((value, channel) => Math.round(value + (place - below) * ((to[channel] as number) - value))) as Rgb;
  });
}

const TABLES: Record<MapName, Rgb[]> = {
  viridis: unpack(VIRIDIS),
  cividis: unpack(CIVIDIS),
  magma: unpack(MAGMA),
  grey: Array.from({ length: 256 }, (_, level) => [level, level, level]),
  diverging: spread(DIVERGING),
};

export const SEQUENTIAL: MapName[] = ["viridis", "cividis", "magma", "grey"];

/** Return the table of 256 colours. */
export function colourTable(name: MapName): Rgb[] {
  return TABLES[name];
}

/** Find the entry for a value on the scale [low, high]. */
export function colourIndex(value: number, low: number, high: number): number {
  const place = Math.round((255 * (value - low)) / (high - low));
  return Math.min(255, Math.max(0, place));
}

/** Return a value's colour for CSS. */
export function cssColour(name: MapName, value: number, low: number, high: number): string {
  const [r, g, b] = TABLES[name][colourIndex(value, low, high)] as Rgb;
  return `rgb(${r} ${g} ${b})`;
}

/** Tell whether black text reads better than white upon a colour. */
export function isLight(name: MapName, value: number, low: number, high: number): boolean {
  const linear = (TABLES[name][colourIndex(value, low, high)] as Rgb).map((channel) => (channel / 255) ** 2.2);
  return 0.2126 * (linear[0] as number) + 0.7152 * (linear[1] as number) + 0.0722 * (linear[2] as number) > 0.2;
}

/** Paint a horizontal colour bar. */
export function paintBar(canvas: HTMLCanvasElement, name: MapName): void {
  canvas.width = 256;
  canvas.height = 1;
  const context = canvas.getContext("2d");
  if (context === null) return;
  const image = context.createImageData(256, 1);
  TABLES[name].forEach((rgb, index) => image.data.set([...rgb, 255], 4 * index));
  context.putImageData(image, 0, 0);
}
