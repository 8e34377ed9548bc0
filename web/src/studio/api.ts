/** Requests to the studio's own server: always below this page's address, never elsewhere. */

export class StudioError extends Error {
  readonly status: number;

  constructor(message: string, status: number) {
    super(message);
    this.status = status;
  }
}

type Query = Record<string, string | number | boolean | null | undefined | readonly string[]>;

export function address(path: string, query: Query = {}): string {
  const words = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) {
    if (value === null || value === undefined) continue;
    for (const one of Array.isArray(value) ? value : [value]) words.append(name, String(one));
  }
  const text = words.toString();
  return `./api/${path}${text === "" ? "" : `?${text}`}`;
}

export async function ask(path: string, query: Query = {}, options: RequestInit = {}): Promise<Response> {
  let answer: Response;
  try {
    answer = await fetch(address(path, query), options);
  } catch (error) {
    if (error instanceof DOMException && error.name === "AbortError") throw error;
    throw new StudioError("The studio does not answer. Start it again with 'video2pde studio'; what you typed stays on this page.", 0);
  }
  if (answer.ok) return answer;
  const text = await answer.text();
  let message = text.trim();
  try {
    message = String((JSON.parse(text) as { error?: unknown }).error ?? message);
  } catch {
    // plain words, then
  }
  throw new StudioError(message || `The studio answers ${answer.status}.`, answer.status);
}

export async function get<T>(path: string, query: Query = {}): Promise<T> {
  return (await ask(path, query)).json() as Promise<T>;
}

export async function post<T>(path: string, value: unknown, signal?: AbortSignal): Promise<T> {
  return (await send(path, value, signal)).json() as Promise<T>;
}

export function send(path: string, value: unknown, signal?: AbortSignal): Promise<Response> {
  return ask(path, {}, { method: "POST", body: JSON.stringify(value), headers: { "content-type": "application/json" }, ...(signal ? { signal } : {}) });
}

/** Read lines of JSON as they arrive. */
export async function* lines(answer: Response): AsyncGenerator<Record<string, unknown>> {
  if (!answer.body) return;
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    const parts = (rest + value).split("\n");
    rest = parts.pop() ?? "";
    for (const part of parts) if (part !== "") yield JSON.parse(part) as Record<string, unknown>;
  }
}

/** Send a file with its progress; fetch cannot tell how much has left. */
export function upload(file: File, progress: (share: number) => void, cancel: AbortSignal): Promise<string> {
  return new Promise((resolve, reject) => {
    const request = new XMLHttpRequest();
    request.open("PUT", address("recordings", { name: file.name }));
    request.upload.addEventListener("progress", (event) => progress(event.total > 0 ? event.loaded / event.total : 0));
    request.addEventListener("load", () => {
      const answer = JSON.parse(request.responseText || "{}") as { name?: string; error?: string };
      if (request.status === 201 && answer.name) resolve(answer.name);
      else reject(new StudioError(answer.error ?? `The studio answers ${request.status}.`, request.status));
    });
    request.addEventListener("error", () => reject(new StudioError("The file could not be sent; the studio may have been closed.", 0)));
    request.addEventListener("abort", () => reject(new StudioError("Cancelled: nothing was kept.", 0)));
    cancel.addEventListener("abort", () => request.abort());
    request.send(file);
  });
}
