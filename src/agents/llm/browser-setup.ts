import type { Browser, HTTPRequest, HTTPResponse, Page } from "puppeteer-core/internal/puppeteer-core-browser.js";
import { schemeHeader } from "../egress/headers.ts";
import type { Chromium } from "../sandbox/chromium.ts";

/** The last URL that the page itself navigated to, with its result. */
type Navigation = { url: string; response: HTTPResponse | null; failure: string | null };

/** Side effects on the page since the last action started. */
export type PageEffects = {
  /** The page's text, and how we answered. */
  dialogs: string[];
  /** URLs of windows that it tried to open. */
  windows: string[];
  downloads: { url: string; name: string }[];
  navigation: Navigation | null;
  navigationCount: number;
};

/** What is observed on a page. `effects` is reset by each action, `pending` by each navigation. */
export type Watch = { effects: PageEffects; pending: Set<HTTPRequest> };

/** Requests that stay open for as long as the page likes. */
const longLivedTypes = new Set(["eventsource", "websocket", "media", "ping"]);
/** More dialogs, windows or navigations than this in one action are an endless loop. */
const maxPerKind = 20;

/** The effects before a page did anything. */
export const noEffects = (): PageEffects => ({
  dialogs: [],
  windows: [],
  downloads: [],
  navigation: null,
  navigationCount: 0,
});

/** Connects to a browser over its pipe. `messageMs`: timeout of one message. */
export async function connect(chromium: Chromium, messageMs: number): Promise<Browser> {
  const puppeteer = await import("puppeteer-core/internal/puppeteer-core-browser.js");
  // On a busy machine, the start may take longer than any later message.
  await new Promise((onAnswer) => {
    chromium.onMessage = onAnswer;
    chromium.send(JSON.stringify({ id: 0, method: "Browser.getVersion" }));
  });
  const transport = {
    send: chromium.send,
    close: chromium.kill,
    onmessage: (_: string) => {},
    onclose: () => {},
  };
  chromium.onMessage = (message) => transport.onmessage(message);
  chromium.ended.then(() => transport.onclose());
  return puppeteer.connect({ transport, defaultViewport: null, protocolTimeout: messageMs });
}

/**
 * Restricts and observes everything that a page can do besides rendering. `isMapped`: whether the urlMap maps a URL;
 * omitted if there is no urlMap.
 */
export async function preparePage(
  browser: Browser,
  closeBrowser: (reason: string) => void,
  watch: Watch,
  isMapped?: (url: string) => boolean,
): Promise<Page> {
  const [page] = await browser.pages();
  if (!page) throw new Error("the browser has no page");
  const checkCount = (list: unknown[], kind: string) => {
    if (list.length >= maxPerKind) closeBrowser(`the page opened too many ${kind}, so the browser was closed`);
  };
  page.on("dialog", (dialog) => {
    const isQuestion = dialog.type() === "prompt";
    watch.effects.dialogs.push(
      `${dialog.type()} ${JSON.stringify(dialog.message().slice(0, 500))}, ${isQuestion ? "cancelled" : "accepted"}`,
    );
    checkCount(watch.effects.dialogs, "dialogs");
    (isQuestion ? dialog.dismiss() : dialog.accept()).catch(() => {});
  });
  page.on("error", () => closeBrowser("the page crashed, so the browser was closed"));
  watchRequests(page, watch, closeBrowser);
  browser.on("targetcreated", async (target) => {
    if (target.type() === "page")
      await target
        .page()
        .then((openedPage) => openedPage?.close())
        .catch(() => {});
  });
  const pageSession = await page.createCDPSession();
  pageSession.on("Page.windowOpen", ({ url }) => {
    watch.effects.windows.push(url);
    checkCount(watch.effects.windows, "windows");
  });
  await pageSession.send("Page.enable");
  const browserSession = await browser.target().createCDPSession();
  browserSession.on("Browser.downloadWillBegin", ({ url, suggestedFilename: name }) => {
    watch.effects.downloads.push({ url, name });
    checkCount(watch.effects.downloads, "downloads");
  });
  await browserSession.send("Browser.setDownloadBehavior", { behavior: "deny", eventsEnabled: true });
  if (!isMapped) return page;
  // A tunnel can't apply a urlMap, so mapped https requests of the page are sent as http with a header that says so.
  browserSession.on("Fetch.requestPaused", ({ requestId, request: { url, headers } }) => {
    const httpRequest = {
      url: url.replace(/^https:/, "http:"),
      headers: toHeaders({ ...headers, [schemeHeader]: "https" }),
    };
    browserSession.send("Fetch.continueRequest", { requestId, ...(isMapped(url) && httpRequest) }).catch(() => {});
  });
  await browserSession.send("Fetch.enable", { patterns: [{ urlPattern: "https://*" }] });
  return page;
}

/** Keeps the requests in progress, and the result of the page's own navigation. */
function watchRequests(page: Page, watch: Watch, closeBrowser: (reason: string) => void): void {
  const { pending } = watch;
  pending.clear();
  page.on("request", (request) => {
    const isPageNavigation = request.isNavigationRequest() && request.frame() === page.mainFrame();
    // Pending requests of the previous page don't matter.
    if (isPageNavigation) pending.clear();
    if (/^http/.test(request.url()) && !longLivedTypes.has(request.resourceType())) pending.add(request);
    if (!isPageNavigation) return;
    watch.effects.navigation = { url: request.url(), response: null, failure: null };
    if (++watch.effects.navigationCount > maxPerKind)
      closeBrowser("the page navigated in an endless loop, so the browser was closed");
  });
  page.on("response", (response) => {
    const { navigation } = watch.effects;
    if (navigation?.url === response.url() && response.request().isNavigationRequest()) navigation.response = response;
  });
  page.on("requestfinished", (request) => pending.delete(request));
  page.on("requestfailed", (request) => {
    pending.delete(request);
    const { navigation } = watch.effects;
    if (navigation?.url === request.url() && request.isNavigationRequest())
      navigation.failure = request.failure()?.errorText ?? "failed";
  });
}

const toHeaders = (headers: Record<string, string>) =>
  Object.entries(headers).map(([name, value]) => ({ name, value }));
