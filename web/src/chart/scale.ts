/** Scales between data and pixels, and the ticks along them. */

export type Interval = [number, number];

export interface Scale {
  log: boolean;
  domain: Interval;
  range: Interval;
  /** Pixel of a value; NaN for a value that a log scale does not have. */
  at(value: number): number;
  /** Value at a pixel. */
  invert(pixel: number): number;
}

export function makeScale(domain: Interval, range: Interval, log = false): Scale {
  const forward = log ? Math.log10 : (value: number) => value;
  const backward = log ? (value: number) => 10 ** value : (value: number) => value;
  const [a, b] = [forward(domain[0]), forward(domain[1])];
  const slope = (range[1] - range[0]) / (b - a);
  return {
    log,
    domain,
    range,
    at: (value) => (log && value <= 0 ? NaN : range[0] + (forward(value) - a) * slope),
    invert: (pixel) => backward(a + (pixel - range[0]) / slope),
  };
}

/** Find the least and the greatest finite value (positive ones only on a log scale). */
export function extent(values: Iterable<number | null>, log: boolean): Interval | null {
  let low = Infinity;
  let high = -Infinity;
  for (const value of values) {
    if (value === null || !Number.isFinite(value) || (log && value <= 0)) continue;
    if (value < low) low = value;
    if (value > high) high = value;
  }
  return low <= high ? [low, high] : null;
}

/** Widen an interval by a share of its length on each side; a point becomes an interval. */
export function widen([low, high]: Interval, share: number, log: boolean): Interval {
  if (log) {
    const [a, b] = widen([Math.log10(low), Math.log10(high)], share, false);
    return [10 ** a, 10 ** b];
  }
  const length = high - low;
  if (length <= Math.abs(high) * 1e-12) {
    const half = Math.abs(high) * 0.1 || 1;
    return [low - half, high + half];
  }
  return [low - share * length, high + share * length];
}

/** Choose round values in [low, high], about `count` of them. */
export function linearTicks(low: number, high: number, count: number): number[] {
  const rough = (high - low) / Math.max(1, count);
  if (!(rough > 0) || !Number.isFinite(rough)) return [low];
  const power = 10 ** Math.floor(Math.log10(rough));
  const lead = rough / power;
  const step = power * (lead < 1.5 ? 1 : lead < 3.5 ? 2 : lead < 7.5 ? 5 : 10);
  const first = Math.ceil(low / step - 1e-9);
  const last = Math.floor(high / step + 1e-9);
  return Array.from({ length: Math.max(0, last - first + 1) }, (_, index) => (first + index) * step);
}

/** Choose powers of ten in [low, high], thinned or refined to about `count`. */
export function logTicks(low: number, high: number, count: number): number[] {
  const first = Math.ceil(Math.log10(low) - 1e-9);
  const last = Math.floor(Math.log10(high) + 1e-9);
  const decades = last - first + 1;
  if (decades >= 2) {
    const stride = Math.max(1, Math.ceil(decades / Math.max(1, count)));
    return Array.from({ length: Math.ceil(decades / stride) }, (_, index) => 10 ** (first + index * stride));
  }
  const fine: number[] = [];
  for (let power = first - 1; power <= last + 1; power += 1) {
    for (const lead of [1, 2, 5]) {
      const tick = lead * 10 ** power;
      if (tick >= low * (1 - 1e-9) && tick <= high * (1 + 1e-9)) fine.push(tick);
    }
  }
  return fine.length >= 2 ? fine : linearTicks(low, high, count);
}

/** Stretch the shorter of two domains so that one unit is as long on both axes. */
export function equalise(x: Interval, y: Interval, width: number, height: number): [Interval, Interval] {
  const unit = Math.max((x[1] - x[0]) / width, (y[1] - y[0]) / height);
  const grow = ([low, high]: Interval, length: number): Interval => {
    const middle = (low + high) / 2;
    return [middle - (unit * length) / 2, middle + (unit * length) / 2];
  };
  return [grow(x, width), grow(y, height)];
}
