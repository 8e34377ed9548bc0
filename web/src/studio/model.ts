/** What the studio's server tells: the counterparts of the dataclasses in `video2pde/studio`. */

import type { Value } from "../model.ts";

export interface Interval { value: number; low: Value; high: Value }
export interface RunDetails {
  verdict: string;
  library: string | null;
  equation: string;
  terms: Record<string, Interval> | null;
  rrmse: Value;
  persistence: Value;
  seconds: Value;
  film: string | null;
  running: boolean;
  finished: boolean;
  page: boolean;
  problem?: string;
}
/** Of a study: the shared law, and the error on the film that the law of the others predicts worst. */
export interface StudyDetails extends Omit<RunDetails, "film"> {
  title: string;
  reason: string;
  one_law: boolean | null;
  another_law: string[];
  films: string[];
  failed: string[];
}
export interface RecordingDetails { format: string; bytes: number | null }
export interface RunCard { kind: "run"; name: string; changed: number; version: string; details: RunDetails }
export interface RecordingCard { kind: "recording"; name: string; changed: number; version: string; details: RecordingDetails }
export interface StudyCard { kind: "study"; name: string; changed: number; version: string; details: StudyDetails }
export type Card = RunCard | RecordingCard | StudyCard;
export interface Library { folder: string; cards: Card[]; more: boolean }

export interface FilmInfo {
  name: string;
  version: string;
  kind: string;
  width: number;
  height: number;
  frames: number | null;
  timed: boolean;
  duration: number | null;
  counted: boolean;
  notes: string[];
  channels: { value: string; name: string }[];
  bytes: number | null;
  out: string;
  presets: string[];
}
export interface Plan {
  command: string;
  folder: string;
  automatic: Record<string, unknown>;
  extent: [number, number];
  unit: string;
  frames: number;
  seconds: number;
  memory: number;
  free: number;
  notes: string[];
  problems: string[];
}
export interface Job {
  id: string;
  film: string;
  out: string;
  command: string;
  created: number;
  state: "waiting" | "running" | "stopping" | "done" | "stopped" | "refused" | "failed";
  started: number | null;
  ended: number | null;
  message: string;
}
export interface Stage {
  name: string;
  title: string;
  state: "waiting" | "running" | "done" | "cached";
  seconds: number | null;
  done: number | null;
  total: number | null;
  left: number | null;
  note: string;
}
export interface RunState {
  run: string;
  working: boolean;
  finished: boolean;
  stages: Stage[];
  lines: string[];
  warnings: string[];
  figures: Record<string, [number, number][]>;
  clouds: { library: string; terms: string[]; draws: number[][] }[];
  stopped: string;
}
export interface ComparedRun extends RunDetails {
  name: string;
  kind: "run" | "study";
  films?: string[];
  units: Record<string, string>;
  errors: Record<string, Value>;
  baselines: Record<string, Value>;
  reason: string;
  length: string;
}
export interface Comparison { runs: ComparedRun[]; differences: { key: string; values: string[] }[] }
