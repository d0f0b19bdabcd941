import type { Page } from "puppeteer-core/internal/puppeteer-core-browser.js";
import { createMapping } from "../../net/mapping.ts";
import type { LimitHit } from "../sandbox/bounds.ts";
import { startChromium } from "../sandbox/chromium.ts";
import { connect, type Happened, nothing, prepare, type Watch } from "./browser-setup.ts";

type Options = Omit<Parameters<typeof startChromium>[0], "signal"> & {
  urlMap: Record<string, string>;
  signal: AbortSignal;
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
/** One page in a browser that is started when it is first needed, and again after it was lost. */
export function createBrowsing({ urlMap, signal, ...options }: Options) {
  const mapping = createMapping(urlMap);
  const isMapped = (url: string) => URL.canParse(url) && mapping.toReal(new URL(url)) !== null;
  let opened: ReturnType<typeof open> | null = null;
  const watch: Watch = { happened: nothing(), onTheWay: new Set() };
  const mapsAnything = Object.keys(urlMap).length > 0;

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
      gone.reject(new BrowserLost(why ?? `the browser exited: ${end}`, limit));
    });
    const starting = setTimeout(lose, actionMs, "the browser did not start");
    try {
      const page = await Promise.race([
        prepare(await connect(chromium, messageMs), { lose, watch, ...(mapsAnything && { isMapped }) }),
        gone.promise,
      ]);
      return { page, lose, over, gone: gone.promise };
    } catch (error) {
      lose(`the browser did not start: ${error instanceof Error ? error.message : error}`);
      return await gone.promise;
    } finally {
      clearTimeout(starting);
    }
  }

  return {
    isMapped,
    async settle(): Promise<void> {
      const begun = performance.now();
      let quietSince = begun;
      for (let at = begun; at - begun < settleMs && at - quietSince < quietMs; at = performance.now()) {
        await Bun.sleep(50);
        if (watch.onTheWay.size > 0) quietSince = performance.now();
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
          `the action did not finish within ${actionMs / 1000} s, so the browser was closed`,
        );
        watch.happened = nothing();
        return { value: await Promise.race([work(tab.page), tab.gone]), happened: watch.happened };
      } catch (error) {
        signal.throwIfAborted();
        if (isUnanswered(error))
          tab?.lose("the page does not respond, possibly because of an endless script, so the browser was closed");
        const isLost = error instanceof BrowserLost || isUnanswered(error) || isCut(error);
        if (!isLost) throw error;
        opened = null;
        tab?.lose("the action was canceled");
        throw error instanceof BrowserLost || !tab ? error : await tab.gone.catch((lost: unknown) => lost);
      } finally {
        clearTimeout(timer);
      }
    },
    /** Ends the browser; afterwards nothing of it is left. */
    async close(): Promise<void> {
      const tab = await opened?.catch(() => null);
      tab?.lose("the session has ended");
      await tab?.over;
    },
  };
}

const isUnanswered = (error: unknown) => error instanceof Error && /timed out.*protocolTimeout/i.test(error.message);
const isCut = (error: unknown) =>
  error instanceof Error &&
  /(Target|Session|Connection) closed|ConnectionClosed|TargetClose/i.test(`${error.name} ${error.message}`);
