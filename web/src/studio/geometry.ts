/** Rectangles and lines on the camera's picture, in its pixels. */

export type Box = [x: number, y: number, width: number, height: number];
export type Point = [x: number, y: number];
export const LEAST = 8;

/** Keep a rectangle inside the picture and not too small, in whole pixels. */
export function fit([x, y, width, height]: Box, [w, h]: readonly [number, number]): Box {
  const wide = Math.round(Math.min(w, Math.max(Math.min(LEAST, w), width)));
  const high = Math.round(Math.min(h, Math.max(Math.min(LEAST, h), height)));
  return [Math.round(Math.min(w - wide, Math.max(0, x))), Math.round(Math.min(h - high, Math.max(0, y))), wide, high];
}

/** Move an edge or corner ("n", "se", …) or the whole ("move") by some pixels. */
export function drag([x, y, width, height]: Box, part: string, dx: number, dy: number, size: readonly [number, number]): Box {
  if (part === "move") return fit([x + dx, y + dy, width, height], size);
  let [left, top, right, bottom] = [x, y, x + width, y + height];
  if (part.includes("w")) left = Math.max(0, Math.min(left + dx, right - LEAST));
  if (part.includes("e")) right = Math.min(size[0], Math.max(right + dx, left + LEAST));
  if (part.includes("n")) top = Math.max(0, Math.min(top + dy, bottom - LEAST));
  if (part.includes("s")) bottom = Math.min(size[1], Math.max(bottom + dy, top + LEAST));
  return fit([left, top, right - left, bottom - top], size);
}

/** Make the rectangle between two corners. */
export function between([ax, ay]: Point, [bx, by]: Point, size: readonly [number, number]): Box {
  return fit([Math.min(ax, bx), Math.min(ay, by), Math.abs(ax - bx), Math.abs(ay - by)], size);
}

/** The size of a camera pixel from a line over a ruler, as the setting `recording.scale` takes it. */
export function scaleOf(from: Point, to: Point, length: number, unit: string): string | null {
  const pixels = Math.hypot(to[0] - from[0], to[1] - from[1]);
  if (!(pixels > 0) || !(length > 0) || !/^[^\d\s.][^\s]*$/.test(unit)) return null;
  return `${Number((length / pixels).toPrecision(6))}${unit}`;
}
