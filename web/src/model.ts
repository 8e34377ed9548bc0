/** The document as `page.py` writes it: the counterpart of `document.py`. */

export type Level = "info" | "good" | "warning" | "error";
export type Colour = "blue" | "orange" | "green" | "purple" | "sky" | "red" | "olive" | "ink" | "grey";
export type MapName = "viridis" | "cividis" | "magma" | "grey" | "diverging";
export type Tree = [tag: string, attributes: Record<string, string>, content: Tree[] | string];
export type Value = number | null;

export interface MathText { kind: "math"; latex: string; plain: string; tree: Tree | null }
export interface Code { kind: "code"; text: string }
export interface Strong { kind: "strong"; text: string }
export interface Link { kind: "link"; text: string; section: string }
export type Inline = string | MathText | Code | Strong | Link;
export type Text = Inline | Inline[];

export interface Paragraph { kind: "paragraph"; text: Text }
export interface Note { kind: "note"; text: Text; level: Level; title: string }
export interface Equation { kind: "equation"; latex: string; plain: string; tree: Tree | null; caption: Text }

export interface Column { label: Text; unit: string; align: "left" | "right" | "center" }
export interface Cell {
  text: string;
  sort: string | number | null;
  state?: "pass" | "fail" | "none";
  interval?: string;
  tree?: Tree | null;
  face?: "code" | "strong";
}
export interface Table { kind: "table"; columns: Column[]; rows: Cell[][]; caption: Text }

export interface Axis {
  label: string;
  unit: string;
  log: boolean;
  categories: string[];
  limits: [number, number] | null;
  downwards: boolean;
}
export interface Series {
  name: string;
  x: Value[];
  y: Value[];
  style: "line" | "steps" | "scatter" | "bars" | "histogram";
  low: Value[] | null;
  high: Value[] | null;
  band: boolean;
  colour: Colour | null;
  dashed: boolean;
  markers: boolean;
  labels: string[];
}
export interface Span { label: string; start: number; end: number; colour: Colour }
export interface Marker { label: string; at: number; axis: "x" | "y"; colour: Colour }
export interface Ellipse {
  name: string;
  centre: [number, number];
  covariance: [[number, number], [number, number]];
  radius: number;
  colour: Colour | null;
}
export interface Chart {
  kind: "chart";
  title: string;
  x: Axis;
  y: Axis;
  series: Series[];
  alt: string;
  caption: Text;
  spans: Span[];
  markers: Marker[];
  ellipses: Ellipse[];
  equal_aspect: boolean;
  stacked: boolean;
}
export interface Heatmap {
  kind: "heatmap";
  title: string;
  values: Value[][];
  texts: string[][];
  rows: string[];
  columns: string[];
  alt: string;
  label: string;
  colour_map: MapName;
  limits: [number, number] | null;
  caption: Text;
  row_title: string;
  column_title: string;
}
export interface Quantity {
  name: string;
  unit: string;
  value: Value;
  low: Value;
  high: Value;
  truth: Value;
}
export interface Pairs {
  kind: "pairs";
  title: string;
  quantities: Quantity[];
  samples: Value[][];
  alt: string;
  centre: number[] | null;
  covariance: number[][] | null;
  radius: number;
  caption: Text;
  colour: Colour;
}
export interface Picture { kind: "image"; source: string; alt: string; caption: Text }

export interface Film {
  payload: number;
  frames: number[];
  ny: number;
  nx: number;
  low: number;
  high: number;
  clipped: boolean;
}
export interface Window { label: string; start: number; end: number; colour: Colour }
export interface Player {
  kind: "player";
  title: string;
  times: number[];
  width: number;
  height: number;
  unit: string;
  observed: Film;
  predicted: Film | null;
  difference: Film | null;
  windows: Window[];
  alt: string;
  quantity: string;
  mask: string | null;
  caption: Text;
}
export interface Dial { symbol: MathText; meaning: string; value: number; low: Value; high: Value; unit: string }
export interface Play {
  kind: "play";
  law: string;
  dials: Dial[];
  film: Film;
  times: number[];
  width: number;
  height: number;
  unit: string;
  drift_times: number[];
  drift: [number, number][];
  periodic: boolean;
  clip: [number, number] | null;
  safety: number;
  max_substeps: number;
  outside: string | null;
  flow: { payload: number; fields: number } | null;
  flow_weights: number[][] | null;
  caption: Text;
}
export interface Tiles { kind: "tiles"; items: Item[]; columns: number }
export interface Details { kind: "details"; title: string; items: Item[]; open: boolean }
export type Item =
  | Paragraph | Note | Equation | Table | Chart | Heatmap | Pairs | Picture | Player | Play | Tiles | Details;

export interface Section { id: string; title: string; sentence: Text; items: Item[]; collapsed: boolean }
export interface Coefficient {
  symbol: MathText;
  meaning: string;
  shown: string;
  interval: string;
  unit: string;
  note: string;
}
export interface Headline { label: string; value: string; note: string }
export interface Comparison {
  label: string;
  bars: { name: string; value: Value; ours: boolean }[];
  unit: string;
  note: string;
}
export interface Head {
  verdict: string;
  level: Level;
  summary: Text;
  equation: Equation | null;
  coefficients: Coefficient[];
  headlines: Headline[];
  comparisons: Comparison[];
  player: Player | null;
  notes: Note[];
}
export interface Page { title: string; subtitle: string; head: Head; sections: Section[]; footer: Text }
