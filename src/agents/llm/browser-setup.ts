import type { Browser, HTTPRequest, HTTPResponse, Page } from "puppeteer-core/internal/puppeteer-core-browser.js";
import { schemeHeader } from "../egress/forward.ts";
import type { Chromium } from "../sandbox/chromium.ts";

/** The last address that the page itself went to, and what came of it. */
type Navigation = { url: string; response: HTTPResponse | null; failure: string | null };

/** What happened on the page beside what was asked for, since the last action began. */
export type Happened = {
  /** As the page worded them, with what was answered. */
  dialogs: string[];
  /** Addresses of windows that it wanted to open. */
  windows: string[];
  downloads: { url: string; name: string }[];
  navigation: Navigation | null;
  navigations: number;
};

/** What is noted of a page: it begins anew with each action, the requests with each page. */
export type Watch = { happened: Happened; onTheWay: Set<HTTPRequest> };

/** They stay on their way for as long as the page likes. */
const lasting = new Set(["eventsource", "websocket", "media", "ping"]);
/** As many dialogs, windows or addresses in one action are a page that does not end. */
const mostOfAKind = 20;

export const nothing = (): Happened => ({ dialogs: [], windows: [], downloads: [], navigation: null, navigations: 0 });

/** Speaks to a browser over its pipe. `messageMs`: the longest that it may take to answer one message. */
export async function connect(chromium: Chromium, messageMs: number): Promise<Browser> {
  const puppeteer = await import("puppeteer-core/internal/puppeteer-core-browser.js");
  // A busy machine may take longer to start it than any later message may take.
  await new Promise((answered) => {
    chromium.hear = answered;
    chromium.send(JSON.stringify({ id: 0, method: "Browser.getVersion" }));
  });
  const transport = {
    send: chromium.send,
    close: chromium.kill,
    onmessage: (_: string) => {},
    onclose: () => {},
  };
  chromium.hear = (message) => transport.onmessage(message);
  chromium.ended.then(() => transport.onclose());
  return puppeteer.connect({ transport, defaultViewport: null, protocolTimeout: messageMs });
}

/** Guards everything that a page can do beside showing itself, and notes it. `isMapped`: whether the urlMap leads an address elsewhere; without it none does. */
export async function prepare(
  browser: Browser,
  { lose, watch, isMapped }: { lose: (why: string) => void; watch: Watch; isMapped?: (url: string) => boolean },
): Promise<Page> {
  const { onTheWay } = watch;
  const [page] = await browser.pages();
  if (!page) throw new Error("the browser has no page");
  const count = (list: unknown[], what: string) => {
    if (list.length >= mostOfAKind) lose(`the page opened too many ${what}, so the browser was closed`);
  };
  page.on("dialog", (dialog) => {
    const isQuestion = dialog.type() === "prompt";
    watch.happened.dialogs.push(
      `${dialog.type()} ${JSON.stringify(dialog.message().slice(0, 500))}, ${isQuestion ? "cancelled" : "accepted"}`,
    );
    count(watch.happened.dialogs, "dialogs");
    (isQuestion ? dialog.dismiss() : dialog.accept()).catch(() => {});
  });
  page.on("error", () => lose("the page crashed, so the browser was closed"));
  onTheWay.clear();
  page.on("request", (request) => {
    const isOfPage = request.isNavigationRequest() && request.frame() === page.mainFrame();
    // What the page before it still waits for is nobody's.
    if (isOfPage) onTheWay.clear();
    if (/^http/.test(request.url()) && !lasting.has(request.resourceType())) onTheWay.add(request);
    if (!isOfPage) return;
    watch.happened.navigation = { url: request.url(), response: null, failure: null };
    if (++watch.happened.navigations > mostOfAKind)
      lose("the page navigated in an endless loop, so the browser was closed");
  });
  page.on("response", (response) => {
    const { navigation } = watch.happened;
    if (navigation?.url === response.url() && response.request().isNavigationRequest()) navigation.response = response;
  });
  page.on("requestfinished", (request) => onTheWay.delete(request));
  page.on("requestfailed", (request) => {
    onTheWay.delete(request);
    const { navigation } = watch.happened;
    if (navigation?.url === request.url() && request.isNavigationRequest())
      navigation.failure = request.failure()?.errorText ?? "failed";
  });
  browser.on("targetcreated", async (target) => {
    if (target.type() === "page")
      await target
        .page()
        .then((other) => other?.close())
        .catch(() => {});
  });
  const ofPage = await page.createCDPSession();
  ofPage.on("Page.windowOpen", ({ url }) => {
    watch.happened.windows.push(url);
    count(watch.happened.windows, "windows");
  });
  await ofPage.send("Page.enable");
  const whole = await browser.target().createCDPSession();
  whole.on("Browser.downloadWillBegin", ({ url, suggestedFilename: name }) => {
    watch.happened.downloads.push({ url, name });
    count(watch.happened.downloads, "downloads");
  });
  await whole.send("Browser.setDownloadBehavior", { behavior: "deny", eventsEnabled: true });
  if (!isMapped) return page;
  // A tunnel cannot follow a urlMap: what is asked for by https in the page goes out by the plain way, and says so.
  whole.on("Fetch.requestPaused", ({ requestId, request: { url, headers } }) => {
    const plain = {
      url: url.replace(/^https:/, "http:"),
      headers: toHeaders({ ...headers, [schemeHeader]: "https" }),
    };
    whole.send("Fetch.continueRequest", { requestId, ...(isMapped(url) && plain) }).catch(() => {});
  });
  await whole.send("Fetch.enable", { patterns: [{ urlPattern: "https://*" }] });
  return page;
}

const toHeaders = (headers: Record<string, string>) =>
  Object.entries(headers).map(([name, value]) => ({ name, value }));
