const SUPERSCRIPTS: Record<string, string> = {
  "0": "⁰", "1": "¹", "2": "²", "3": "³", "4": "⁴", "5": "⁵", "6": "⁶", "7": "⁷", "8": "⁸", "9": "⁹", "-": "⁻",
};

function superscript(power: number): string {
  return [...String(power)].map((letter) => SUPERSCRIPTS[letter] ?? letter).join("");
}

function pretty(text: string): string {
  const [digits = "", power] = text.split("e");
  const base = digits.replace("-", "−");
  return power === undefined ? base : `${base}×10${superscript(Number(power))}`;
}

/** Write a value with at most `digits` significant digits, as people write it. */
export function formatValue(value: number | null | undefined, digits = 4): string {
  if (value === null || value === undefined || Number.isNaN(value)) return "–";
  if (!Number.isFinite(value)) return value > 0 ? "∞" : "−∞";
  if (value === 0) return "0";
  const size = Math.abs(value);
  if (size < 1e-4 || size >= 1e6) return pretty(value.toExponential(digits - 1).replace(/\.?0+e/, "e"));
  return pretty(String(Number(value.toPrecision(digits))));
}

/** Write a value of a quantity that spans `range`, to a thousandth of it or so, always with as many decimals. */
export function formatWithin(value: number | null | undefined, range: number): string {
  if (value === null || value === undefined || !(range >= 1e-5 && range < 1e6)) return formatValue(value, 3);
  const decimals = Math.max(0, 2 - Math.floor(Math.log10(range)));
  return pretty(value.toFixed(decimals)).replace(/^−(0(?:\.0*)?)$/, "$1");
}

/** Write tick values alike: the same number of decimals, or powers of ten where they are very large or small. */
export function formatTicks(ticks: number[], log: boolean): string[] {
  const largest = Math.max(...ticks.map(Math.abs));
  if (log) {
    const powers = ticks.map(Math.log10);
    const whole = powers.every((power) => Math.abs(power - Math.round(power)) < 1e-9);
    const far = powers.some((power) => power < -2.5 || power > 4.5);
    return ticks.map((tick, index) => (whole && far ? `10${superscript(Math.round(powers[index] as number))}` : formatValue(tick, 3)));
  }
  if (largest > 0 && (largest >= 1e6 || largest < 1e-3)) {
    return ticks.map((tick) => (tick === 0 ? "0" : pretty(tick.toExponential(2).replace(/\.?0+e/, "e"))));
  }
  const step = ticks.length > 1 ? Math.abs((ticks[1] as number) - (ticks[0] as number)) : largest || 1;
  const decimals = Math.max(0, Math.min(8, Math.ceil(-Math.log10(step) - 1e-9)));
  const exact = (ticks.some((tick) => Math.abs(Number(tick.toFixed(decimals)) - tick) > step * 1e-6)) ? 1 : 0;
  return ticks.map((tick) => pretty((Math.abs(tick) < step * 1e-9 ? 0 : tick).toFixed(decimals + exact)));
}

/** Join a label and its unit. */
export function withUnit(label: string, unit: string): string {
  return unit === "" ? label : `${label} (${unit})`;
}
