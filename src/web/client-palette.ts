/// <reference lib="dom" />

/** Pause after a keystroke before the results are loaded. */
const pauseMs = 120;

const dialog = document.querySelector<HTMLDialogElement>("#palette");
const form = dialog?.querySelector("form");
const input = dialog?.querySelector("input");
const list = dialog?.querySelector<HTMLElement>("#palette-hits");

let lastRequest = 0;
let timer: ReturnType<typeof setTimeout> | undefined;

const options = () => [...(list?.querySelectorAll("a") ?? [])];
const selected = () => list?.querySelector<HTMLAnchorElement>('a[aria-selected="true"]') ?? null;

function select(option: HTMLAnchorElement | undefined): void {
  for (const each of options()) each.setAttribute("aria-selected", String(each === option));
  if (option) input?.setAttribute("aria-activedescendant", option.id);
  else input?.removeAttribute("aria-activedescendant");
  option?.scrollIntoView({ block: "nearest" });
}

async function load(): Promise<void> {
  if (!form || !input || !list) return;
  const thisRequest = ++lastRequest;
  const text = input.value.trim();
  const url = text === "" ? form.action : `${form.action}?${new URLSearchParams({ q: text })}`;
  const response = await window.fetch(url, { headers: { "hx-request": "true" } });
  const html = await response.text();
  // A slow response must not replace the response to a newer input.
  if (thisRequest !== lastRequest) return;
  list.innerHTML = html;
  for (const each of list.querySelectorAll("ul, li")) each.setAttribute("role", "presentation");
  for (const [i, each] of options().entries()) {
    each.id = `palette-hit-${i}`;
    each.setAttribute("role", "option");
    each.tabIndex = -1;
  }
  select(options()[0]);
}

/** Opens the search dialog. Returns whether the page has one. */
export function openPalette(): boolean {
  if (!dialog || !input) return false;
  if (!dialog.open) dialog.showModal();
  input.select();
  load();
  return true;
}

input?.addEventListener("input", () => {
  clearTimeout(timer);
  timer = setTimeout(load, pauseMs);
});

input?.addEventListener("keydown", (event) => {
  const allOptions = options();
  const index = allOptions.indexOf(selected() as HTMLAnchorElement);
  if (event.key === "ArrowDown") select(allOptions[(index + 1) % allOptions.length]);
  else if (event.key === "ArrowUp") select(allOptions.at(index <= 0 ? -1 : index - 1));
  else return;
  event.preventDefault();
});

form?.addEventListener("submit", (event) => {
  const option = selected();
  if (!option) return;
  event.preventDefault();
  option.click();
});

// A click outside the dialog or on a link closes it.
dialog?.addEventListener("click", ({ target }) => {
  if (target === dialog || (target instanceof Element && target.closest("a"))) dialog.close();
});

document.addEventListener("click", (event) => {
  if (event.ctrlKey || event.metaKey || !(event.target instanceof Element)) return;
  if (event.target.closest("[data-palette]") && openPalette()) event.preventDefault();
});

document.addEventListener("keydown", (event) => {
  const isShortcut = (event.ctrlKey || event.metaKey) && !event.altKey && !event.shiftKey;
  if (isShortcut && event.key.toLowerCase() === "k" && openPalette()) event.preventDefault();
});
