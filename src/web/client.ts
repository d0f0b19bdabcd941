/// <reference lib="dom" />
import "htmx.org/dist/htmx.esm.min.js";
import "htmx.org/dist/ext/hx-sse.min.js";

/** Two strokes that lead somewhere: the links of the page say which. */
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

/** What a button copies: the text of `data-copy`, of the element that it names, or of the address in `data-copy-from`. */
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

// A page that is live and hears nothing any more says so, and tries again until it hears.
let lost: HTMLElement | undefined;
const live = "[hx-sse\\:connect]";
const heard = () => {
  lost?.remove();
  lost = undefined;
};
const tellLost = ({ target, detail }: Event & { detail?: { status?: number } }) => {
  if (!(target instanceof Element && target.matches(live)) || lost) return;
  lost = Object.assign(document.createElement("p"), {
    className: "notice bad",
    textContent:
      detail?.status === 401
        ? "You are signed out: what stands here may be old. Reload the page to sign in."
        : "The connection is lost: what stands here may be old. It is being tried again.",
  });
  lost.setAttribute("role", "alert");
  document.querySelector("main")?.prepend(lost);
};
document.addEventListener("htmx:sse:error", tellLost);
document.addEventListener("htmx:sse:after:connection", heard);

// The server does not hear of what stands after `#`: an event that is not on this page is asked for by its number.
const session = document.querySelector<HTMLElement>("[data-session]")?.dataset.session;
const aimAtEvent = () => {
  const [, seq] = /^#e(\d{1,9})$/.exec(location.hash) ?? [];
  if (session === undefined || seq === undefined || document.getElementById(`e${seq}`)) return;
  const from = `?fromSeq=${Math.max(0, Number(seq) - 3)}`;
  if (location.search !== from) location.replace(session + from + location.hash);
};
addEventListener("hashchange", aimAtEvent);
aimAtEvent();
// `data-filters` is a selector: what does not hold every word that is typed is hidden.
document.addEventListener("input", ({ target }) => {
  if (!(target instanceof HTMLInputElement) || target.dataset.filters === undefined) return;
  const words = target.value.toLowerCase().split(/\s+/);
  for (const each of document.querySelectorAll<HTMLElement>(target.dataset.filters)) {
    const text = (each.textContent ?? "").toLowerCase();
    each.hidden = !words.every((word) => text.includes(word));
  }
});
