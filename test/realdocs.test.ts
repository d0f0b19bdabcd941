import { beforeAll, describe, expect, test } from "bun:test";
import { existsSync, readFileSync, statSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { buildExecutable, call, emptyFolder } from "./support/executable.ts";
import { realDocs } from "./support/realdocs.ts";

type Point = { title: string; description: string; severity: string; quote: string | null; url: string };
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
  bun: join(import.meta.dir, "..", "node_modules", "bun-types", "docs"),
};
const site = "http://docs";
const reports = {} as Record<Name, [Report, Report]>;
const seconds = {} as Record<Name, number>;
/** What the servers of these tests say of one page, asked without our own code. */
const answers = {} as Record<Name, { type: string | null; cache: string | null }>;

beforeAll(async () => {
  await buildExecutable();
  for (const name of Object.keys(realDocs) as Name[]) {
    const { serve, start, goal } = realDocs[name];
    const server = serve();
    const run = async () => {
      const { code, stdout, stderr } = await call(["eval", server.url + start, "--goal", goal, "--json"], {
        cwd: emptyFolder(),
      });
      if (code !== 0) throw new Error(stderr);
      return JSON.parse(stdout.replaceAll(server.url, site)) as Report;
    };
    const begun = performance.now();
    const first = await run();
    seconds[name] = (performance.now() - begun) / 1000;
    reports[name] = [first, await run()];
    const { headers } = await fetch(server.url + start, { headers: { accept: "text/markdown" } });
    answers[name] = { type: headers.get("content-type"), cache: headers.get("cache-control") };
    server.stop();
  }
}, 180_000);

/** The file that an address stands for, found by the rules of a web server and nothing of ours. */
function fileOf(name: Name, address: string): string {
  const path = decodeURIComponent(new URL(address).pathname);
  if (name === "bun") return join(folders.bun, `${path.replace(/^\/docs/, "") || "/index"}.mdx`);
  return join(folders[name], path.endsWith("/") ? `${path}index.html` : path);
}
const textOf = (name: Name, address: string) => readFileSync(fileOf(name, address), "utf8");
const isThere = (name: Name, address: string) => existsSync(fileOf(name, address));

/** The samples of an HTML page: of each, whether any attribute of it or of what is around it could name a language. */
const preformatted = (html: string) => html.match(/<pre[\s>]/g)?.length ?? 0;
const namesLanguages = (html: string) =>
  /<(pre|code|div)[^>]*\b(lang|language|highlight|sourceCode|brush)[-:\s"]/i.test(html);

/** All pages of a folder by their titles, as they stand in the files. */
const byTitle = (folder: string) =>
  Map.groupBy(new Bun.Glob("*.html").scanSync(folder), (file) =>
    (/<title>([^<]*)<\/title>/i.exec(readFileSync(join(folder, file), "utf8"))?.[1] ?? "").trim(),
  );

/** Looks each kind of finding up on the disk. A kind that is not listed here fails the test. */
const evidence: [RegExp, (name: Name, point: Point, match: RegExpExecArray) => void][] = [
  [
    /^No llms\.txt to start from$/,
    (name) => expect([...new Bun.Glob("**/llms*.txt").scanSync(folders[name])]).toEqual([]),
  ],
  [
    /^Pages have no Markdown form at \.md$/,
    (name) => expect([...new Bun.Glob("**/*.{md,mdx,markdown}").scanSync(folders[name])]).toEqual([]),
  ],
  [/^Asking for Markdown does not bring Markdown$/, (name) => expect(answers[name].type).toStartWith("text/html")],
  [
    /^The goal is far from the start: (\d+) pages until its words were found$/,
    (name, { url, description }, [, pages]) => {
      expect(Number(pages)).toBeGreaterThan(6);
      const [, heading] = /“([^”]+)”/.exec(description) ?? [];
      expect(textOf(name, url)).toContain(heading!);
      // The start page does lead there, but says none of the goal's words when it does.
      const [, said] =
        new RegExp(`href="${basename(url)}"[^>]*>([^<]*)</a>[\\s\\S]*?<p>\\s*([^<]*)`).exec(textOf(name, `${site}/`)) ??
        [];
      expect(said).not.toMatch(/undo|last|commit|keep|changes|staged/i);
    },
  ],
  [/^Cache headers may keep old docs alive$/, (name) => expect(answers[name].cache).toBeNull()],
  [
    /^HTML pages are too long for one read$/,
    (name, { url, description }) => {
      const html = textOf(name, url);
      expect(description).toContain(`(max ${Math.round(html.length / 1000)}K HTML`);
      expect(html.replace(/<(script|style)[\s\S]*?<\/\1>|<[^>]+>/gi, "").length).toBeGreaterThan(100_000);
    },
  ],
  [
    /^Content starts late in the page$/,
    (name, { url }) => {
      const text = textOf(name, url).replace(/<(script|style|head)[\s\S]*?<\/\1>/gi, "");
      const first = text.indexOf("<p>");
      const share = text.slice(0, first).replace(/<[^>]+>/g, "").length / text.replace(/<[^>]+>/g, "").length;
      expect(share).toBeGreaterThan(0.1);
    },
  ],
  [
    /^Dead link on .*: (\S+) \(404\)$/,
    (name, { url }, [, path]) => {
      // Whether a page of another site is there, this test cannot know; that the link stands there it can.
      if (!path!.startsWith("/")) return expect(textOf(name, url)).toContain(`//${path}`);
      expect(isThere(name, `${site}${path}`)).toBe(false);
      expect(textOf(name, url)).toContain(
        `href="${path!.slice(dirname(new URL(url).pathname).length).replace(/^\//, "")}"`,
      );
    },
  ],
  [
    /^Link to a missing part on .*: (\S+)#(\S+)$/,
    (name, { url }, [, path, part]) => {
      expect(textOf(name, `${site}${path}`)).not.toMatch(
        new RegExp(`\\b(id|name)=["']?${RegExp.escape(part!)}["'\\s>]`),
      );
      expect(textOf(name, url)).toContain(`#${part}"`);
    },
  ],
  [
    /^Code samples without a language on /,
    (name, { description }) => {
      const pages = byTitle(folders[name]);
      const told = [...description.matchAll(/(?:: |, | and )([^:,]+?) \((\d+) of (\d+)\)/g)];
      expect(told.length).toBeGreaterThan(0);
      for (const [, title, labelled, samples] of told) {
        const [file] = pages.get(title!.replace("’", "'")) ?? pages.get(title!) ?? [];
        const html = readFileSync(join(folders[name], file ?? `no page is titled ${title}`), "utf8");
        expect([title, labelled, samples, namesLanguages(html)]).toEqual([
          title,
          "0",
          String(preformatted(html)),
          false,
        ]);
      }
    },
  ],
  [
    /^Links in Markdown lead nowhere outside the site$/,
    (name, { url }) => expect(textOf(name, url)).toMatch(/\]\((?!https?:|\/|#)[^)\s]+\)/),
  ],
];

describe.each(Object.keys(realDocs) as Name[])("the documentation of %s", (name) => {
  test("is told nothing that does not stand on the disk", () => {
    for (const point of reports[name][0].frictionPoints) {
      const found = evidence
        .map(([title, check]) => ({ match: title.exec(point.title), check }))
        .find(({ match }) => match);
      if (!found) throw new Error(`Nobody verifies “${point.title}”`);
      found.check(name, point, found.match!);
      const file = fileOf(name, point.url);
      if (point.quote !== null && statSync(file).isFile())
        expect(plain(readFileSync(file, "utf8"))).toContain(bare(point.quote).slice(0, 60));
    }
  });

  test("has the same report a second time, but for times and ids", () => {
    expect(stripped(reports[name][1])).toEqual(stripped(reports[name][0]));
  });

  test("is evaluated in a few seconds", () => {
    expect(seconds[name]).toBeLessThan(20);
  });
});

/** The words of an HTML or Markdown file without white space; a quote has them in the same order. */
const plain = (html: string) =>
  bare(html.replace(/<\/?[a-z][^>]*>/gi, ""))
    .replace(/&lt;/g, "<")
    .replace(/&gt;/g, ">")
    .replace(/&quot;/g, '"')
    .replace(/&#39;/g, "'")
    .replace(/&#8217;/g, "’")
    .replace(/&amp;/g, "&");
const bare = (text: string) => text.replace(/\s+/g, "");

/** A report without times; ids and the slug, which are made anew, are numbered in the order in which they stand in it. */
function stripped({ slug, ...report }: Report): unknown {
  const ids = new Map<string, string>();
  const text = JSON.stringify(report, (key, value) =>
    /^(createdAt|startedAt|completedAt|time|timeDetail|timeSeconds|lostSeconds)$/.test(key) ? undefined : value,
  );
  return JSON.parse(
    text
      .replaceAll(slug, "slug")
      .replace(/<?[\d.]+s for each request answered/g, "so long for each request answered")
      .replace(/[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}/g, (id) => {
        if (!ids.has(id)) ids.set(id, `#${ids.size}`);
        return ids.get(id)!;
      }),
  );
}

test("each goal is found on the page that answers it", () => {
  expect(
    Object.fromEntries(
      Object.entries(reports).map(([name, [{ keyFinding }]]) => [name, keyFinding.split(" Most ")[0]]),
    ),
  ).toEqual({
    sqlite:
      "The words of the goal were found after 3 pages under “5.2. Sorting by Auxiliary Function Results” on SQLite FTS5 Extension.",
    git: "The words of the goal were found after 23 pages under “Undo a commit, making it a topic branch” on git-reset(1).",
    bun: "The words of the goal were found after 2 pages under “Practical example: REST API” on Server.",
  });
  // And that is true of the pages themselves.
  expect(textOf("sqlite", `${site}/fts5.html`)).toMatch(/Sorting by Auxiliary Function Results[\s\S]{1,1500}bm25/);
  expect(textOf("git", `${site}/git-reset.html`)).toMatch(
    /Undo a commit, making it a topic branch[\s\S]{1,300}\$ git reset --hard HEAD~3/,
  );
  expect(textOf("bun", `${site}/docs/runtime/http/server`)).toMatch(
    /Practical example: REST API[\s\S]{1,600}bun:sqlite/,
  );
});

test("three sites get three reports, each for its own reasons", () => {
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
  // Markdown with labelled samples against HTML without a label.
  expect(bun.quality).toBeGreaterThan(90);
  expect(sqlite.quality).toBeLessThan(75);
  expect(git.quality).toBeLessThan(75);
  // Two pages, three pages, and twenty-three of which some led nowhere.
  expect(bun.discoverability).toBeGreaterThan(sqlite.discoverability);
  expect(sqlite.discoverability).toBeGreaterThan(git.discoverability + 15);
  expect([bun.efficiency, sqlite.efficiency]).toEqual([100, 100]);
  expect(git.efficiency).toBeLessThan(85);
  expect(bun.score).toBeGreaterThan(sqlite.score + 5);
  expect(sqlite.score).toBeGreaterThan(git.score + 5);
  expect(git.titles).toContain("Dead link on git(1): /git-p4.html (404)");
  expect(git.titles).toContain("Code samples without a language on 23 pages");
  expect(sqlite.titles).toContain("Link to a missing part on SQLite FTS5 Extension: /fts5.html#data_doclist_index");
  expect(bun.titles.filter((title) => /language|HTML/.test(title))).toEqual([]);
  for (const each of [sqlite, git, bun]) expect(each.advice).toBeGreaterThan(0);
});
