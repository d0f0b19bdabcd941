import type { Browser, HTTPRequest, HTTPResponse, Page } from "puppeteer-core/internal/puppeteer-core-browser.js";
import { createMapping } from "../../net/mapping.ts";
import { schemeHeader } from "../egress/forward.ts";
import type { LimitHit } from "../sandbox/bounds.ts";
import { type Chromium, startChromium } from "../sandbox/chromium.ts";

type Options = Omit<Parameters<typeof startChromium>[0], "signal"> & {
  urlMap: Record<string, string>;
  signal: AbortSignal;
};

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

/** The browser is gone, and with it the page; the next action has a new one. */
export class BrowserLost extends Error {
  override readonly name = "BrowserLost";
  constructor(
    message: string,
    readonly limit: LimitHit | null = null,
  ) {
    super(message);
  }
}

/** Of one message to the browser, and of an action with all of its waits. */
const messageMs = 15_000;
const actionMs = 60_000;
/** A page is given time to become quiet: so long without a request on its way, at most so long in all. */
const quietMs = 400;
const settleMs = 4_000;
/** They stay on their way for as long as the page likes. */
const lasting = new Set(["eventsource", "websocket", "media", "ping"]);
/** As many dialogs, windows or addresses in one action are a page that does not end. */
const mostOfAKind = 20;

/** One page in a browser that is started when it is first needed, and again after it was lost. */
export function createBrowsing({ urlMap, signal, ...options }: Options) {
  const mapping = createMapping(urlMap);
  const isMapped = (url: string) => URL.canParse(url) && mapping.toReal(new URL(url)) !== null;
  let opened: ReturnType<typeof open> | null = null;
  let happened = nothing();
  const onTheWay = new Set<HTTPRequest>();

  async function open() {
    const chromium = startChromium({ ...options, signal });
    const gone = Promise.withResolvers<never>();
    gone.promise.catch(() => {});
    let why: string | null = null;
    const lose = (reason: string) => {
      why ??= reason;
      chromium.kill();
    };
    const over = chromium.ended.then(({ why: end, limit }) => {
      gone.reject(new BrowserLost(why ?? `the browser ended: ${end}`, limit));
    });
    const starting = setTimeout(lose, actionMs, "the browser did not start");
    try {
      const page = await Promise.race([prepare(await connect(chromium), lose), gone.promise]);
      return { page, lose, over, gone: gone.promise };
    } catch (error) {
      lose(`the browser did not start: ${error instanceof Error ? error.message : error}`);
      return await gone.promise;
    } finally {
      clearTimeout(starting);
    }
  }

  async function connect(chromium: Chromium): Promise<Browser> {
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

  /** Puts a guard on everything that a page can do beside showing itself. */
  async function prepare(browser: Browser, lose: (why: string) => void): Promise<Page> {
    const [page] = await browser.pages();
    if (!page) throw new Error("it has no page");
    const count = (list: unknown[], what: string) => {
      if (list.length >= mostOfAKind) lose(`the page opened ${what} without end, so the browser was closed`);
    };
    page.on("dialog", (dialog) => {
      const isQuestion = dialog.type() === "prompt";
      happened.dialogs.push(
        `${dialog.type()} ${JSON.stringify(dialog.message().slice(0, 500))}, ${isQuestion ? "cancelled" : "accepted"}`,
      );
      count(happened.dialogs, "dialogs");
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
      happened.navigation = { url: request.url(), response: null, failure: null };
      if (++happened.navigations > mostOfAKind)
        lose("the page led from one address to the next without end, so the browser was closed");
    });
    page.on("response", (response) => {
      const { navigation } = happened;
      if (navigation?.url === response.url() && response.request().isNavigationRequest())
        navigation.response = response;
    });
    page.on("requestfinished", (request) => onTheWay.delete(request));
    page.on("requestfailed", (request) => {
      onTheWay.delete(request);
      const { navigation } = happened;
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
      happened.windows.push(url);
      count(happened.windows, "windows");
    });
    await ofPage.send("Page.enable");
    const whole = await browser.target().createCDPSession();
    whole.on("Browser.downloadWillBegin", ({ url, suggestedFilename: name }) => {
      happened.downloads.push({ url, name });
      count(happened.downloads, "downloads");
    });
    await whole.send("Browser.setDownloadBehavior", { behavior: "deny", eventsEnabled: true });
    if (Object.keys(urlMap).length === 0) return page;
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

  return {
    isMapped,
    async settle(): Promise<void> {
      const begun = performance.now();
      let quietSince = begun;
      for (let at = begun; at - begun < settleMs && at - quietSince < quietMs; at = performance.now()) {
        await Bun.sleep(50);
        if (onTheWay.size > 0) quietSince = performance.now();
      }
    },
    /** Does something with the page, and tells what happened meanwhile. Throws BrowserLost, what `work` throws, or what the signal carries. */
    async act<T>(work: (page: Page) => Promise<T>): Promise<{ value: T; happened: Happened }> {
      opened ??= open();
      let tab: Awaited<ReturnType<typeof open>> | null = null;
      let timer: ReturnType<typeof setTimeout> | undefined;
      try {
        tab = await opened;
        timer = setTimeout(
          tab.lose,
          actionMs,
          `nothing came of it within ${actionMs / 1000} s, so the browser was closed`,
        );
        happened = nothing();
        return { value: await Promise.race([work(tab.page), tab.gone]), happened };
      } catch (error) {
        signal.throwIfAborted();
        if (isUnanswered(error))
          tab?.lose("the page does not answer, as if a script of it ran without end, so the browser was closed");
        const isLost = error instanceof BrowserLost || isUnanswered(error) || isCut(error);
        if (!isLost) throw error;
        opened = null;
        tab?.lose("the browser was cut off");
        throw error instanceof BrowserLost || !tab ? error : await tab.gone.catch((lost: unknown) => lost);
      } finally {
        clearTimeout(timer);
      }
    },
    /** Ends the browser; afterwards nothing of it is left. */
    async close(): Promise<void> {
      const tab = await opened?.catch(() => null);
      tab?.lose("the session is over");
      await tab?.over;
    },
  };
}

const nothing = (): Happened => ({ dialogs: [], windows: [], downloads: [], navigation: null, navigations: 0 });

const toHeaders = (headers: Record<string, string>) =>
  Object.entries(headers).map(([name, value]) => ({ name, value }));

const isUnanswered = (error: unknown) => error instanceof Error && /timed out.*protocolTimeout/i.test(error.message);
const isCut = (error: unknown) =>
  error instanceof Error &&
  /(Target|Session|Connection) closed|ConnectionClosed|TargetClose/i.test(`${error.name} ${error.message}`);
