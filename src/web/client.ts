/// <reference lib="dom" />
import htmx from "htmx.org/dist/htmx.esm.min.js";
import "htmx.org/dist/ext/hx-sse.min.js";
import { openPalette } from "./client-palette.ts";
import "./client-passkeys.ts";

/** Keyboard shortcuts such as "g p". They come from the links with data-key. */
const goKeys = new Map([...document.querySelectorAll<HTMLAnchorElement>("a[data-key]")].map((a) => [a.dataset.key, a]));

document.documentElement.classList.add("live");

let isGoPressed = false;

const isTyping = (target: EventTarget | null) =>
  target instanceof HTMLElement && target.closest("input, textarea, select, [contenteditable]") !== null;

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || isTyping(event.target)) return;
  if (isGoPressed) {
    isGoPressed = false;
    goKeys.get(`g ${event.key}`)?.click();
  } else if (event.key === "g") isGoPressed = true;
  else if (event.key === "/") {
    const search = document.querySelector<HTMLInputElement>('input[type="search"]');
    if (search) {
      search.focus();
      search.select();
    }
    if (search || openPalette()) event.preventDefault();
  } else if (event.key === "?") document.querySelector<HTMLDialogElement>("#keys")?.showModal();
});

// Checks the size of files in the browser, because the server returns no page for a form that is much too large.
document.addEventListener("change", ({ target: input }) => {
  if (!(input instanceof HTMLInputElement) || !input.dataset.maxMib) return;
  const isLarge = [...(input.files ?? [])].some(({ size }) => size > Number(input.dataset.maxMib) * 1024 ** 2);
  input.setCustomValidity(isLarge ? `Choose a file of at most ${input.dataset.maxMib} MiB.` : "");
  input.reportValidity();
});

/**
 * The text to copy. It is `data-copy` itself, or the element that `data-copy` selects. If `data-copy` is empty, it is the previous element. With
 * `data-copy-from`, it is the response of that URL.
 */
async function textOf({ dataset: { copy = "", copyFrom }, previousElementSibling }: HTMLElement): Promise<string> {
  if (copyFrom) return (await window.fetch(copyFrom)).text();
  if (copy === "") return previousElementSibling?.textContent ?? "";
  return copy.startsWith("#") ? (document.querySelector(copy)?.textContent ?? "") : copy;
}

document.addEventListener("click", async (event) => {
  const button =
    event.target instanceof Element ? event.target.closest<HTMLElement>("[data-copy], [data-copy-from]") : null;
  if (!button) return;
  await navigator.clipboard.writeText(await textOf(button));
  const label = button.textContent;
  button.textContent = "Copied";
  setTimeout(() => {
    button.textContent = label;
  }, 1500);
});

// Changes the color scheme immediately. A reload would discard typed text.
document.addEventListener("submit", (event) => {
  const { target: form, submitter } = event;
  if (!(form instanceof HTMLFormElement && form.matches(".theme") && submitter instanceof HTMLButtonElement)) return;
  event.preventDefault();
  const { name, value } = submitter;
  window.fetch(form.action, { method: "POST", body: new URLSearchParams({ [name]: value }), redirect: "manual" });
  const isSystem = value === "system";
  document.documentElement.dataset.theme = value;
  document.querySelector('meta[name="color-scheme"]')?.setAttribute("content", isSystem ? "light dark" : value);
  for (const each of form.querySelectorAll("button")) each.setAttribute("aria-pressed", String(each === submitter));
});

// Reconnects a live page that has lost its event stream, and shows a notice until then.
const connectionNotice = Object.assign(document.createElement("p"), { id: "connection", className: "notice bad" });
connectionNotice.setAttribute("role", "alert");
const showConnectionLost = (source: Element, status?: number) => {
  connectionNotice.textContent =
    status === 401
      ? "You’re signed out, and this page may be out of date. Reload it to sign in."
      : "Connection lost. Reconnecting… Data may be out of date.";
  if (source.isConnected && !connectionNotice.isConnected) document.querySelector("main")?.prepend(connectionNotice);
};
document.addEventListener("htmx:sse:error", ({ target, detail }: Event & { detail?: { status?: number } }) => {
  if (target instanceof Element) showConnectionLost(target, detail?.status);
});
document.addEventListener("htmx:sse:after:connection", () => connectionNotice.remove());
// htmx does not retry a stream that has never opened.
document.addEventListener("htmx:error", ({ target: source }) => {
  const path = source instanceof Element ? source.getAttribute("hx-sse:connect") : null;
  if (!(source instanceof Element && path)) return;
  showConnectionLost(source);
  setTimeout(() => htmx.ajax("GET", path, { source }), 3000);
});

// The server does not see the fragment of the URL. So if it names an event that is not on this page, the event is loaded by its number.
const sessionPath = document.querySelector<HTMLElement>("[data-session]")?.dataset.session;
/** The number of events before it that are loaded as well. */
const eventsBefore = 3;
const loadLinkedEvent = () => {
  const [, seq] = /^#e(\d{1,9})$/.exec(location.hash) ?? [];
  if (sessionPath === undefined || seq === undefined || document.getElementById(`e${seq}`)) return;
  const from = `?fromSeq=${Math.max(0, Number(seq) - eventsBefore)}`;
  if (location.search !== from) location.replace(sessionPath + from + location.hash);
};
/** Opens the element that the URL links to. Browsers only open the elements around it. */
const openTarget = () => {
  // The :target may not be set before the page has loaded.
  const target = document.getElementById(location.hash.slice(1));
  for (let each: HTMLElement | null = target; each; each = each.parentElement)
    if (each instanceof HTMLDetailsElement) each.open = true;
  target?.scrollIntoView();
};
addEventListener("hashchange", () => {
  loadLinkedEvent();
  openTarget();
});
loadLinkedEvent();
openTarget();

// A live timeline follows its newest row until the reader pauses it.
const follow = document.querySelector<HTMLInputElement>("[data-follow]");
const timeline = follow && document.querySelector(follow.dataset.follow ?? "");
const showNewest = () => {
  if (follow?.checked) timeline?.lastElementChild?.scrollIntoView({ block: "nearest" });
};
if (timeline) new MutationObserver(showNewest).observe(timeline, { childList: true });
follow?.addEventListener("change", showNewest);
showNewest();

// Filters the elements that the selector in `data-filters` matches. Elements that don't contain every typed word are hidden.
document.addEventListener("input", ({ target }) => {
  if (!(target instanceof HTMLInputElement) || target.dataset.filters === undefined) return;
  const words = target.value.toLowerCase().split(/\s+/);
  for (const each of document.querySelectorAll<HTMLElement>(target.dataset.filters)) {
    const text = (each.textContent ?? "").toLowerCase();
    each.hidden = !words.every((word) => text.includes(word));
  }
});

// Enables the buttons over a list with checkboxes only if the number of selected rows is in the range of `data-select`, such as 2-10.
const updateSelectionButtons = () => {
  for (const button of document.querySelectorAll<HTMLButtonElement>("button[data-select]")) {
    const [min = 0, max = 0] = (button.dataset.select ?? "").split("-").map(Number);
    const count = button.form?.querySelectorAll("input[type=checkbox]:checked").length ?? 0;
    button.disabled = count < min || count > max;
  }
};
document.addEventListener("change", updateSelectionButtons);
document.addEventListener("htmx:after:settle", updateSelectionButtons);
updateSelectionButtons();

// Leaves empty fields of a filter out of the URL.
document.addEventListener("formdata", ({ target, formData }) => {
  if (!(target instanceof HTMLFormElement) || target.method !== "get") return;
  for (const [name, value] of [...formData]) if (value === "") formData.delete(name);
});

// Opens everything for printing, in browsers that can't do that with CSS.
const openedToPrint = new Set<HTMLDetailsElement>();
addEventListener("beforeprint", () => {
  for (const each of document.querySelectorAll<HTMLDetailsElement>("main details:not([open], .act)")) {
    openedToPrint.add(each);
    each.open = true;
  }
});
addEventListener("afterprint", () => {
  for (const each of openedToPrint) each.open = false;
  openedToPrint.clear();
});

// Without a network, a page stays unchanged until someone clicks. Then the browser would show its own error page.
const offlineNotice = Object.assign(document.createElement("p"), {
  id: "offline",
  className: "notice bad",
  textContent:
    "You’re offline. This page may be out of date, and links and forms won’t work until the connection is back.",
});
offlineNotice.setAttribute("role", "alert");
const stylesheet = document.querySelector<HTMLLinkElement>('link[rel="stylesheet"]');
/** Whether the service is on this machine, where it can be reached without a network. */
const isReachable = () =>
  window.fetch(stylesheet?.href ?? location.href, { method: "HEAD", cache: "no-store" }).then(
    () => true,
    () => false,
  );
const showNetwork = async () => {
  if (navigator.onLine || (await isReachable())) offlineNotice.remove();
  else document.querySelector("main")?.prepend(offlineNotice);
};
addEventListener("online", showNetwork);
addEventListener("offline", showNetwork);
void showNetwork();
// A link or a form would replace the page, including typed text, with the browser's error page.
const keepPage = (event: Event) => {
  if (!offlineNotice.isConnected || event.defaultPrevented) return;
  event.preventDefault();
  offlineNotice.scrollIntoView({ block: "nearest" });
};
document.addEventListener("submit", keepPage);
document.addEventListener("click", (event) => {
  const link = event.target instanceof Element ? event.target.closest("a[href]") : null;
  if (link && !link.getAttribute("href")?.startsWith("#") && event.button === 0) keepPage(event);
});
