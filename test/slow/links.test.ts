import { expect, test } from "bun:test";
import { createPrompt } from "../../src/prompts/prompts.ts";
import { createProvider } from "../../src/providers/providers.ts";
import { createShare } from "../../src/shares/shares.ts";
import { testApp } from "../support/app.ts";
import { browse, signedIn } from "../support/people.ts";
import { evaluation, niceGrade } from "../support/reports.ts";

/** All URLs reachable by links from `start`, each with its status and where it is linked. */
async function crawl(who: ReturnType<typeof browse>, start: string, base: string) {
  const seen = new Map<string, { status: number; from: string }>();
  const ahead: [path: string, from: string][] = [[start, "start"]];
  for (let next = ahead.pop(); next; next = ahead.pop()) {
    const [path, from] = next;
    if (seen.has(path)) continue;
    const { status, body, headers, location } = await who.get(path);
    seen.set(path, { status, from });
    if (location) ahead.push([location, path]);
    if (!headers.get("content-type")?.startsWith("text/html")) continue;
    const here = new URL(path, "http://localhost:3000");
    expect([path, Bun.gzipSync(String(body)).length < 100_000]).toEqual([path, true]);
    for (const [, raw = ""] of String(body).matchAll(/<(?:a|link)\b[^>]*?\shref="([^"]*)"/g)) {
      if (raw.startsWith("data:")) continue;
      const { origin, pathname, search } = new URL(raw.replaceAll("&amp;", "&"), here);
      // Session filters, orders and list pages lead to the same page again and again.
      if (origin === here.origin && !seen.has(pathname + search) && !/[?&](types|fromSeq|offset|sort)=/.test(search))
        ahead.push([pathname + search, path]);
    }
    // A page links to nothing outside of the base path.
    for (const [, at = ""] of String(body).matchAll(
      /\s(?:href|action|src|hx-get|hx-post|hx-sse:connect|data-session)="(\/[^"]*)"/g,
    ))
      expect([path, at, at === "/" || at.startsWith(`${base}/`) || base === ""]).toEqual([path, at, true]);
  }
  return seen;
}

/** A service with a history: two evaluations that can be compared, a share link, a provider, keys and an invitation. */
function furnished(env: Record<string, string> = {}) {
  const app = testApp({ env });
  const { service, a } = app;
  const provider = createProvider(service.ctx, a.org, { name: "Acme", docsUrl: "https://docs.acme.dev/" });
  const prompt = createPrompt(service.ctx, a.org, {
    title: "Upload a file",
    text: "Upload {{what}}. https://docs.acme.dev/",
    templateDefaults: { what: "a file" },
    frequency: "daily",
    targetProviderId: provider.id,
  });
  const args = { templateArgs: { what: "a file" } };
  const four = Array.from({ length: 4 }, () => niceGrade);
  const [first] = evaluation(app, prompt.id, four, args);
  evaluation(
    app,
    prompt.id,
    four.map((grade) => ({ ...grade, score: 40 })),
    args,
  );
  const { url } = createShare(service.ctx, a.org, first?.slug ?? "", { days: 7, withSession: true });
  return { app, slug: first?.slug ?? "", promptId: prompt.id, shared: new URL(url).pathname };
}

/** Dead links, except those that the example docs have on purpose. */
const dead = (seen: Awaited<ReturnType<typeof crawl>>) =>
  [...seen]
    .filter(([, { status, from }]) => status !== 200 && status !== 303 && !/^(\/evals)?\/example\//.test(from))
    .map(([path, rest]) => ({ path, ...rest }));

test("assets of pages are small, and cached forever under a name with their digest", async () => {
  const app = testApp();
  const { body } = await browse(app).get("/sign-in");
  const paths = ["style.css", "client.js"].map((name) => body.match(new RegExp(`/${name}\\?v=\\w+`))?.[0] ?? name);
  const sizes: number[] = [];
  for (const path of paths) {
    const response = await app.app.handle(
      new Request(`http://localhost:3000${path}`, { headers: { "accept-encoding": "gzip" } }),
    );
    expect(response.headers.get("cache-control")).toBe("public, max-age=31536000, immutable");
    expect(response.headers.get("content-encoding")).toBe("gzip");
    sizes.push((await response.arrayBuffer()).byteLength);
  }
  expect(sizes[1]).toBeLessThan(60_000);
  expect((sizes[0] ?? 0) + (sizes[1] ?? 0)).toBeLessThan(80_000);
});

for (const base of ["", "/evals"]) {
  const under = base === "" ? "" : ", under a base path";
  const env: Record<string, string> = base === "" ? {} : { EVALD_BASE_URL: `http://localhost:3000${base}` };
  const made = furnished(env);

  test.each(["owner", "member"] as const)(`all links of all pages work for an %s${under}`, async (role) => {
    const { app, slug, promptId } = made;
    const who = await signedIn(app, { role });
    const seen = await crawl(who, `${base}/`, base);
    expect(dead(seen)).toEqual([]);
    const paths = [...seen.keys()].map((path) => path.slice(base.length));
    const places = ["/prompts", "/runs", "/reports", "/friction", "/trends", "/providers", "/settings", "/account"];
    for (const place of [...places, "/settings/keys", "/docs", `/prompts/${promptId}`, `/reports/${slug}/session`])
      expect(paths).toContain(place);
    // Home and the list of prompts link to the evidence of a change.
    expect(paths.some((path) => path.startsWith("/compare?slugs="))).toBe(true);
    expect(paths.some((path) => path.startsWith("/friction/"))).toBe(true);
    expect(paths.some((path) => path.startsWith("/sign-in"))).toBe(false);
  });

  test(`all links of public pages work${under}`, async () => {
    const { app, shared } = made;
    expect(dead(await crawl(browse(app), `${base}/`, base))).toEqual([]);
    const seen = await crawl(browse(app), shared, base);
    expect(dead(seen)).toEqual([]);
    expect([...seen.keys()]).toContain(`${shared}/session`);
  });
}
