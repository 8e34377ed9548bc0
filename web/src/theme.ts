import { h } from "./dom.ts";

const CHOICES = ["auto", "light", "dark"] as const;
type Choice = (typeof CHOICES)[number];
const KEY = "video2pde-theme";

function stored(): Choice {
  try {
    return CHOICES.find((choice) => choice === localStorage.getItem(KEY)) ?? "auto";
  } catch {
    return "auto"; // a file opened from disk may have no storage
  }
}

/** A button that goes through the system's colours, light and dark. */
export function themeButton(): HTMLElement {
  let now = stored();
  const system = matchMedia("(prefers-color-scheme: dark)");
  const button = h("button", { type: "button", class: "theme" });
  const apply = (): void => {
    document.documentElement.dataset["theme"] = now === "auto" ? (system.matches ? "dark" : "light") : now;
    button.textContent = { auto: "◐ Auto", light: "☀ Light", dark: "☾ Dark" }[now];
    button.setAttribute("aria-label", `Colours: ${now}. Change`);
  };
  button.addEventListener("click", () => {
    now = CHOICES[(CHOICES.indexOf(now) + 1) % CHOICES.length] as Choice;
    try {
      localStorage.setItem(KEY, now);
    } catch {
      // The choice then lasts as long as the page.
    }
    apply();
  });
  system.addEventListener("change", apply);
  apply();
  return button;
}
