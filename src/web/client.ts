/// <reference lib="dom" />
import htmx from "htmx.org/dist/htmx.esm.min.js";
import "htmx.org/dist/ext/hx-sse.min.js";

/** Keyboard shortcuts such as "g p", from the links with data-key. */
const goKeys = new Map([...document.querySelectorAll<HTMLAnchorElement>("a[data-key]")].map((a) => [a.dataset.key, a]));

document.documentElement.classList.add("live");

let isGoing = false;

const isTyping = (target: EventTarget | null) =>
  target instanceof HTMLElement && target.closest("input, textarea, select, [contenteditable]") !== null;

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || isTyping(event.target)) return;
  if (isGoing) {
    isGoing = false;
    goKeys.get(`g ${event.key}`)?.click();
  } else if (event.key === "g") isGoing = true;
  else if (event.key === "/") {
    const search = document.querySelector<HTMLInputElement>('input[type="search"]');
    if (search) {
      event.preventDefault();
      search.focus();
      search.select();
    }
  } else if (event.key === "?") document.querySelector<HTMLDialogElement>("#keys")?.showModal();
});

/** Text to copy: `data-copy` itself, the element it selects, or the response of the URL in `data-copy-from`. */
async function textOf({ copy = "", copyFrom }: DOMStringMap): Promise<string> {
  if (copyFrom) return (await window.fetch(copyFrom)).text();
  return copy.startsWith("#") ? (document.querySelector(copy)?.textContent ?? "") : copy;
}

document.addEventListener("click", async (event) => {
  const button =
    event.target instanceof Element ? event.target.closest<HTMLElement>("[data-copy], [data-copy-from]") : null;
  if (!button) return;
  await navigator.clipboard.writeText(await textOf(button.dataset));
  const label = button.textContent;
  button.textContent = "Copied";
  setTimeout(() => {
    button.textContent = label;
  }, 1500);
});

// Shows a notice while a live page has lost its event stream, and reconnects.
const lost = Object.assign(document.createElement("p"), { id: "connection", className: "notice bad" });
lost.setAttribute("role", "alert");
const showConnectionLost = (source: Element, status?: number) => {
  lost.textContent =
    status === 401
      ? "You’re signed out, and this page may be out of date. Reload it to sign in."
      : "Connection lost. Reconnecting… Data may be out of date.";
  if (source.isConnected && !lost.isConnected) document.querySelector("main")?.prepend(lost);
};
document.addEventListener("htmx:sse:error", ({ target, detail }: Event & { detail?: { status?: number } }) => {
  if (target instanceof Element) showConnectionLost(target, detail?.status);
});
document.addEventListener("htmx:sse:after:connection", () => lost.remove());
// htmx does not retry a stream that never opened.
document.addEventListener("htmx:error", ({ target: source }) => {
  const path = source instanceof Element ? source.getAttribute("hx-sse:connect") : null;
  if (!(source instanceof Element && path)) return;
  showConnectionLost(source);
  setTimeout(() => htmx.ajax("GET", path, { source }), 3000);
});

// The server does not see the fragment: an event that is not on this page is loaded by its number.
const session = document.querySelector<HTMLElement>("[data-session]")?.dataset.session;
const aimAtEvent = () => {
  const [, seq] = /^#e(\d{1,9})$/.exec(location.hash) ?? [];
  if (session === undefined || seq === undefined || document.getElementById(`e${seq}`)) return;
  const from = `?fromSeq=${Math.max(0, Number(seq) - 3)}`;
  if (location.search !== from) location.replace(session + from + location.hash);
};
addEventListener("hashchange", aimAtEvent);
aimAtEvent();
// Hides the elements that the selector in `data-filters` matches unless they contain every typed word.
document.addEventListener("input", ({ target }) => {
  if (!(target instanceof HTMLInputElement) || target.dataset.filters === undefined) return;
  const words = target.value.toLowerCase().split(/\s+/);
  for (const each of document.querySelectorAll<HTMLElement>(target.dataset.filters)) {
    const text = (each.textContent ?? "").toLowerCase();
    each.hidden = !words.every((word) => text.includes(word));
  }
});
