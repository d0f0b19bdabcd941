import type { Check } from "../agent.ts";
import { type Fetched, type Log, readerAccept } from "./fetching.ts";
import { inOrder, pageKey, type ReadPage, type Session, type Steps, useTool } from "./session.ts";

/** Targets that are asked for in one run, and how many of them may be of other sites. */
const maxTargets = 150;
const maxElsewhere = 30;
const atOnce = 4;
/** Pages whose bare existence answers nothing: they want a sign-in, or exist for their makers only. */
const privatePlaces =
  /\/(login|signin|sign-in|signup|sign-up|account|settings|edit|issues\/new|new\/choose|compare|dashboard)(\/|$)/i;
/** Names that are kept for examples (RFC 2606) and addresses that mean the reader's own machine. */
const exampleHosts =
  /(^|\.)(example(\.(com|org|net))?|test|invalid|local|localhost|internal)$|^(127\.|0\.0\.0\.0|\[::1?\]|10\.|192\.168\.)/i;

type Target = { url: string; foundOn: ReadPage; text: string; own: boolean };
type Finding = { target: Target; state: "alive" | "dead" | "unknown"; why: string };

/** Checks where the links of the pages that were read lead: each target once, those of the site first. */
export async function* checkLinks(session: Session): Steps {
  const pages = session.pages.filter(({ problem }) => problem === null);
  if (pages.length === 0) return;
  yield* useTool(session, "check_links", { pages: pages.length }, async (log) => {
    const { targets, left } = collect(session, pages);
    const findings = await inOrder(targets, atOnce, log, (target, own) => test(session, target, own));
    const cutOff = findings.filter(({ why }) => why === "cut").length;
    const checks = [...toChecks(findings), ...checkAnchors(session, pages)];
    const count = (state: Finding["state"]) => findings.filter((finding) => finding.state === state).length;
    const output = {
      targets: targets.length,
      alive: count("alive"),
      dead: count("dead"),
      notJudged: count("unknown"),
      notTried: left + cutOff,
    };
    return { ok: true, output, checks, value: undefined };
  });
}

function collect(session: Session, pages: ReadPage[]): { targets: Target[]; left: number } {
  const seen = new Set(pages.flatMap(({ addresses }) => addresses.map(pageKey)));
  const own: Target[] = [];
  const elsewhere: Target[] = [];
  for (const page of pages)
    for (const link of page.links) {
      const url = link.url.replace(/#.*$/s, "");
      const isOwn = session.origins.has(new URL(url).origin);
      if (!mayBeTested(url, isOwn) || seen.has(pageKey(url))) continue;
      seen.add(pageKey(url));
      (isOwn ? own : elsewhere).push({ url, foundOn: page, text: link.text, own: isOwn });
    }
  const targets = [
    ...own.slice(0, maxTargets - Math.min(maxElsewhere, elsewhere.length)),
    ...elsewhere.slice(0, maxElsewhere),
  ];
  return { targets, left: own.length + elsewhere.length - targets.length };
}

function mayBeTested(address: string, own: boolean): boolean {
  if (!/^https?:\/\//i.test(address) || /[<>{}$]|%7B|%3C/i.test(address)) return false;
  const { hostname, pathname, username } = new URL(address);
  return username === "" && !privatePlaces.test(pathname) && (own || !exampleHosts.test(hostname));
}

/** Asks for the head; only a GET that says so too makes a target dead. A host that cannot be reached from here proves nothing, unless it is the site's own. */
async function test(session: Session, target: Target, log: Log): Promise<Finding> {
  const { fetching, origins } = session;
  const ownByName = origins.has(new URL(target.url).origin);
  const barred = ownByName ? await fetching.barred(target.url, log) : null;
  if (barred) return { target, state: "unknown", why: barred.kind };
  const ask = {
    url: target.url,
    provenance: "link" as const,
    foundOn: target.foundOn.url,
    purpose: "check" as const,
    accept: readerAccept,
  };
  const head = await fetching.get({ ...ask, method: "HEAD" }, log);
  if (head.ok && head.response.status < 400) return { target, state: "alive", why: "" };
  const got =
    head.ok || head.kind === "protocol" || head.kind === "timeout" || head.kind === "unreachable"
      ? await fetching.get(ask, log)
      : head;
  return { target, ...judge(got, target.own) };
}

function judge(got: Fetched, own: boolean): { state: Finding["state"]; why: string } {
  if (got.ok) {
    const { status } = got.response;
    if (status < 400) return { state: "alive", why: "" };
    return status === 404 || status === 410
      ? { state: "dead", why: `status ${status}` }
      : { state: "unknown", why: `status ${status}` };
  }
  if (got.kind === "too_large") return { state: "alive", why: "" };
  return own && got.kind === "unreachable" ? { state: "dead", why: got.message } : { state: "unknown", why: got.kind };
}

function toChecks(findings: Finding[]): Check[] {
  const dead = findings.filter(({ state }) => state === "dead").map(toDead);
  const alive = Map.groupBy(
    findings.filter(({ state }) => state === "alive"),
    ({ target }) => target.foundOn.url,
  );
  const passed = [...alive].map(
    ([url, found]): Check => ({
      id: "link-resolves",
      group: "link",
      status: "pass",
      share: 1,
      weight: found.length,
      subject: url,
      url,
      line: null,
      message: `${found.length} ${found.length === 1 ? "link that stands" : "links that stand"} here first ${found.length === 1 ? "leads" : "lead"} to a page that is there`,
      fix: null,
      quote: null,
    }),
  );
  return [...dead, ...passed];
}

const toDead = ({ target: { url, foundOn, text, own }, why }: Finding): Check => ({
  id: "link-resolves",
  group: "link",
  status: "fail",
  share: 0,
  weight: 1,
  subject: url,
  url: foundOn.url,
  line: lineOf(foundOn, url),
  message: `A link leads to ${url}, which is not there (${why})`,
  fix: own
    ? "Point the link to where the page is now, or redirect the old address to it."
    : "Point the link to a page that is still there, or drop it.",
  quote: text ? text : url,
});

/** The line of a page's Markdown on which a link to the address stands; null where it cannot be told. */
function lineOf(page: ReadPage, address: string): number | null {
  const { pathname, hash } = new URL(address);
  const name = pathname.split("/").filter(Boolean).at(-1);
  const lines = page.markdown.split("\n");
  for (const part of hash ? [address, hash] : [address, pathname, name]) {
    const index = part && part !== "/" ? lines.findIndex((line) => line.includes(part)) : -1;
    if (index >= 0) return index + 1;
  }
  return null;
}

/** Links into pages that were read and whose HTML names its parts: does the named part exist? */
function checkAnchors(session: Session, pages: ReadPage[]): Check[] {
  const byKey = new Map(pages.flatMap((page) => page.addresses.map((address) => [pageKey(address), page] as const)));
  const seen = new Set<string>();
  const checks: Check[] = [];
  for (const page of pages)
    for (const link of page.links) {
      const at = link.url.indexOf("#");
      if (at < 0 || seen.has(link.url)) continue;
      seen.add(link.url);
      const fragment = link.url.slice(at + 1);
      const target = byKey.get(pageKey(link.url.slice(0, at)));
      if (!target?.anchors || !/^[\w%.:@~()$,*+-]+$/.test(fragment) || /^(top|L\d+|:~:)/i.test(fragment)) continue;
      if (target.anchors.has(fragment) || target.anchors.has(decoded(fragment))) continue;
      if (!session.origins.has(new URL(link.url).origin)) continue;
      checks.push({
        id: "anchor-resolves",
        group: "link",
        status: "warn",
        share: 0.5,
        weight: 1,
        subject: link.url,
        url: page.url,
        line: lineOf(page, link.url),
        message: `A link leads to the part "${decoded(fragment)}" of ${target.url}, and no part of that page has this name`,
        fix: "Name the part as the link does, or correct the link.",
        quote: link.text || link.url,
      });
    }
  return checks;
}

function decoded(fragment: string): string {
  try {
    return decodeURIComponent(fragment);
  } catch {
    return fragment;
  }
}
