import type { Page } from "puppeteer-core/internal/puppeteer-core-browser.js";
import { createMapping } from "../../net/mapping.ts";
import type { LimitHit } from "../sandbox/bounds.ts";
import { type ChromiumOptions, startChromium } from "../sandbox/chromium.ts";
import { connect, noEffects, type PageEffects, preparePage, type Watch } from "./browser-setup.ts";

type BrowserDriverOptions = Omit<ChromiumOptions, "egress"> & {
  urlMap: Record<string, string>;
  /** Opens its proxy, when the browser is first needed. */
  openProxy: () => Promise<ChromiumOptions["egress"]>;
};

/** The browser exited, and its page is lost; the next action starts a new one. */
export class BrowserLost extends Error {
  override readonly name = "BrowserLost";
  constructor(
    message: string,
    readonly limit: LimitHit | null = null,
  ) {
    super(message);
  }
}

/** Timeouts for one message to the browser, and for an action with all of its waits. */
const messageMs = 15_000;
const actionMs = 60_000;
/** A page is settled after this long without pending requests. The wait for that takes at most `settleMs`. */
const quietMs = 400;
const settleMs = 4_000;

/** One page in a browser that is started when first needed, and again after it was lost. */
export function createBrowserDriver({ urlMap, signal, ...options }: BrowserDriverOptions) {
  const mapping = createMapping(urlMap);
  const isMapped = (url: string) => URL.canParse(url) && mapping.toMappedUrl(new URL(url)) !== null;
  let openTab: ReturnType<typeof startBrowser> | null = null;
  const watch: Watch = { effects: noEffects(), pending: new Set() };
  const hasUrlMap = Object.keys(urlMap).length > 0;

  return {
    isMapped,
    async settle(): Promise<void> {
      const startedAt = performance.now();
      let quietSince = startedAt;
      for (let at = startedAt; at - startedAt < settleMs && at - quietSince < quietMs; at = performance.now()) {
        await Bun.sleep(50);
        if (watch.pending.size > 0) quietSince = performance.now();
      }
    },
    /**
     * Performs an action on the page and returns what happened meanwhile. Throws BrowserLost, what `work` throws, or
     * the signal's reason.
     */
    async act<T>(work: (page: Page) => Promise<T>): Promise<{ value: T; effects: PageEffects }> {
      openTab ??= startBrowser({ ...options, signal }, watch, hasUrlMap ? isMapped : undefined);
      let tab: Awaited<ReturnType<typeof startBrowser>> | null = null;
      let timer: ReturnType<typeof setTimeout> | undefined;
      try {
        tab = await openTab;
        timer = setTimeout(
          tab.close,
          actionMs,
          `the action did not finish within ${actionMs / 1000} s, so the browser was closed`,
        );
        watch.effects = noEffects();
        return { value: await Promise.race([work(tab.page), tab.loss]), effects: watch.effects };
      } catch (error) {
        signal.throwIfAborted();
        if (!(error instanceof BrowserLost || isUnanswered(error) || isDisconnected(error))) throw error;
        openTab = null;
        if (error instanceof BrowserLost || !tab) throw error;
        tab.close(
          isUnanswered(error)
            ? "the page does not respond, possibly because of an endless script, so the browser was closed"
            : "the action was cancelled",
        );
        return await tab.loss;
      } finally {
        clearTimeout(timer);
      }
    },
    /** Closes the browser and waits until its processes are gone. */
    async close(): Promise<void> {
      const tab = await openTab?.catch(() => null);
      tab?.close("the session has ended");
      await tab?.closed;
    },
  };
}

/**
 * Starts a browser. `isMapped`: whether the urlMap maps a URL, if there is one. When the browser has exited for whatever reason, `closed` resolves
 * and `loss` rejects with BrowserLost.
 */
async function startBrowser(
  { openProxy, ...options }: Omit<BrowserDriverOptions, "urlMap">,
  watch: Watch,
  isMapped?: (url: string) => boolean,
) {
  const chromium = startChromium({ ...options, egress: await openProxy() });
  const browserLoss = Promise.withResolvers<never>();
  browserLoss.promise.catch(() => {});
  let closeReason: string | null = null;
  const closeBrowser = (reason: string) => {
    closeReason ??= reason;
    chromium.kill();
  };
  const closed = chromium.ended.then(({ reason: end, limit }) => {
    browserLoss.reject(new BrowserLost(closeReason ?? `the browser exited: ${end}`, limit));
  });
  const startTimer = setTimeout(closeBrowser, actionMs, "the browser did not start");
  try {
    const pageReady = preparePage(await connect(chromium, messageMs), closeBrowser, watch, isMapped);
    return {
      page: await Promise.race([pageReady, browserLoss.promise]),
      close: closeBrowser,
      closed,
      loss: browserLoss.promise,
    };
  } catch (error) {
    closeBrowser(`the browser did not start: ${error instanceof Error ? error.message : error}`);
    return await browserLoss.promise;
  } finally {
    clearTimeout(startTimer);
  }
}

const isUnanswered = (error: unknown) => error instanceof Error && /timed out.*protocolTimeout/i.test(error.message);
const isDisconnected = (error: unknown) =>
  error instanceof Error &&
  /(Target|Session|Connection) closed|ConnectionClosed|TargetClose/i.test(`${error.name} ${error.message}`);
