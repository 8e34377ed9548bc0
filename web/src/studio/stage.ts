import { h, s } from "../dom.ts";
import { ask } from "./api.ts";
import { between, drag, type Box, type Point } from "./geometry.ts";
import type { FilmInfo } from "./model.ts";
import { complain } from "./shell.ts";

export type Tool = "crop" | "ruler" | "polygon" | "brush" | "erase";
const HANDLES = ["nw", "n", "ne", "e", "se", "s", "sw", "w"] as const;

interface Actions {
  crop(box: Box): void;
  ruler(from: Point, to: Point): void;
  mask(drawn: boolean): void;
  replaced(): void;
}

/** The film with a scrubber, and what is drawn upon it: crop, ruler, mask. All in camera pixels. */
export class Stage {
  readonly element: HTMLElement;
  readonly mask: HTMLCanvasElement;
  frame = 0;
  tool: Tool = "crop";
  brush = 30;
  private readonly image: HTMLImageElement;
  private readonly overlay: SVGSVGElement;
  private readonly slider: HTMLInputElement;
  private readonly clock = h("output", { class: "clock" });
  private readonly film: FilmInfo;
  private readonly actions: Actions;
  private box: Box;
  private line: [Point, Point] | null = null;
  private corners: Point[] = [];
  private url = "";
  private busy = false;
  private turn = 0;
  private settle = 0;
  private moved: () => void = () => undefined;

  constructor(film: FilmInfo, actions: Actions) {
    this.film = film;
    this.actions = actions;
    this.box = [0, 0, film.width, film.height];
    this.image = h("img", { alt: `Frame of ${film.name}`, draggable: "false" });
    this.mask = h("canvas", { width: film.width, height: film.height, class: "mask", "aria-hidden": "true" });
    this.overlay = s("svg", { class: "overlay", viewBox: `0 0 ${film.width} ${film.height}`, preserveAspectRatio: "none" });
    this.overlay.setAttribute("aria-label", "Crop. Arrow keys move it, with shift by ten pixels, with alt they change its size.");
    this.overlay.setAttribute("role", "application");
    this.overlay.setAttribute("tabindex", "0");
    const last = Math.max(0, (film.frames ?? 1) - 1);
    this.slider = h("input", { type: "range", min: 0, max: last, step: 1, value: 0, "aria-label": "Frame" });
    this.slider.addEventListener("input", () => this.seek(Number(this.slider.value), true));
    this.slider.addEventListener("change", () => this.seek(Number(this.slider.value)));
    const picture = h("div", { class: "film-stage" }, this.image, this.mask, this.overlay);
    picture.style.aspectRatio = `${film.width} / ${film.height}`;
    picture.style.maxWidth = `calc(68vh * ${film.width / film.height})`; // the whole picture stays on the screen
    this.element = h("div", { class: "film-box" }, picture, h("div", { class: "transport" }, h("div", { class: "timeline" }, this.slider), this.clock));
    this.listen();
    this.draw();
    this.seek(Math.floor(last / 2));
  }

  onMove(moved: () => void): void {
    this.moved = moved;
  }

  /** Show a frame: quickly while the slider moves, exactly when it rests. */
  seek(frame: number, moving = false): void {
    this.frame = Math.max(0, Math.min(Number(this.slider.max), frame));
    this.slider.value = String(this.frame);
    window.clearTimeout(this.settle);
    void this.load(moving);
    if (moving) this.settle = window.setTimeout(() => this.seek(this.frame), 250);
    else this.moved();
  }

  /** Show a crop that was chosen elsewhere; what is being drawn by hand comes first. */
  setBox(box: Box): void {
    if (!this.busy) this.place(box);
  }

  private place(box: Box): void {
    this.box = box;
    this.draw();
  }

  setLine(line: [Point, Point] | null): void {
    this.line = line;
    this.draw();
  }

  setTool(tool: Tool): void {
    this.tool = tool;
    this.corners = [];
    this.draw();
  }

  clearMask(): void {
    this.mask.getContext("2d")?.clearRect(0, 0, this.mask.width, this.mask.height);
  }

  /** Return the mask as a picture, white where the law is to hold. */
  packMask(): Promise<Blob | null> {
    const copy = h("canvas", { width: this.mask.width, height: this.mask.height });
    const context = copy.getContext("2d");
    if (!context) return Promise.resolve(null);
    const drawn = this.mask.getContext("2d")?.getImageData(0, 0, this.mask.width, this.mask.height);
    if (!drawn) return Promise.resolve(null);
    for (let place = 0; place < drawn.data.length; place += 4) {
      const level = (drawn.data[place + 3] as number) > 40 ? 255 : 0;
      drawn.data.set([level, level, level, 255], place);
    }
    context.putImageData(drawn, 0, 0);
    return new Promise((resolve) => copy.toBlob(resolve, "image/png"));
  }

  close(): void {
    window.clearTimeout(this.settle);
    if (this.url !== "") URL.revokeObjectURL(this.url);
  }

  private async load(quick: boolean): Promise<void> {
    const turn = (this.turn += 1);
    try {
      const answer = await ask("frame", { name: this.film.name, version: this.film.version, number: this.frame, side: quick ? 640 : 1280, quick: quick ? 1 : null });
      const time = answer.headers.get("x-time");
      const blob = await answer.blob();
      if (turn !== this.turn) return;
      const old = this.url;
      this.url = URL.createObjectURL(blob);
      this.image.src = this.url;
      if (old !== "") URL.revokeObjectURL(old);
      const said = time ? `, t = ${Number(time).toFixed(3)} s` : "";
      this.clock.textContent = `frame ${this.frame}${said}`;
      this.slider.setAttribute("aria-valuetext", this.clock.textContent);
      this.element.dataset["frame"] = String(this.frame);
    } catch (error) {
      if (turn !== this.turn) return;
      complain(error);
      if ((error as { status?: number }).status === 409) this.actions.replaced();
    }
  }

  private at(event: PointerEvent): Point {
    const bounds = this.overlay.getBoundingClientRect();
    const { width, height } = this.film;
    return [
      Math.min(width, Math.max(0, ((event.clientX - bounds.left) / bounds.width) * width)),
      Math.min(height, Math.max(0, ((event.clientY - bounds.top) / bounds.height) * height)),
    ];
  }

  private listen(): void {
    const size = [this.film.width, this.film.height] as const;
    let [part, from, first]: [string, Point, Box] = ["", [0, 0], this.box];
    this.overlay.addEventListener("pointerdown", (event) => {
      if (event.button !== 0) return;
      from = this.at(event);
      first = this.box;
      this.busy = true;
      this.overlay.setPointerCapture(event.pointerId);
      const handle = (event.target as Element).getAttribute("data-part");
      part = this.tool === "crop" ? (handle ?? "new") : this.tool;
      if (this.tool === "polygon") this.corner(from);
      if (this.tool === "brush" || this.tool === "erase") this.dab(from, from);
      this.overlay.focus({ preventScroll: true });
      event.preventDefault();
    });
    this.overlay.addEventListener("pointermove", (event) => {
      if (part === "") return;
      const to = this.at(event);
      if (part === "ruler") this.setLine([from, to]);
      else if (part === "new") { if (Math.hypot(to[0] - from[0], to[1] - from[1]) > 4) this.place(between(from, to, size)); }
      else if (part === "brush" || part === "erase") { this.dab(from, to); from = to; }
      else if (part !== "polygon") this.place(drag(first, part, to[0] - from[0], to[1] - from[1], size));
    });
    const end = (event: PointerEvent): void => {
      const to = this.at(event);
      this.busy = false;
      if (part === "ruler") this.actions.ruler(from, to);
      else if (part === "brush" || part === "erase") this.actions.mask(true);
      else if (part !== "" && part !== "polygon" && String(this.box) !== String(first)) this.actions.crop(this.box);
      part = "";
    };
    this.overlay.addEventListener("pointerup", end);
    this.overlay.addEventListener("pointercancel", end);
    this.overlay.addEventListener("dblclick", () => { if (this.tool === "polygon") this.closePolygon(); });
    this.overlay.addEventListener("keydown", (event) => this.press(event, size));
  }

  private press(event: KeyboardEvent, size: readonly [number, number]): void {
    const arrow = ({ ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] } as Record<string, [number, number]>)[event.key];
    if (event.key === "Enter" && this.tool === "polygon") this.closePolygon();
    else if (arrow && this.tool === "crop") {
      const step = event.shiftKey ? 10 : 1;
      this.place(drag(this.box, event.altKey ? "se" : "move", step * arrow[0], step * arrow[1], size));
      this.actions.crop(this.box);
    } else return;
    event.preventDefault();
  }

  private corner(point: Point): void {
    const start = this.corners[0];
    const near = this.film.width / 60;
    if (start && this.corners.length > 2 && Math.hypot(point[0] - start[0], point[1] - start[1]) < near) this.closePolygon();
    else this.corners.push(point);
    this.draw();
  }

  private closePolygon(): void {
    const context = this.mask.getContext("2d");
    if (this.corners.length > 2 && context) {
      context.fillStyle = "rgb(255 170 0)";
      context.beginPath();
      this.corners.forEach(([x, y], index) => (index === 0 ? context.moveTo(x, y) : context.lineTo(x, y)));
      context.fill();
      this.actions.mask(true);
    }
    this.corners = [];
    this.draw();
  }

  private dab(from: Point, to: Point): void {
    const context = this.mask.getContext("2d");
    if (!context) return;
    context.globalCompositeOperation = this.tool === "erase" ? "destination-out" : "source-over";
    context.strokeStyle = "rgb(255 170 0)";
    context.lineWidth = this.brush;
    context.lineCap = "round";
    context.beginPath();
    context.moveTo(...from);
    context.lineTo(to[0] + 0.01, to[1]);
    context.stroke();
    context.globalCompositeOperation = "source-over";
  }

  private draw(): void {
    const [x, y, width, height] = this.box;
    const { width: w, height: hh } = this.film;
    const radius = Math.max(w, hh) / 90;
    const shade = s("path", { class: "shade", d: `M0 0H${w}V${hh}H0ZM${x} ${y}V${y + height}H${x + width}V${y}Z`, "fill-rule": "evenodd" });
    const parts: SVGElement[] = [shade, s("rect", { class: "crop", x, y, width, height, "data-part": this.tool === "crop" ? "move" : null })];
    if (this.tool === "crop") {
      for (const name of HANDLES) {
        const cx = x + (name.includes("w") ? 0 : name.includes("e") ? width : width / 2);
        const cy = y + (name.includes("n") ? 0 : name.includes("s") ? height : height / 2);
        parts.push(s("circle", { class: `handle ${name}`, cx, cy, r: radius, "data-part": name }));
      }
    }
    if (this.line) {
      const [[x1, y1], [x2, y2]] = this.line;
      parts.push(s("line", { class: "ruler", x1, y1, x2, y2 }), s("circle", { class: "ruler-end", cx: x1, cy: y1, r: radius / 2 }), s("circle", { class: "ruler-end", cx: x2, cy: y2, r: radius / 2 }));
    }
    if (this.corners.length > 0) {
      parts.push(s("polyline", { class: "polygon", points: this.corners.map((point) => point.join(",")).join(" ") }));
      for (const [cx, cy] of this.corners) parts.push(s("circle", { class: "ruler-end", cx, cy, r: radius / 2 }));
    }
    this.overlay.replaceChildren(...parts);
    this.overlay.dataset["tool"] = this.tool;
  }
}
