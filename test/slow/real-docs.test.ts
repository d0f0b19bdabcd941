import { beforeAll, describe, expect, test } from "bun:test";
import { existsSync, readFileSync, statSync } from "node:fs";
import { dirname, join } from "node:path";
import { buildExecutable, call, emptyFolder } from "../support/executable.ts";
import { realDocs } from "../support/real-docs.ts";

type Point = { title: string; description: string; severity: string; quote: string | null; url: string | null };
type Report = {
  slug: string;
  score: number;
  outcome: string;
  coverage: number;
  keyFinding: string;
  verdict: string;
  dimensions: { name: string; score: number }[];
  metrics: { toolCalls: number };
  frictionPoints: Point[];
  recommendations: { title: string; action: string }[];
};
type Name = keyof typeof realDocs;

const folders: Record<Name, string> = {
  sqlite: "/usr/share/doc/sqlite3",
  git: "/usr/share/doc/git-doc",
  bun: join(import.meta.dir, "..", "..", "node_modules", "bun-types", "docs"),
};
const site = "http://docs";
const reports = {} as Record<Name, [Report, Report]>;
/** The response of these tests' servers for one page, requested without our own code. */
const answers = {} as Record<Name, { type: string | null; cache: string | null }>;

beforeAll(async () => {
  await buildExecutable();
  const explore = async (name: Name) => {
    const { serve, start, goal } = realDocs[name];
    const server = serve();
    const run = async () => {
      const { code, stdout, stderr } = await call(["eval", server.url + start, "--goal", goal, "--json"], {
        cwd: emptyFolder(),
      });
      if (code !== 0) throw new Error(stderr);
      return JSON.parse(stdout.replaceAll(server.url, site)) as Report;
    };
    reports[name] = [await run(), await run()];
    const { headers } = await fetch(server.url + start, { headers: { accept: "text/markdown" } });
    answers[name] = { type: headers.get("content-type"), cache: headers.get("cache-control") };
    server.stop();
  };
  await Promise.all((Object.keys(realDocs) as Name[]).map(explore));
}, 300_000);

/** The file for a URL, found by the rules of a web server, without our own code. */
function fileOf(name: Name, address: string): string {
  const path = decodeURIComponent(new URL(address).pathname);
  if (name === "bun") return join(folders.bun, `${path.replace(/^\/docs/, "") || "/index"}.mdx`);
  return join(folders[name], path.endsWith("/") ? `${path}index.html` : path);
}
const textOf = (name: Name, address: string) => readFileSync(fileOf(name, address), "utf8");
const isThere = (name: Name, address: string) => existsSync(fileOf(name, address));

/** Verifies each kind of finding on disk. An unlisted kind fails the test. */
const evidence: [RegExp, (name: Name, point: Point & { url: string }, match: RegExpExecArray) => void][] = [
  [
    /^Site conventions for agents: /,
    (name, { description, severity }) => {
      expect(severity).toBe("low");
      const files = (pattern: string) => [...new Bun.Glob(pattern).scanSync(folders[name])];
      if (description.includes("no llms.txt")) expect(files("**/llms*.txt")).toEqual([]);
      if (description.includes("no Markdown form")) expect(files("**/*.{md,mdx,markdown}")).toEqual([]);
      if (description.includes("does not return Markdown")) expect(answers[name].type).toStartWith("text/html");
      if (description.includes("cache headers")) expect(answers[name].cache).toBeNull();
    },
  ],
  [
    /^(?:No page clearly answers the goal\. Closest|Possible answer): “([^”]+)” on /,
    (name, { url }, [, heading]) => expect(plain(textOf(name, url))).toContain(bare(heading!).slice(0, 40)),
  ],
  [/^Stopped at a limit: pages, 25 pages$/, (_name, { severity }) => expect(severity).toBe("low")],
  [
    /^Code sample does not parse: .*, line (\d+)$/,
    (name, { url, quote }, [, line]) => {
      expect(textOf(name, url).split("\n").length).toBeGreaterThan(Number(line));
      expect(quote).not.toBeNull();
    },
  ],
  [
    /^Long page without headings: /,
    (name, { url }) => {
      const text = textOf(name, url);
      expect(plain(text).length).toBeGreaterThan(3000);
      // These are its own title and the title of its manual.
      expect([...text.matchAll(/<h[1-6][\s>]/gi)].length).toBeLessThanOrEqual(2);
    },
  ],
  [
    /^Dead link on .*: (\S+) \(404\)$/,
    (name, { url }, [, path]) => {
      // This test can't know whether a page of another site exists, but it can check that the link does.
      if (!path!.startsWith("/")) return expect(textOf(name, url)).toContain(`//${path}`);
      expect(isThere(name, `${site}${path}`)).toBe(false);
      expect(textOf(name, url)).toContain(
        `href="${path!.slice(dirname(new URL(url).pathname).length).replace(/^\//, "")}"`,
      );
    },
  ],
  [
    /^Link to a missing section on .*: (\S+)#(\S+)$/,
    (name, { url }, [, path, part]) => {
      expect(textOf(name, `${site}${path}`)).not.toMatch(
        new RegExp(`\\b(id|name)=["']?${RegExp.escape(part!)}["'\\s>]`),
      );
      expect(textOf(name, url)).toContain(`#${part}"`);
    },
  ],
];

describe.each(Object.keys(realDocs) as Name[])("the documentation of %s", (name) => {
  test("gets only findings that are true on disk", () => {
    for (const point of reports[name][0].frictionPoints) {
      const found = evidence
        .map(([title, check]) => ({ match: title.exec(point.title), check }))
        .find(({ match }) => match);
      if (!found) throw new Error(`Nobody verifies “${point.title}”`);
      found.check(name, { ...point, url: point.url ?? "" }, found.match!);
      const file = point.url === null ? null : fileOf(name, point.url);
      if (file !== null && point.quote !== null && statSync(file).isFile())
        expect(plain(readFileSync(file, "utf8"))).toContain(bare(point.quote).slice(0, 60));
    }
  });

  test("gets the same report a second time, except for times and IDs", () => {
    expect(stripped(reports[name][1])).toEqual(stripped(reports[name][0]));
  });
});

/** The words of an HTML or Markdown file without white space; a quote contains them in the same order. */
const plain = (html: string) =>
  bare(html.replace(/<\/?[a-z][^>]*>/gi, ""))
    .replace(/&lt;/g, "<")
    .replace(/&gt;/g, ">")
    .replace(/&quot;/g, '"')
    .replace(/&#39;/g, "'")
    .replace(/&#8217;/g, "’")
    .replace(/&amp;/g, "&");
const bare = (text: string) => text.replace(/\s+/g, "");

/** A report without times; IDs and the slug, which differ, are numbered in order of appearance. Slow responses have events of their own. */
function stripped({ slug, ...report }: Report): unknown {
  const ids = new Map<string, string>();
  const text = JSON.stringify(report, (key, value) => {
    if (value?.unit === "seconds") return { ...value, value: undefined };
    if (key === "events" && Array.isArray(value)) return value.length;
    return /^(createdAt|startedAt|completedAt|time|timeDetail|timeSeconds|lostSeconds)$/.test(key) ? undefined : value;
  });
  return JSON.parse(
    text
      .replaceAll(slug, "slug")
      .replace(/A request took <?[\d.]+s/g, "A request took some time")
      .replace(/[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}/g, (id) => {
        if (!ids.has(id)) ids.set(id, `#${ids.size}`);
        return ids.get(id)!;
      }),
  );
}

test("each goal is found on the page that answers it, or among the nearest", () => {
  const of = (name: Name) => [
    reports[name][0].keyFinding,
    ...reports[name][0].frictionPoints.map((point) => point.description),
  ];
  expect(of("sqlite")[0]).toMatch(/“5\.(1\.1\. The bm25|2\. Sorting by).*” on SQLite FTS5 Extension/);
  expect(of("git").join()).toContain("git-reset(1)");
  expect(of("bun")[0]).toStartWith("Likely answer: “");
  // The pages themselves confirm it.
  expect(textOf("sqlite", `${site}/fts5.html`)).toMatch(/Sorting by Auxiliary Function Results[\s\S]{1,1500}bm25/);
  expect(textOf("git", `${site}/git-reset.html`)).toMatch(
    /Undo a commit, making it a topic branch[\s\S]{1,300}\$ git reset --hard HEAD~3/,
  );
  expect(textOf("bun", `${site}/docs/runtime/http/server`)).toMatch(
    /Practical example: REST API[\s\S]{1,600}bun:sqlite/,
  );
});

test("three sites get three different reports", () => {
  const of = (name: Name) => {
    const { outcome, coverage, score, dimensions, frictionPoints, recommendations } = reports[name][0];
    const scoreOf = (dimension: string) => dimensions.find((each) => each.name === dimension)?.score ?? 0;
    return {
      outcome,
      coverage,
      score,
      discoverability: scoreOf("Docs discoverability"),
      quality: scoreOf("Docs quality"),
      efficiency: scoreOf("Efficiency"),
      titles: frictionPoints.map(({ title }) => title),
      advice: recommendations.length,
    };
  };
  const [sqlite, git, bun] = [of("sqlite"), of("git"), of("bun")];
  for (const each of [sqlite, git, bun]) expect(each).toMatchObject({ outcome: "not_judged", coverage: 0.45 });
  // One site has Markdown with labeled samples, the other HTML without labels.
  expect(bun.quality).toBeGreaterThan(90);
  expect(Math.max(sqlite.quality, git.quality)).toBeLessThan(bun.quality - 10);
  expect(bun.score).toBeGreaterThan(Math.max(sqlite.score, git.score));
  expect(git.titles).toContain("Dead link on git(1): /git-p4.html (404)");
  expect(sqlite.titles).toContain("Link to a missing section on SQLite FTS5 Extension: /fts5.html#data_doclist_index");
  for (const each of [sqlite, git, bun]) expect(each.advice).toBeGreaterThan(0);
});
