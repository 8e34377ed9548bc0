import { formatValue } from "../chart/format.ts";
import { h } from "../dom.ts";
import { address, get, upload } from "./api.ts";
import type { Card, Library, RecordingCard, RunCard, StudyCard } from "./model.ts";
import { button, complain, link, say, sayBytes, sayDate, saySeconds, VERDICTS, type View } from "./shell.ts";

const ORDERS: Record<string, (a: Card, b: Card) => number> = {
  "newest first": (a, b) => b.changed - a.changed,
  "oldest first": (a, b) => a.changed - b.changed,
  "by name": (a, b) => a.name.localeCompare(b.name, "en", { numeric: true }),
  "by held-out error": (a, b) => errorOf(a) - errorOf(b),
};

function errorOf(card: Card): number {
  return card.kind === "recording" ? Infinity : (card.details.rrmse ?? Infinity);
}

/** What of a card can be searched for. */
function wordsOf(card: Card): string {
  if (card.kind === "recording") return `${card.name} ${card.details.format}`;
  return `${card.name} ${card.details.equation} ${card.details.verdict}${card.kind === "study" ? ` ${card.details.title}` : ""}`;
}

/** Recordings, runs and studies of the folder as cards; a film can be dropped. */
export function libraryView(compare: (runs: string[]) => void): View {
  let cards: Card[] = [];
  const chosen = new Set<string>();
  const search = h("input", { type: "search", placeholder: "Search", "aria-label": "Search recordings, runs and studies" });
  const order = h("select", { "aria-label": "Order" }, ...Object.keys(ORDERS).map((name) => h("option", {}, name)));
  const kind = h("select", { "aria-label": "What is shown" }, h("option", { value: "" }, "everything"), h("option", { value: "recording" }, "recordings"), h("option", { value: "run" }, "runs"), h("option", { value: "study" }, "studies"));
  const together = button("Compare", () => compare([...chosen]), { disabled: true });
  const grid = h("ul", { class: "cards", "aria-label": "Recordings, runs and studies" });
  const count = h("p", { class: "fine", role: "status" });
  const pick = h("input", { type: "file", multiple: true, class: "away", "aria-label": "Choose films to add", tabindex: "-1" });
  const drop = h("div", { class: "drop" }, h("strong", {}, "Drop a film here"), " or ", button("choose a file", () => pick.click()), h("span", { class: "fine" }, " mp4, mov, avi, mkv, webm, GIF, TIFF stack, .npy or .npz; it is copied into the folder."), pick);
  const transfers = h("div", { class: "transfers" });

  async function refresh(): Promise<void> {
    try {
      const found = await get<Library>("library");
      cards = found.cards;
      title.textContent = found.folder;
      show();
      element.dataset["ready"] = "true";
    } catch (error) {
      complain(error);
    }
  }

  function show(): void {
    const words = search.value.trim().toLowerCase();
    const shown = cards
      .filter((card) => kind.value === "" || card.kind === kind.value)
      .filter((card) => words === "" || wordsOf(card).toLowerCase().includes(words))
      .sort(ORDERS[order.value] ?? ORDERS["newest first"]);
    grid.replaceChildren(...shown.map((card) => (card.kind === "recording" ? recordingCard(card) : card.kind === "run" ? runCard(card) : studyCard(card))));
    count.textContent = cards.length === 0 ? "Nothing here yet: drop a film, or put one into the folder." : `${shown.length} of ${cards.length} shown`;
  }

  function runCard(card: RunCard): HTMLElement {
    const { details, name } = card;
    const [word, level] = VERDICTS[details.running ? "unfinished" : details.verdict] ?? [details.verdict, "info"];
    const place = details.finished && details.page ? { view: "result", run: name } : { view: "run", run: name };
    return h("li", { class: "card" },
      details.film !== null && picture(details.film),
      h("div", { class: "card-text" },
        h("h2", {}, link(place, "card-link", name)),
        h("p", { class: "card-line" }, h("span", { class: `badge ${level}` }, details.running ? "running" : word), details.rrmse !== null && ` held-out error ${formatValue(100 * details.rrmse, 3)} %`),
        details.equation !== "" && h("p", { class: "card-law" }, details.equation),
        details.problem !== undefined && h("p", { class: "fine" }, details.problem),
        h("p", { class: "fine" }, sayDate(card.changed), details.seconds !== null && `, took ${saySeconds(details.seconds)}`),
        pickBox(name, details.finished)));
  }

  function studyCard({ name, details, changed }: StudyCard): HTMLElement {
    const [word, level] = VERDICTS[details.running ? "unfinished" : details.verdict] ?? [details.verdict, "info"];
    const differ = details.one_law === false || details.another_law.length > 0;
    return h("li", { class: "card" },
      h("div", { class: "card-text" },
        h("h2", {}, link({ view: "compare", runs: [name] }, "card-link", name)),
        h("p", { class: "card-line" }, h("span", { class: "badge info" }, `study of ${details.films.length} films`), h("span", { class: `badge ${level}` }, details.running ? "running" : word), differ && h("span", { class: "badge warning" }, "films differ")),
        details.title !== "" && details.title !== name && h("p", {}, details.title),
        details.equation !== "" && h("p", { class: "card-law" }, details.equation),
        details.rrmse !== null && h("p", {}, `error of a film left out ${formatValue(100 * details.rrmse, 3)} % at worst`),
        details.problem !== undefined && h("p", { class: "fine" }, details.problem),
        h("p", { class: "fine" }, sayDate(changed)), pickBox(name, details.finished)));
  }

  function pickBox(name: string, finished: boolean): HTMLElement {
    const box = h("input", { type: "checkbox", "aria-label": `Compare ${name}`, checked: chosen.has(name), disabled: !finished });
    box.addEventListener("change", () => {
      if (box.checked) chosen.add(name);
      else chosen.delete(name);
      together.disabled = chosen.size < 2;
      together.textContent = chosen.size > 1 ? `Compare ${chosen.size}` : "Compare";
    });
    return h("label", { class: "card-pick" }, box, "compare");
  }

  function recordingCard(card: RecordingCard): HTMLElement {
    const details = [card.details.format, sayBytes(card.details.bytes), sayDate(card.changed)].filter((word) => word !== "");
    return h("li", { class: "card" }, picture(card.name),
      h("div", { class: "card-text" },
        h("h2", {}, link({ view: "prepare", film: card.name }, "card-link", card.name)),
        h("p", { class: "card-line" }, h("span", { class: "badge" }, "recording")),
        h("p", { class: "fine" }, details.join(", "))));
  }

  async function take(files: Iterable<File>): Promise<void> {
    for (const file of files) await send(file);
  }

  async function send(file: File): Promise<void> {
    const cancel = new AbortController();
    const bar = h("progress", { max: 1, value: 0, "aria-label": `Copying ${file.name}` });
    const line = h("p", {}, `Copying ${file.name} `, bar, button("Cancel", () => cancel.abort()));
    transfers.append(line);
    try {
      const name = await upload(file, (share) => { bar.value = share; }, cancel.signal);
      say(`${name} is in the folder.`, "good");
      await refresh();
    } catch (error) {
      complain(error);
    } finally {
      line.remove();
    }
  }

  for (const field of [search, order, kind]) field.addEventListener("input", show);
  pick.addEventListener("change", () => { void take(pick.files ?? []); pick.value = ""; });
  drop.addEventListener("dragover", (event) => { event.preventDefault(); drop.classList.add("over"); });
  drop.addEventListener("dragleave", () => drop.classList.remove("over"));
  drop.addEventListener("drop", (event) => {
    event.preventDefault();
    drop.classList.remove("over");
    void take([...(event.dataTransfer?.files ?? [])]);
  });
  const title = h("h1", {}, "Library");
  const tools = h("div", { class: "tools" }, search, kind, order, together, button("Look again", () => void refresh()));
  const element = h("section", { class: "view library" }, title, drop, transfers, tools, count, grid);
  void refresh();
  return { element, onLibrary: () => void refresh() };
}

function picture(film: string): HTMLElement {
  const image = h("img", { src: address("thumbnail", { name: film }), alt: "", loading: "lazy" });
  image.addEventListener("error", () => image.remove());
  return h("div", { class: "thumbnail" }, image);
}
