import { expect, test } from "bun:test";
import { violationsOf } from "../../src/agents/explorer/api-schema.ts";
import { createExplorer } from "../../src/agents/explorer/explorer.ts";
import { callsOf } from "../../src/agents/explorer/http-calls.ts";
import { inferLanguage } from "../../src/agents/explorer/inferred-languages.ts";
import { Fields } from "../../src/agents/explorer/literals.ts";
import { installsOf } from "../../src/agents/explorer/packages.ts";
import { ownText } from "../../src/agents/explorer/page-sections.ts";
import { secretsOf } from "../../src/agents/explorer/secrets.ts";
import { commandsOf } from "../../src/agents/explorer/shell-samples.ts";
import { type CodeSample, readPage } from "../../src/agents/page.ts";
import type { Task } from "../../src/agents/task.ts";
import { scriptedAgent, testApp } from "../support/app.ts";
import { cpuMsOf } from "../support/cpu.ts";
import { wideLimits } from "../support/limits.ts";
import { serveSite } from "../support/site.ts";

test.each([
  ["text/markdown", "[![a]("],
  ["text/markdown", "[[a]"],
  ["text/markdown", "<a <A "],
  ["text/markdown", "``` "],
  ["text/markdown", "> - "],
  ["text/markdown", "# # "],
  ["text/html", "<pre>"],
  ["text/html", "<a href=x>"],
  ["text/html", "<div class=x>"],
  ["text/html", "<pre>   "],
  ["text/html", "<td><a href=x>y</a>"],
  ["text/html", "<p>x<a href=x>y</a>. "],
  ["text/markdown", "<Card\n"],
  ["text/markdown", '<Card href="/a">\n'],
  ["text/markdown", "[a](b) "],
  ["text/markdown", "<dt>"],
])("a hostile page of type %s made of %j is read in linear time", async (type, piece) => {
  expect(await cpuMsOf(() => readPage("https://docs.test/", type, piece.repeat(30_000)))).toBeLessThan(5000);
});

test.each([
  ["heads", () => "<head ".repeat(600_000)],
  ["ends of a script", () => `<head><script>${"</script ".repeat(200_000)}`],
  ["nested tables", () => "<table>".repeat(100_000)],
  ["blocks in wrappers", () => "<div class=x>".repeat(30_000) + "<pre>a</pre>".repeat(30_000)],
])("hostile HTML with %s is read in linear time", async (_, html) => {
  expect(await cpuMsOf(() => readPage("https://docs.test/", "text/html", html()))).toBeLessThan(5000);
});

type Hostile = [type: string, piece: string, before: string];
const markdown = (piece: string): Hostile => ["text/markdown", piece, ""];
const html = (piece: string, before = ""): Hostile => ["text/html", piece, before];

/** Explores a site whose start page links to a hostile page and to another one. Returns the milliseconds of CPU time, and the pages read. */
async function explore(type: string, body: string) {
  const text = `<p>${"Upload a file with the SDK, and read how it is stored. ".repeat(20)}</p>`;
  const site = serveSite({
    "/": { body: `<title>Acme</title><h1>Acme</h1>${text}<a href="/upload">Upload</a> <a href="/file">File</a>` },
    "/upload": { type, body },
    "/file": { body: `<title>File</title><h1>File</h1>${text}` },
  });
  const goal = "Upload a file with the SDK";
  const task: Task = {
    ...{ text: goal, endGoal: goal, startUrls: [`${site.url}/`], productUrl: null, urlMap: {} },
    ...{ declaredChecks: [], limits: wideLimits },
  };
  const pages: unknown[] = [];
  const ms = await cpuMsOf(async () => {
    for await (const event of createExplorer({ version: "0.0.0" }).run(task, {
      ...{ signal: new AbortController().signal, now: Date.now, startedAt: Date.now(), resources: null },
      allow: [{ host: "127.0.0.1", port: null }],
    }))
      if (event.type === "milestone" && event.name === "page_read") pages.push(event.detail.url);
  });
  site.stop();
  return { ms, readsOther: pages.includes(`${site.url}/file`) };
}

const shapes: Hostile[] = [
  html("<!-- "),
  html("<script>"),
  html("a{n}=1 ", "<p "),
  markdown("["),
  markdown("[a]("),
  markdown("- "),
  markdown(" "),
  markdown("\n"),
  markdown("```bash\n"),
  markdown("[a]: \\\\\\\n"),
  markdown("`"),
];
/** `bun run hostile-pages` has these too, which take minutes. */
const moreShapes: Hostile[] = [
  html("[a "),
  html("- "),
  html("a &nbsp;"),
  html("<div>"),
  html("<x-a>"),
  html("<table><tr><td>"),
  html("<ul><li>"),
  html("<b>a</b>"),
  html("</x>"),
  html("<a "),
  html("<pre>a</pre>"),
  html("<h2>a</h2>"),
  markdown("<!-- "),
  markdown("![a"),
  markdown("> "),
  markdown("1. "),
  markdown("~~~\n"),
  markdown("\\"),
  markdown("*a "),
  markdown("a* "),
  markdown("_a_"),
  markdown("|a|b|\n"),
  markdown("# a\n"),
  markdown("&amp;"),
  markdown("<https://"),
];

// Four times the text may take ten times the work, and sixteen times where that grows with its square.
test.each<Hostile>([...shapes, ...(process.env.HOSTILE_PAGES === "all" ? moreShapes : [])])(
  "a hostile page (%s) made of %j is explored in linear time, and others after it",
  async (type, piece, before) => {
    const page = (chars: number) => {
      let n = 0;
      const count = chars / piece.length;
      return (
        before +
        (piece.includes("{n}")
          ? Array.from({ length: count }, () => piece.replace("{n}", String(n++))).join("")
          : piece.repeat(count)) +
        // Blank lines at the end are not read.
        "\n\nThe end."
      );
    };
    await explore("text/html", "<p>Warm up");
    const small = await explore(type, page(200_000));
    const large = await explore(type, page(800_000));
    expect([small.readsOther, large.readsOther]).toEqual([true, true]);
    expect(large.ms).toBeLessThan(10 * Math.max(small.ms, 200));
  },
  300_000,
);

const sample = (language: string | null, code: string): CodeSample => ({ language, code, line: 1, isClosed: true });
const aliases = (of: (name: string, value: string) => string) =>
  Array.from({ length: 12 }, (_, at) => of(`v${at + 1}`, `v${at}`)).join("\n");
const schemas = Object.fromEntries(
  Array.from({ length: 10 }, (_, at) => [`S${at}`, { allOf: Array(20).fill({ $ref: `#/S${at + 1}` }) }]),
);

test.each<[string, () => unknown]>([
  ["JSON with a number that isn't one", () => inferLanguage(`{\n"a": [${"0.0023064255, ".repeat(20)}…],\n}`)],
  ["JSON with a run of blanks", () => inferLanguage(`{\n"a":${" ".repeat(9000)}…\n}`)],
  ["a list of itself", () => callsOf(sample("js", `const a = [${"a,".repeat(10)}];\nfetch("https://x.test", a);`))],
  ["a text of itself", () => callsOf(sample("js", 'const a = JSON.stringify(a);\nfetch("https://x.test", a);'))],
  [
    "variables of a program",
    () =>
      callsOf(
        sample(
          "js",
          `const v0 = "x";\n${aliases((a, b) => `const ${a} = [${`${b},`.repeat(10)}];`)}\nfetch(v12);https:`,
        ),
      ),
  ],
  [
    "variables of a shell",
    () => callsOf(sample("sh", `v0=x\n${aliases((a, b) => `${a}=${`$${b}`.repeat(10)}`)}\ncurl https://x.test/$v12`)),
  ],
  ["parts of a schema", () => violationsOf({ ...schemas, S10: {} }, { $ref: "#/S0" }, new Fields())],
  ["a line of a user", () => inferLanguage(`a@${"a".repeat(1_000_000)}`)],
  ["lines of tags", () => inferLanguage("<br>\n".repeat(200_000))],
  ["a prompt", () => commandsOf(`a@${"a".repeat(1_000_000)}`)],
  ["URLs without an end", () => installsOf("<https://".repeat(40_000))],
  ["calls", () => callsOf(sample("sh", "curl x\n".repeat(100_000)))],
  ["brackets", () => ownText(`[x](y) ${"[".repeat(1_000_000)}`)],
  ["variables of a line", () => secretsOf(sample("sh", "$A_B ".repeat(100_000)))],
])("hostile %s take linear time", async (_, work) => {
  expect(await cpuMsOf(work)).toBeLessThan(1000);
});

test("secrets are searched in hostile text in linear time", async () => {
  const units = [
    "a",
    "a_",
    "a=",
    "password=",
    'password="',
    "cookie: a",
    "bearer ",
    "x://",
    "eyJ.",
    "sk-",
    "\\n",
    "1:AA",
    "A_",
    ":",
    " ",
    "=",
    "token ",
    "token: ",
    "TOKEN=",
    "token%3D",
    "token=a1b2c3d4,",
    "password a1\n",
    "login a password ",
    "--token ",
    "--a-",
    "x-a-",
    "curl ",
    "curl -u a:",
    "mysql -p ",
    "login -p",
    "://a:",
    "://a:b@",
    "-----",
    "-----BEGIN PRIVATE KEY-----",
    "-----BEGIN PRIVATE KEY-----\nabcd\n",
    "a1B2c3D4.e5F6",
    "M".repeat(24),
    "a".repeat(36),
  ];
  const agent = scriptedAgent(async function* () {
    for (const unit of units) yield { type: "thought", text: unit.repeat(1_000_000 / unit.length), by: "rule" };
    yield { type: "end", outcome: "not_judged", reason: "scripted" };
  });
  const { send, runJobs, db } = testApp({ agent });
  const { id } = (await send("POST", "/api/v1/prompts", { body: { text: "See https://docs.test/" } })).body;
  await send("POST", `/api/v1/prompts/${id}/run`, { body: { urlMap: {} } });
  expect(await cpuMsOf(runJobs)).toBeLessThan(20_000);
  const thoughts = "select count(*) n from session_events where type = 'thought'";
  expect(db.$client.query<{ n: number }, []>(thoughts).get()).toEqual({ n: units.length });
});
