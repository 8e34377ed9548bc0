/** What the user has chosen for a run so far: only what was touched is kept, and every step can be undone. */

export interface Choice { preset: string; out: string; figures: boolean; settings: Record<string, unknown> }

export class Draft {
  private past: string[] = [];
  private future: string[] = [];
  private now: Choice;
  private readonly key: string;
  private readonly listeners: (() => void)[] = [];

  constructor(film: string, out: string) {
    this.key = `video2pde-draft ${film}`;
    this.now = restore(this.key) ?? { preset: "default", out, figures: true, settings: {} };
    if (this.now.out === "") this.now.out = out;
  }

  get choice(): Readonly<Choice> {
    return this.now;
  }

  /** Return a touched value, or undefined where it is automatic. */
  get(key: string): unknown {
    return this.now.settings[key];
  }

  /** Set a value; null makes it automatic again. */
  set(key: string, value: unknown): void {
    this.change((choice) => {
      if (value === null || value === undefined || value === "") delete choice.settings[key];
      else choice.settings[key] = value;
    });
  }

  change(edit: (choice: Choice) => void): void {
    const before = JSON.stringify(this.now);
    const next = JSON.parse(before) as Choice;
    edit(next);
    if (JSON.stringify(next) === before) return;
    this.past.push(before);
    if (this.past.length > 200) this.past.shift();
    this.future = [];
    this.now = next;
    this.tell();
  }

  get canUndo(): boolean {
    return this.past.length > 0;
  }

  get canRedo(): boolean {
    return this.future.length > 0;
  }

  undo(): void {
    this.step(this.past, this.future);
  }

  redo(): void {
    this.step(this.future, this.past);
  }

  onChange(listener: () => void): void {
    this.listeners.push(listener);
  }

  private step(from: string[], to: string[]): void {
    const text = from.pop();
    if (text === undefined) return;
    to.push(JSON.stringify(this.now));
    this.now = JSON.parse(text) as Choice;
    this.tell();
  }

  private tell(): void {
    try {
      sessionStorage.setItem(this.key, JSON.stringify(this.now));
    } catch {
      // the draft then lasts as long as the page
    }
    for (const listener of this.listeners) listener();
  }
}

function restore(key: string): Choice | null {
  try {
    const text = sessionStorage.getItem(key);
    return text === null ? null : (JSON.parse(text) as Choice);
  } catch {
    return null;
  }
}
