import type { ElementHandle, Page } from "puppeteer-core/internal/puppeteer-core-browser.js";
import { z } from "zod";
import { reasonOf } from "../../errors.ts";
import { createHostList, type HostList } from "../../net/hosts.ts";
import { failureHeader } from "../../net/tunnel-agents.ts";
import type { AgentResources, EgressSocket } from "../agent.ts";
import { shorten } from "../event-size.ts";
import { withoutFragment } from "../reader.ts";
import type { Relay } from "../relay/relay.ts";
import { hostUrlsOf, type Task } from "../task.ts";
import { BrowserLost, createBrowserDriver } from "./browser-page.ts";
import type { PageEffects } from "./browser-setup.ts";
import { type PageText, toPageText } from "./browser-tree.ts";
import { defineTool, maxUrlChars, type ToolCall, type ToolResult } from "./tool.ts";

/** Limits of one snapshot. */
const snapshotChars = 12_000;
const loadMs = 15_000;
const elementMs = 8_000;
const maxImageBytes = 512 * 1024;
const maxScreenshots = 20;
/** Quality of a screenshot in percent. The reduced quality is for a screenshot that would be too large. */
const screenshotQuality = { usual: 80, reduced: 20 };
/** A page that redirects several times in a row may navigate during several snapshots. */
const maxSnapshotRetries = 3;

type BrowserResources = AgentResources & { browser: Extract<AgentResources["browser"], { program: string }> };

/** Opens a relay to the browser's egress session; `findCurrentCallId` tells the ID of the call in progress. */
export type OpenRelay = (
  egress: EgressSocket,
  findCurrentCallId: () => string | null,
) => { open: () => Promise<Relay>; [Symbol.asyncDispose](): Promise<unknown> };

/** The browser of a session, and the page that is open in it. */
type Browser = {
  driver: ReturnType<typeof createBrowserDriver>;
  hosts: HostList;
  signal: AbortSignal;
  /** The elements of the page that the model got last. */
  tree: PageText | null;
  screenshots: number;
  /** ID of the last call, to which the requests of its page belong. */
  callId: string | null;
};

const browserInput = z.object({
  action: z.enum(["open", "click", "type", "read", "screenshot"]),
  url: z.string().optional(),
  ref: z.string().optional(),
  text: z.string().optional(),
  submit: z.boolean().optional(),
  from: z.number().int().min(0).optional(),
});

/** The browser as a tool: `browse`, one action per call. */
export function browserTools(
  task: Task,
  { browser: resources, operatorHosts }: BrowserResources,
  { signal, openRelay }: { signal: AbortSignal; openRelay: OpenRelay | null },
) {
  const { urlMap, limits } = task;
  const { program, egress } = resources;
  const relay = openRelay?.(egress, () => browser.callId) ?? null;
  const openProxy = async () => (relay ? (await relay.open()).toBrowserProxy() : egress);
  const driver = createBrowserDriver({ program, openProxy, memoryBytes: limits.memoryBytes, urlMap, signal });
  const hosts = createHostList({ ...hostUrlsOf(task), operatorHosts });
  const browser: Browser = { driver, hosts, signal, tree: null, screenshots: 0, callId: null };
  return {
    tools: {
      browse: defineTool({
        description: `Use a browser, for pages that need scripts or forms. Actions: open {url}; click {ref}; type {ref, text, submit: true to press Enter} into a field, or choose an option by its text; read {from} to read the page again; screenshot to save an image for the readers of the report (you do not get it). Each action returns the accessibility tree of the page, at most ${snapshotChars} characters; [e12] after an element is its ref. Dialogs are accepted.`,
        input: browserInput,
        run: (input, call): Promise<ToolResult> => actions[input.action](browser, input, call),
      }),
    },
    async [Symbol.asyncDispose]() {
      await driver.close();
      await relay?.[Symbol.asyncDispose]();
    },
  };
}

type BrowserInput = z.infer<typeof browserInput>;

const actions = {
  async open(browser: Browser, { url = "" }: BrowserInput, call: ToolCall): Promise<ToolResult> {
    if (!isWeb(url)) return { ok: false, output: { url, message: "url is required: an absolute http or https URL" } };
    return performAction(browser, call, (page) => openUrl(page, url, browser.driver.settle));
  },
  click: (browser: Browser, { ref }: BrowserInput, call: ToolCall) =>
    performAction(browser, call, async () => {
      await (await elementOf(browser, ref)).click();
      await browser.driver.settle();
      return null;
    }),
  type: (browser: Browser, { ref, text = "", submit }: BrowserInput, call: ToolCall) =>
    performAction(browser, call, async () => {
      const element = await elementOf(browser, ref);
      await fill(element, text);
      if (submit) await element.press("Enter");
      await browser.driver.settle();
      return null;
    }),
  read: (browser: Browser, { from = 0 }: BrowserInput, call: ToolCall) =>
    performAction(browser, call, async () => null, from),
  async screenshot(browser: Browser, _: BrowserInput, call: ToolCall): Promise<ToolResult> {
    if (browser.screenshots >= maxScreenshots)
      return { ok: false, output: { message: `the limit of ${maxScreenshots} screenshots per run is reached` } };
    try {
      const { value } = await browser.driver.act(async (page) => {
        if (!isWeb(page.url())) throw new Error("no page is open; open one first");
        return { image: await takeScreenshot(page), url: page.url() };
      });
      const { image, url } = value;
      const artifact = { name: `screenshot-${++browser.screenshots}.webp`, bytes: image.length };
      const data = Buffer.from(image).toString("base64");
      return { ok: true, output: { url, kept: artifact.name }, artifact: { ...artifact, data } };
    } catch (error) {
      return toFailure(browser, error, call);
    }
  },
};

/** Performs one action and returns a snapshot of the page, starting at a character. `work` returns a problem, or null. */
async function performAction(
  browser: Browser,
  call: ToolCall,
  work: (page: Page) => Promise<string | null>,
  from = 0,
): Promise<ToolResult> {
  const { driver } = browser;
  browser.callId = call.id;
  try {
    const { value, effects } = await driver.act(async (page) => {
      const actionProblem = await work(page);
      const { tree, ...snapshot } = await retryAfterNavigation(() => takeSnapshot(page, from), driver.settle);
      browser.tree = tree;
      if (isForbidden(snapshot.url)) await page.goto("about:blank");
      return { actionProblem, snapshot };
    });
    const { actionProblem, snapshot } = value;
    const pageProblem = await findPageProblem(browser, effects, snapshot.url);
    const { dialogs, navigation } = effects;
    const status = navigation?.response?.status();
    const page = isErrorPage(snapshot.url) && navigation ? { ...snapshot, url: navigation.url } : snapshot;
    const output = {
      ...(pageProblem ?? (actionProblem === null ? {} : { message: actionProblem })),
      ...(status === undefined ? {} : { status }),
      ...(dialogs.length > 0 && { dialogs }),
      ...page,
    };
    const ok = pageProblem === null && actionProblem === null;
    if (ok && navigation && isWeb(snapshot.url)) {
      const { chars, title } = snapshot;
      const detail = { url: withoutFragment(snapshot.url), chars, form: "html" as const, title };
      call.report({ type: "milestone", name: "page_read", detail });
    }
    return { ok, output };
  } catch (error) {
    return toFailure(browser, error, call);
  }
}

function toFailure(browser: Browser, error: unknown, { report }: ToolCall): ToolResult {
  browser.signal.throwIfAborted();
  if (error instanceof BrowserLost) {
    browser.tree = null;
    if (error.limit) report({ type: "limit", ...error.limit });
    return { ok: false, output: { message: `${error.message}; open a URL to continue` } };
  }
  return { ok: false, output: { message: reasonOf(error).slice(0, 500) } };
}

async function elementOf({ tree }: Browser, ref: string | undefined): Promise<ElementHandle<Element>> {
  if (!ref) throw new Error("ref is required: an element reference such as e12 from the result of open or read");
  const element = await tree?.find(ref.replace(/[[\]]/g, ""))?.elementHandle();
  if (!element) throw new Error(`there is no element ${ref} on the page; use read to get current references`);
  return element as ElementHandle<Element>;
}

const isWeb = (url: string) => /^https?:$/.test(URL.parse(url)?.protocol ?? "");
const isErrorPage = (url: string) => url.startsWith("chrome-error:");
/** Whether a page is neither on the web nor shown by the browser itself. An example is a `data:` URL. */
const isForbidden = (url: string) => !isWeb(url) && url !== "about:blank" && !isErrorPage(url);
const isTimeout = (error: unknown) => error instanceof Error && error.name === "TimeoutError";

/** Problems with the page in addition to those of the action itself; null if there are none. */
async function findPageProblem(
  { hosts, driver }: Browser,
  { navigation, downloads, windows }: PageEffects,
  url: string,
) {
  const [download] = downloads;
  if (download)
    return {
      message: `${download.url} is a download (${download.name.slice(0, 100)}), which the browser does not save; download it with another tool`,
    };
  if (windows.length > 0)
    return {
      message: `the page tried to open a window for ${windows.map((each) => each.slice(0, 500)).join(", ")}, which was blocked; open the URL instead`,
    };
  if (isForbidden(url))
    return {
      error: "refused",
      message: `the page navigated to ${url.slice(0, 200)}; only http and https URLs can be opened`,
    };
  const { response, failure } = navigation ?? {};
  const kind = response?.headers()[failureHeader];
  if (kind) return { error: kind, message: shorten((await response?.text().catch(() => "")) ?? "", 500).trim() };
  if (navigation && failure) {
    const { hostname } = new URL(navigation.url);
    if (!hosts.permits(hostname) && !driver.isMapped(navigation.url))
      return { error: "refused", message: hosts.objection(hostname) };
    const reason = /TOO_MANY_REDIRECTS/.test(failure) ? "it redirects endlessly" : failure;
    return { error: "network", message: `${navigation.url} could not be opened: ${reason}` };
  }
  const status = response?.status() ?? 200;
  return status < 400 ? null : { message: `${navigation?.url} returned status ${status}` };
}

/** Opens a URL. Returns null, or a note that only a part of the page loaded. Network errors are part of what happened to the page. */
async function openUrl(page: Page, url: string, settle: () => Promise<void>): Promise<string | null> {
  try {
    await page.goto(url, { waitUntil: "domcontentloaded", timeout: loadMs });
  } catch (error) {
    if (isTimeout(error)) {
      await page.createCDPSession().then((session) => session.send("Page.stopLoading"));
      return `${url} did not finish loading within ${loadMs / 1000} s; the part that loaded is shown`;
    }
    if (/net::|interrupted|frame was detached/i.test(String(error))) return null;
    throw error;
  }
  await settle();
  return null;
}

/** A part of the page's text, starting at a character. `tree`: the whole page, with its references. */
async function takeSnapshot(page: Page, from: number) {
  const url = page.url();
  const title = (await page.title()).slice(0, 200);
  const root = isWeb(url) ? await page.accessibility.snapshot({ interestingOnly: false, includeIframes: true }) : null;
  const tree = root ? toPageText(root, url) : null;
  const text = tree?.text ?? "";
  const next = from + snapshotChars < text.length ? { next: from + snapshotChars } : {};
  return {
    tree,
    url: url.slice(0, maxUrlChars),
    title,
    chars: text.length,
    ...next,
    text: text.slice(from, from + snapshotChars),
  };
}

/** A screenshot as WebP, at lower quality if it would be too large. Throws if it is still too large. */
async function takeScreenshot(page: Page): Promise<Uint8Array> {
  const take = (quality: number) => page.screenshot({ type: "webp", quality });
  const usualImage = await take(screenshotQuality.usual);
  const image = usualImage.length <= maxImageBytes ? usualImage : await take(screenshotQuality.reduced);
  if (image.length > maxImageBytes) throw new Error(`the screenshot is larger than ${maxImageBytes / 1024} KiB`);
  return image;
}

/** Takes a snapshot, and takes it again if the page navigated meanwhile. */
async function retryAfterNavigation<T>(take: () => Promise<T>, settle: () => Promise<void>): Promise<T> {
  for (let retries = 0; ; retries++) {
    try {
      return await take();
    } catch (error) {
      if (retries === maxSnapshotRetries || !/context|detached|navigat|frame/i.test(String(error))) throw error;
      await settle();
    }
  }
}

/** Replaces the content of a field, or selects the option with that text. */
async function fill(element: ElementHandle<Element>, text: string): Promise<void> {
  const options = await element.evaluate((field) =>
    field.tagName === "SELECT"
      ? Array.from(field.querySelectorAll("option"), ({ label, value }) => ({ label: label.trim(), value }))
      : null,
  );
  if (options === null) return void (await element.asLocator().setTimeout(elementMs).fill(text));
  const option = options.find(({ label, value }) => label === text.trim() || value === text);
  if (!option) {
    const labels = options.slice(0, 50).map(({ label }) => JSON.stringify(label));
    throw new Error(`there is no such option; available options: ${labels.join(", ")}`);
  }
  await element.select(option.value);
}
