/** The time loop around a generated law: the counterpart of `rollout/driver.py`, one frame interval at a time. */

/** A law as `using/javascript.py` writes it; frames are padded by `radius` on each side. */
export interface Law {
  radius: number;
  advection: number;
  stage(
    w: Float64Array, base: Float64Array, out: Float64Array, ny: number, nx: number, c: ArrayLike<number>,
    vx: number, vy: number, wind: Float64Array | null, gx: number, gy: number, h: number, keep: number, low: number, high: number,
  ): number;
  bound(w: Float64Array, ny: number, nx: number, c: ArrayLike<number>, gx: number, gy: number): number;
}

export interface Scheme {
  ny: number;
  nx: number;
  dx: number;
  dy: number;
  periodic: boolean;
  clip: [number, number] | null;
  safety: number;
  maxSubsteps: number;
}

export type Velocity = readonly [number, number];

const BLOW_UP = 1e3;
const RECHECK = 4;

/** Integrates u_t = −v·∇u + Σ c_j T_j(u) by the third-order Runge–Kutta method of Shu and Osher. */
export class Rollout {
  private u: Float64Array;
  private a: Float64Array;
  private b: Float64Array;
  private reach = BLOW_UP;
  /** Why the simulation stopped, or an empty text. */
  failure = "";
  /** Runge–Kutta steps of the last interval. */
  substeps = 0;

  private readonly law: Law;
  private readonly scheme: Scheme;

  constructor(law: Law, scheme: Scheme) {
    this.law = law;
    this.scheme = scheme;
    const size = (scheme.ny + 2 * law.radius) * (scheme.nx + 2 * law.radius);
    [this.u, this.a, this.b] = [new Float64Array(size), new Float64Array(size), new Float64Array(size)];
  }

  /** Start from a frame, row by row. */
  start(frame: ArrayLike<number>): void {
    let largest = 1;
    this.each((pixel, place) => {
      const value = frame[pixel] as number;
      this.u[place] = value;
      if (Math.abs(value) > largest) largest = Math.abs(value);
    });
    this.reach = BLOW_UP * largest;
    this.failure = "";
    this.pad(this.u);
  }

  /** Value at a pixel. */
  value(pixel: number): number {
    return this.u[this.place(pixel)] as number;
  }

  /** Change values in place, such as by a brush; `change` gives the new value of a pixel, or null to leave it. */
  edit(change: (pixel: number, value: number) => number | null): void {
    const [low, high] = this.scheme.clip ?? [-this.reach, this.reach];
    this.each((pixel, place) => {
      const next = change(pixel, this.u[place] as number);
      if (next !== null) this.u[place] = Math.min(high, Math.max(low, next));
    });
    this.pad(this.u);
  }

  /** Copy the state, row by row. */
  read(into: Float64Array): void {
    this.each((pixel, place) => { into[pixel] = this.u[place] as number; });
  }

  /** Advance by one frame interval, the velocity going linearly from `from` to `to`; tell whether it went well. */
  advance(interval: number, c: ArrayLike<number>, from: Velocity, to: Velocity, wind: Float64Array | null = null): boolean {
    const { ny, nx, dx, dy, safety, maxSubsteps } = this.scheme;
    const [gx, gy] = [1 / dx, 1 / dy];
    const slope = [(to[0] - from[0]) / interval, (to[1] - from[1]) / interval] as const;
    const blown = wind ? [largest(wind, 0, ny * nx), largest(wind, ny * nx, ny * nx)] as const : [0, 0] as const;
    const fastest = (Math.max(Math.abs(from[0]), Math.abs(to[0])) + blown[0]) * gx + (Math.max(Math.abs(from[1]), Math.abs(to[1])) + blown[1]) * gy;
    let [t, rate, age, left] = [0, 0, RECHECK, 1];
    this.substeps = 0;
    while (left > 0) {
      if (age >= RECHECK) [rate, age] = [this.law.bound(this.u, ny, nx, c, gx, gy), 0];
      const wanted = ((interval - t) * (rate + this.law.advection * fastest)) / safety;
      if (!(wanted <= maxSubsteps - this.substeps)) return this.fail("these coefficients need steps too small to follow");
      left = Math.max(1, Math.ceil(wanted));
      const h = (interval - t) / left;
      if (!Number.isFinite(this.step(t, h, c, from, slope, wind, gx, gy))) return this.fail("the field blew up");
      t += h;
      age += 1;
      left -= 1;
      this.substeps += 1;
    }
    return true;
  }

  private step(t: number, h: number, c: ArrayLike<number>, from: Velocity, slope: Velocity, wind: Float64Array | null, gx: number, gy: number): number {
    const { ny, nx } = this.scheme;
    let lost = 0;
    for (let n = 0; n < 3; n += 1) {
      const w = n === 0 ? this.u : n === 1 ? this.a : this.b;
      const out = n === 1 ? this.b : this.a;
      const keep = n === 0 ? 0 : n === 1 ? 0.75 : 1 / 3;
      const s = t + (n === 0 ? 0 : n === 1 ? h : 0.5 * h);
      const [low, high] = n === 2 && this.scheme.clip ? this.scheme.clip : [-this.reach, this.reach];
      const [vx, vy] = [from[0] + s * slope[0], from[1] + s * slope[1]];
      lost = this.law.stage(w, this.u, out, ny, nx, c, vx, vy, wind, gx, gy, h, keep, low, high);
      this.pad(out);
    }
    [this.u, this.a] = [this.a, this.u];
    return lost;
  }

  private fail(reason: string): false {
    this.failure = reason;
    return false;
  }

  private place(pixel: number): number {
    const { nx } = this.scheme;
    const r = this.law.radius;
    return (Math.floor(pixel / nx) + r) * (nx + 2 * r) + (pixel % nx) + r;
  }

  private each(visit: (pixel: number, place: number) => void): void {
    const { ny, nx } = this.scheme;
    const r = this.law.radius;
    for (let j = 0, pixel = 0; j < ny; j += 1) {
      let place = (j + r) * (nx + 2 * r) + r;
      for (let i = 0; i < nx; i += 1, pixel += 1, place += 1) visit(pixel, place);
    }
  }

  /** Fill the margin: mirrored at the edges (no flux), or wrapped around. */
  private pad(w: Float64Array): void {
    const { ny, nx, periodic } = this.scheme;
    const r = this.law.radius;
    const s = nx + 2 * r;
    for (let k = 0; k < r; k += 1) {
      const left = periodic ? r + nx - 1 - k : r + k;
      const right = periodic ? r + k : r + nx - 1 - k;
      for (let j = r; j < r + ny; j += 1) {
        w[j * s + r - 1 - k] = w[j * s + left] as number;
        w[j * s + r + nx + k] = w[j * s + right] as number;
      }
    }
    for (let k = 0; k < r; k += 1) {
      const top = periodic ? r + ny - 1 - k : r + k;
      const bottom = periodic ? r + k : r + ny - 1 - k;
      w.copyWithin((r - 1 - k) * s, top * s, (top + 1) * s);
      w.copyWithin((r + ny + k) * s, bottom * s, (bottom + 1) * s);
    }
  }
}

/** Return the drift at a time: linear between the film's frames, and after its end the mean of its last tenth. */
export function driftAt(times: readonly number[], drift: readonly (readonly number[])[], t: number): Velocity {
  const last = times.length - 1;
  if (last < 0) return [0, 0];
  if (t > (times[last] as number)) {
    const tail = drift.slice(-Math.max(1, Math.round(0.1 * drift.length)));
    return [0, 1].map((axis) => tail.reduce((sum, v) => sum + (v[axis] as number), 0) / tail.length) as unknown as Velocity;
  }
  let [low, high] = [0, last];
  while (high - low > 1) {
    const middle = (low + high) >> 1;
    if ((times[middle] as number) <= t) low = middle;
    else high = middle;
  }
  const [t0, t1] = [times[low] as number, times[high] as number];
  const share = t1 > t0 ? Math.min(1, Math.max(0, (t - t0) / (t1 - t0))) : 0;
  const [a, b] = [drift[low] as readonly number[], drift[high] as readonly number[]];
  return [0, 1].map((axis) => (a[axis] as number) + share * ((b[axis] as number) - (a[axis] as number))) as unknown as Velocity;
}

function largest(values: Float64Array, from: number, count: number): number {
  let found = 0;
  for (let place = from; place < from + count; place += 1) found = Math.max(found, Math.abs(values[place] as number));
  return found;
}
