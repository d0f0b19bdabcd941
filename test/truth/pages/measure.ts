import { pageKey } from "../../../src/net/page-key.ts";
import { type Explored, explore } from "../session.ts";
import { type Answer, goal, html, type PageCase } from "./case.ts";
import { deliveryCases } from "./delivery.ts";
import { freshCases } from "./fresh.ts";
import { brokenShapes, soundShapes } from "./shapes.ts";
import { unusableCases } from "./unusable.ts";
import { validCases } from "./valid.ts";

const start = html(
  "Skiff Docs",
  `<main><h1>Skiff Docs</h1><p>Skiff delivers parcels by boat.</p><ul><li><a href="/keys">Rotate an API key</a></li><li><a href="/p/Labels">Labels</a></li></ul></main>`,
);
const neighbour = (name: string) =>
  html(
    name,
    `<nav><a href="/">Start</a> <a href="/p/Depots">Depots</a></nav><main><h1>${name}</h1><p>Here is what Skiff knows about ${name}, in order of size.</p></main>`,
  );
const notFound: Answer = { status: 404, body: html("Not found", "<h1>Not found</h1>") };

function toResponse(answer: Answer): Response {
  const {
    status = 200,
    type = "text/html; charset=utf-8",
    headers = {},
    body,
  } = typeof answer === "string" ? { body: answer } : answer;
  const bytes = typeof body === "string" ? new TextEncoder().encode(body) : body;
  return new Response(bytes, { status, headers: { ...headers, ...(type !== null && { "content-type": type }) } });
}

function respond({ pages, missing }: PageCase, request: Request): Response {
  const { pathname } = new URL(request.url);
  const page = pages[pathname];
  if (page !== undefined) return toResponse(typeof page === "function" ? page(request) : page);
  if (pathname === "/") return toResponse(start);
  if (pathname.startsWith("/p/") && !pathname.includes("-")) return toResponse(neighbour(pathname.slice(3)));
  const isFile = /\.(txt|xml|js|css)$/.test(pathname);
  return toResponse(missing && !isFile ? missing(pathname) : notFound);
}

/** Why a report about the case is wrong; null if it is right. */
function findMistake(pageCase: PageCase, origin: string, { events, grade }: Explored): string | null {
  const serious = grade.frictions.filter(({ severity }) => severity !== "low");
  if ("reads" in pageCase) {
    const said = events.find((event) => event.type === "milestone" && event.name === "goal_answer");
    const nearest = said?.type === "milestone" && said.name === "goal_answer" ? said.detail.nearest[0] : undefined;
    const invention = serious.find(({ category }) =>
      ["unreadable_page", "silent_failure", "auth", "slow", "dead_link"].includes(category),
    );
    if (invention) return `${invention.severity} ${invention.title}`;
    if (
      nearest &&
      pageKey(nearest.url) === pageKey(origin + pageCase.reads) &&
      /Rotate an API key/.test(nearest.heading)
    )
      return null;
    return `nearest is ${nearest?.url.replace(origin, "")} ${nearest?.heading}`;
  }
  const at = pageCase.at ?? "/keys";
  const isNamed = grade.frictions.some(
    ({ category, title, url, description }) =>
      pageCase.finds.includes(category) && [title, url, description].some((text) => text?.includes(at)),
  );
  return isNamed ? null : `only ${grade.frictions.map(({ severity, title }) => `${severity} ${title}`).join("; ")}`;
}

/** Explores the site of each case. Returns the mistakes by name of the case, null for a right report. */
export async function measurePages(cases: PageCase[]): Promise<Map<string, string | null>> {
  const results = new Map<string, string | null>();
  for (const pageCase of cases) {
    const server = Bun.serve({ hostname: "127.0.0.1", port: 0, fetch: (request) => respond(pageCase, request) });
    const origin = `http://127.0.0.1:${server.port}`;
    results.set(pageCase.name, findMistake(pageCase, origin, await explore(`${origin}/`, goal)));
    server.stop(true);
  }
  return results;
}

if (import.meta.main)
  for (const [name, cases] of Object.entries({
    valid: validCases,
    unusable: unusableCases,
    delivery: deliveryCases,
    fresh: freshCases,
    sound: soundShapes,
    broken: brokenShapes,
  })) {
    if (process.argv[2] !== undefined && process.argv[2] !== name) continue;
    const results = [...(await measurePages(cases))];
    const wrong = results.filter(([, mistake]) => mistake !== null);
    console.log(`${name}: ${results.length - wrong.length} of ${results.length} right`);
    for (const [which, mistake] of wrong) console.log(`  ${which}: ${mistake}`);
  }
