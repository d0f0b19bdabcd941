import { expect, test } from "bun:test";
import type { Check } from "../src/agents/agent.ts";
import { callsOf } from "../src/agents/explorer/http-calls.ts";
import { importsOf } from "../src/agents/explorer/packages.ts";
import { parseSample } from "../src/agents/explorer/samples.ts";
import { readPage } from "../src/agents/page.ts";
import { decodeText } from "../src/net/charset.ts";
import { type SiteRoute, serveSite } from "./support/site.ts";
import { explore } from "./truth/session.ts";

// What docs must lead to whose builder or product nobody had in mind, as generators of such docs showed.

const both =
  (markdown: string, html: string): SiteRoute =>
  (request) =>
    request.headers.get("accept")?.includes("markdown")
      ? new Response(markdown, { headers: { "content-type": "text/markdown" } })
      : new Response(`<title>Gates</title>${html}`, { headers: { "content-type": "text/html" } });
const prose = "A gate opens when the tide is low, and closes before it rises again, unless somebody holds it open. ";

async function checksOf(routes: Record<string, SiteRoute>, id: string, start = "/"): Promise<Check[]> {
  const site = serveSite(routes);
  const { events } = await explore(site.url + start, "Open a gate").finally(site.stop);
  const checks = events.flatMap((event) => (event.type === "tool_result" ? (event.checks ?? []) : []));
  return checks
    .filter((check) => check.id === id && check.status !== "pass")
    .map((check) => JSON.parse(JSON.stringify(check).replaceAll(site.url, "")));
}

const openGate = `# Open a gate\n\n${prose}\n\n## Hold it open\n\n${prose}\n\n## Since version 2 {#v2}\n\n${prose}\n`;
const start = (links: string[]) => `# Gates\n\n${prose}\n\n${links.map((link) => `- [Read](${link})`).join("\n")}\n`;

test("the HTML of a page decides whether it has a section, if its Markdown doesn't show it", async () => {
  const html = `<h1>Open a gate</h1><h2 id="hold-it-open">Hold it open</h2><p>${prose}</p><h2 id="limits">Limits</h2>`;
  const links = ["/open#hold-it-open", "/open#v2", "/open#limits", "/open#speed"];
  const routes = { "/": both(start(links), "<h1>Gates</h1>"), "/open": both(openGate, html) };
  expect((await checksOf(routes, "anchor-resolves")).map(({ subject, line }) => [subject, line])).toEqual([
    ["/open#speed", 8],
  ]);
});

test("a section isn't missing on a page that has no HTML, or whose scripts name its sections", async () => {
  const markdown = { body: openGate, type: "text/markdown" };
  const unnamed = both(openGate, `<h1>Open a gate</h1><h2>Hold it open</h2><p>${prose}</p>`);
  for (const page of [markdown, unnamed]) {
    const routes = { "/": both(start(["/open#speed"]), "<h1>Gates</h1>"), "/open": page };
    expect(await checksOf(routes, "anchor-resolves")).toEqual([]);
  }
});

test("IDs beside the headings name the sections of a page", async () => {
  const page = (id: string) =>
    `<h1>Open a gate</h1><h2><div class="anchor" id="${id}"></div>Hold it open</h2><p>${prose.repeat(3)}</p>`;
  const missing = async (id: string) => {
    const routes = {
      "/": { body: `<h1 id="a">Gates</h1><p>${prose} <a href="/open#speed">Speed</a>` },
      "/open": { body: page(id) },
    };
    return (await checksOf(routes, "anchor-resolves")).length;
  };
  expect([await missing("hold-it-open"), await missing("box-1")]).toEqual([1, 0]);
});

test("noindex in the HTML of a page is found although the page is read as Markdown", async () => {
  const html = `<meta name="robots" content="noindex"><h1>Open a gate</h1><p>${prose}</p>`;
  const sample = "```sh\ngate open --hold\n```\n";
  const routes = { "/": both(start(["/open"]), "<h1>Gates</h1>"), "/open": both(openGate + sample, html) };
  expect((await checksOf(routes, "page-listed")).map(({ subject }) => subject)).toEqual(["/open"]);
});

const fences = (markdown: string) =>
  readPage("http://docs.test/", "text/markdown", markdown).samples.map(({ line, isClosed, code }) => [
    line,
    isClosed,
    code,
  ]);

const samplesOf = (html: string) =>
  readPage("http://docs.test/", "text/html", `<h1>Gates</h1><p>${prose}</p>${html}`).samples.map(
    ({ language, code }) => [language, code],
  );

test("line numbers in elements of their own are no code, however their builder calls them", () => {
  const withNumbers = (name: string) =>
    samplesOf(
      `<pre><code class="language-js"><span class="row"><span class="${name}"> 1</span><span class="tok">open(1);\n</span></span><span class="row"><span class="${name}"> 2</span><span class="tok">close();\n</span></span></code></pre>`,
    );
  for (const name of ["ln", "lineno", "code-line-number", "x line_nr"])
    expect([name, ...withNumbers(name)]).toEqual([name, ["js", "open(1);\nclose();"]]);
  expect(withNumbers("line")).toEqual([["js", " 1open(1);\n 2close();"]]);
});

test("any class of highlighted code may end with its language", () => {
  const block = (classes: string) => samplesOf(`<div class="${classes}"><pre>open(1);</pre></div>`)[0]?.[0];
  expect([block("highlight hl-js"), block("col-js"), block("highlight hl-wide")]).toEqual(["js", null, null]);
});

test("the content of a declared shadow tree is read, and that of other templates isn't", () => {
  const page = readPage(
    "http://docs.test/",
    "text/html",
    `<gate-page><template shadowrootmode="open"><h2>Open a gate</h2><template><p>Row</p></template><p>${prose}<a href="/tides">Tides</a></p><pre>gate open</pre></template></gate-page><template><p>Card</p></template>`,
  );
  expect(page.headings.map(({ text }) => text)).toEqual(["Open a gate"]);
  expect([page.links.map(({ text }) => text), page.samples.map(({ code }) => code)]).toEqual([
    ["Tides"],
    ["gate open"],
  ]);
  expect([page.markdown.includes("opens when the tide"), /Row|Card/.test(page.markdown)]).toEqual([true, false]);
});

test("lines that a highlighter shows as removed are no code of a sample", () => {
  const code = ["open(", '  "tide", // [!code --]', '  "high" // [!code ++]', ");", "// [!code --:2]", "close(;"];
  expect(fences(`\`\`\`js\n${code.join("\n")}\n\`\`\`\n`)).toEqual([
    [1, true, 'open(\n\n  "high" // [!code ++]\n);\n\n'],
  ]);
});

test("a text of nothing but dots leaves out members of JSON", async () => {
  const isBroken = async (code: string) =>
    (await parseSample({ language: "json", code, line: 1, isClosed: true }))?.broken === true;
  expect(await isBroken('{"gates": [{"..."}]}')).toBe(false);
  expect(await isBroken('{"gates": [{"id": 1, "…"}], "next": 2}')).toBe(false);
  expect(await isBroken('{"name": "...", "gates": [{"id"}]}')).toBe(true);
});

test("a code fence ends where another one with a language begins", () => {
  expect(fences("```sh\ngate open\n\nThen:\n\n```js\nopen();\n```\n\nText.\n")).toEqual([
    [1, false, "gate open\n\nThen:\n"],
    [6, true, "open();"],
  ]);
  expect(fences("````md\n```js\nopen();\n```\n````\n")).toEqual([[1, true, "```js\nopen();\n```"]]);
  expect(fences("```ts\n/**\n * ```ts\n * open();\n * ```\n */\n```\n")).toHaveLength(1);
  expect(fences("<!--\n```sh\ngate open\n``` -->\n\n{/* ```sh\ngate close\n``` */}\n\n```js\nopen();\n```\n")).toEqual([
    [10, true, "open();"],
  ]);
  expect(fences("---\ntitle: a\n--- \n\n```yaml\na: 1\n---\nb: 2\n```\n")).toEqual([[5, true, "a: 1\n---\nb: 2"]]);
});

test("an unclosed code fence is reported with its line, on any page", async () => {
  const broken = `# Close a gate\n\n${prose}\n\n\`\`\`sh\ngate close\n\n${prose}\n\n\`\`\`js\nclose();\n\`\`\`\n`;
  const routes = { "/": both(start(["/close"]), "<h1>Gates</h1>"), "/close": { body: broken, type: "text/markdown" } };
  const found = await checksOf(routes, "markdown-code-fence-validity");
  expect(found.filter(({ status }) => status !== "skip").map(({ subject, line }) => [subject, line])).toEqual([
    ["/close", 5],
  ]);
});

test("an API description that isn't valid JSON is found at a common name", async () => {
  const routes = (body: string) => ({ "/": { body: `<h1>Gates</h1><p>${prose}` }, "/openapi.json": { body } });
  const broken = '{\n  "openapi": "3.0.3"\n  "info": {}\n}';
  expect((await checksOf(routes(broken), "openapi-valid")).map(({ status }) => status)).toEqual(["fail"]);
  expect(await checksOf(routes('{"name": "gates" "private": true}'), "openapi-valid")).toEqual([]);
});

test("a test of the browser is recognized by its script, whatever the status", async () => {
  const challenge = `<title>Just a moment</title><noscript>Enable JavaScript</noscript><script>var a = document.createElement("script"); a.src = "/cdn/challenge/v1.js"; document.head.append(a);</script>`;
  const routes = {
    "/": { body: `<h1>Gates</h1><p>${prose}<a href="/open">Open a gate</a> <a href="/close">Close a gate</a>` },
    "/open": { body: `<h1>Open a gate</h1><p>${prose.repeat(4)}<script>"/cdn/challenge/v1.js"</script>` },
    "/close": { body: challenge, status: 503 },
  };
  expect([...new Set((await checksOf(routes, "challenge")).map(({ subject }) => subject))]).toEqual(["/close"]);
});

test("a page about errors is no error page", () => {
  const problem = (headings: string[]) =>
    readPage(
      "http://docs.test/messages",
      "text/html",
      `<title>Gates: Messages</title><div>Messages</div>${headings.map((each) => `<h1>${each}</h1><p>${prose}</p>`).join("")}`,
    ).problem;
  expect([problem(["Not found", "Too many calls", "Expired"]), problem(["Not found"])]).toEqual([null, "soft_404"]);
});

test("entries of a list that is of the docs are tested wherever they lead, but not those of a host with other docs", async () => {
  const links = ["open", "close", "hold"].map((name) => `<a href="/docs/${name}">${name} a gate</a>`).join(" ");
  const page = { body: `<h1>Gates</h1><p>${prose.repeat(3)}${links}` };
  const pages = Object.fromEntries(["", "open", "close", "hold"].map((name) => [`/docs/${name}`, page]));
  const deadWith = async (others: string[]) => {
    const entries = ["open", "close", "hold"].map((name) => `- [${name}](/docs/${name})`);
    const list = `# Gates\n\n${[...entries, ...others.map((path) => `- [Other](${path})`)].join("\n")}\n`;
    const found = await checksOf({ ...pages, "/llms.txt": { body: list } }, "llms-entry-resolves", "/docs/");
    return found.map(({ subject }) => subject);
  };
  expect(await deadWith(["/partners"])).toEqual(["/partners"]);
  expect(await deadWith(["/intro", "/archive"])).toEqual(["/intro", "/archive"]);
  expect(await deadWith(["/a", "/b", "/c", "/d"])).toEqual([]);
});

test("a sample says in which language it is", async () => {
  const site = serveSite({
    "/": { body: `# Gates\n\n${prose}\n\n- [Move a gate](/move)\n`, type: "text/markdown" },
    "/move": {
      body: `# Gates\n\n${prose}\n\n## Move a gate\n\nGive it a new place.\n\n\`\`\`kt\ngate.place = harbor\n\`\`\`\n`,
      type: "text/markdown",
    },
  });
  const { events } = await explore(`${site.url}/`, "Move a gate with Kotlin code").finally(site.stop);
  const [answer] = events.flatMap((event) =>
    event.type === "milestone" && event.name === "goal_answer" ? [event.detail] : [],
  );
  expect([answer?.state, answer?.nearest[0]?.missing, answer?.unseen]).toEqual(["likely", [], []]);
});

test("a page of the docs may have the name of a personal page, which needs no sign-in to be right", async () => {
  const link = (path: string, text: string) => `<a href="${path}">${text}</a>`;
  const login = `<title>Log in</title><form method="post" action="/login"><input type="password" name="p"></form>`;
  const routes: Record<string, SiteRoute> = {
    "/": {
      body: `<h1>Gates</h1><p>${prose}${link("/settings/#speed", "Speed")} ${link("/account", "Your account")} ${link("/dashboard", "Dashboard")} ${link("/docs/account", "Accounts")} ${link("/open", "Open a gate")}`,
    },
    "/settings/": { body: `<h1>Settings</h1><h2 id="limits">Limits</h2><p>${prose}` },
    "/account": { status: 302, headers: { location: "/login?next=/account" } },
    "/login": { body: login },
    "/dashboard": { status: 401, body: login },
    "/docs/account": { status: 401, body: login },
    "/open": { status: 401, body: login },
  };
  const subjects = async (id: string) => [...new Set((await checksOf(routes, id)).map(({ subject }) => subject))];
  expect(await subjects("anchor-resolves")).toEqual(["/settings/#speed"]);
  expect((await subjects("open-access")).sort()).toEqual(["/docs/account", "/open"]);
});

test("a page beside the folder of the docs may ask to sign in, unless the answer needs it", async () => {
  const wall = { status: 302, headers: { location: "/login?next=/x" } };
  const page = (title: string, rest = "") => ({
    body: `<a href="/harbor">Harbor control</a><h1>${title}</h1><p>${prose.repeat(2)}${rest}`,
  });
  const subjects = async (rest = "") => {
    const routes: Record<string, SiteRoute> = {
      "/": { status: 302, headers: { location: "/manual" } },
      "/manual": page(
        "Gates",
        `<a href="/manual/open">Open a gate</a> <a href="/manual/locks">Locks</a> <a href="/manual/tides">Tides</a> ${rest}`,
      ),
      "/manual/open": page("Open a gate"),
      "/manual/locks": page("Locks"),
      "/manual/tides": wall,
      "/harbor": wall,
      "/limits": wall,
      "/speed": wall,
      "/tides": wall,
      "/setup": wall,
      "/login": {
        body: `<title>Log in</title><form method="post" action="/login"><input type="password" name="p"></form>`,
      },
    };
    return [...new Set((await checksOf(routes, "open-access")).map(({ subject }) => subject))].sort();
  };
  expect(await subjects()).toEqual(["/manual/tides"]);
  expect(await subjects(`See <a href="/setup">Setup</a> first.`)).toEqual(["/manual/tides", "/setup"]);
  const manyBeside = ["/limits", "/speed", "/tides"].map((path) => `<a href="${path}">${path.slice(1)}</a>`).join(" ");
  expect(await subjects(manyBeside)).toEqual(["/harbor", "/limits", "/manual/tides", "/speed", "/tides"]);
});

test("a page for scripts isn't empty if it says so, and where else to read", () => {
  const pageOf = (noscript: string, text: string) =>
    readPage(
      "http://docs.test/panel",
      "text/html",
      `<title>Panel</title><noscript>${noscript}</noscript><div id="panel"></div>${text}<script src="/panel.js"></script>`,
    );
  const text = "<p>Turn the wheel to move the gate. The panel shows where it is.</p>";
  const link = 'The panel needs JavaScript. <a href="/calls">All calls</a> are here.';
  expect(pageOf(link, text).problem).toBe(null);
  expect(pageOf(link, text).links.map(({ url, text: name }) => [url, name])).toEqual([
    ["http://docs.test/calls", "All calls"],
  ]);
  expect(pageOf(link, "").problem).toBe("empty_shell");
  for (const other of [
    "You need JavaScript.",
    '<a href="https://enable.test/">JavaScript</a>',
    '<a href="#">Panel</a>',
  ])
    expect(pageOf(other, text).problem).toBe("empty_shell");
});

test("tabs that lead to a part of their page are empty if their panels are", async () => {
  const tabs = (content: string) =>
    `<ul role="tablist"><li><a role="tab" href="#one">Linux</a></li></ul><div role="tabpanel" id="one">${content}</div>`;
  const routes = (content: string) => ({ "/": { body: `<h1>Gates</h1><p>${prose.repeat(3)}${tabs(content)}` } });
  expect((await checksOf(routes(""), "tabs-have-content")).length).toBe(1);
  expect(await checksOf(routes("<pre>gate open</pre>"), "tabs-have-content")).toEqual([]);
});

test.each([
  ["<div class='tab-pane'>", "</div>"],
  ["<code-tab title='Linux'>", "</code-tab>"],
  ["<div class='tabbed-content'><div class='tabbed-block'>", "</div></div>"],
])("a tab in a markup of its own is empty if nothing is in it: %s", async (start, end) => {
  const routes = (content: string) => ({
    "/": { body: `<h1>Gates</h1><p>${prose.repeat(3)}</p><div>${start}${content}${end}</div>` },
  });
  expect((await checksOf(routes(""), "tabs-have-content")).length).toBe(1);
  expect(await checksOf(routes("<pre>gate open</pre>"), "tabs-have-content")).toEqual([]);
});

test("neither a menu below the text divides a long page, nor is a glossary one", async () => {
  const heading = "<h2>Menu</h2><nav><a href='/'>Gates</a></nav>";
  const terms = Array.from({ length: 20 }, (_, i) => `<dt>Term ${i}</dt><dd>${prose.repeat(3)}</dd>`).join("");
  const found = async (body: string) =>
    (await checksOf({ "/": { body: `<title>Gates</title>${body}` } }, "long-page-has-headings")).length;
  const text = `<p>${prose.repeat(40)}</p>`;
  expect(await found(`<h1>Gates</h1>${text}${heading}`)).toBe(1);
  expect(await found(`<h1>Gates</h1>${text}${heading}${text}`)).toBe(0);
  expect(await found(`<h1>Gates</h1><dl>${terms}</dl>`)).toBe(0);
});

test("a page with a word in place of its content is found wherever it is", async () => {
  const links = ["open", "close", "hold"].map((name) => `<a href="/${name}">${name} a gate</a>`).join(" ");
  const page = (name: string, text: string) => ({ body: `<nav>${links}</nav><h1>${name} a gate</h1><p>${text}</p>` });
  const about = (name: string) => page(name, `${name}: ${prose}`);
  const routes = { "/": about("See"), "/open": about("Open"), "/close": about("Close") };
  const found = await checksOf({ ...routes, "/hold": page("Hold", "TODO") }, "page-has-content");
  expect(found.map(({ subject }) => subject)).toEqual(["/hold"]);
  expect(await checksOf({ ...routes, "/hold": page("Hold", "Gates hold.") }, "page-has-content")).toEqual([]);
});

test("commands after the number sign of root have a prompt, comments don't", async () => {
  const sample = (code: string) => `\n\`\`\`bash\n${code}\n\`\`\`\n`;
  const found = async (code: string) => {
    const body = `# Gates\n\n${prose}\n\n## Open a gate\n\n${prose}${sample(code)}${sample("gate list")}${sample("gate show")}`;
    return (await checksOf({ "/": { body, type: "text/markdown" } }, "command-copyable")).length;
  };
  expect(await found("# gate open 1")).toBe(1);
  expect(await found("[root@tide ~]# gate open 1")).toBe(1);
  expect(await found("# opens it\ngate open 1")).toBe(0);
});

test.each([`<script>location.replace("/open" + location.hash)</script>`, `<body onload="location.href = '/open'">`])(
  "a redirect that only browsers follow: %s",
  async (markup) => {
    const routes = {
      "/": { body: `<h1>Gates</h1><p>${prose}<a href="/old">Open a gate</a>` },
      "/old": { body: `<title>Gates</title>${markup}` },
      "/open": { body: `<h1>Open a gate</h1><p>${prose.repeat(3)}` },
    };
    expect((await checksOf(routes, "redirects-by-status")).length).toBe(1);
  },
);

test("samples are read to the end of their texts, and not if the heading says that they are wrong", async () => {
  const text = `open(<<~NOTE)\n  it's "low"\nNOTE\nputs 1`;
  const page = (heading: string, code: string) =>
    `# Open a gate\n\n${prose}\n\n## ${heading}\n\n${prose}\n\n\`\`\`ruby\n${code}\n\`\`\`\n`;
  const found = async (heading: string, code: string) =>
    (await checksOf({ "/": { body: page(heading, code), type: "text/markdown" } }, "sample-parses")).length;
  expect(await found("Add a note", text)).toBe(0);
  expect(await found("Add a note", `${text}\nopen("low\nputs 2`)).toBe(1);
  expect(await found("What doesn't compile", `open("low\nputs 2`)).toBe(0);
  expect(await found("Names", `open("low\nputs 2`)).toBe(1);
  expect(await found("Names", `x\n\`\`\`\n\nThis is not valid:\n\n\`\`\`ruby\nopen("low\nputs 2`)).toBe(0);
});

test("a short verb matches in any form, but no other word", async () => {
  const missing = async (text: string) => {
    const site = serveSite({ "/": { body: `# Gates\n\n## A gate ${text}\n\n${prose}`, type: "text/markdown" } });
    const { events } = await explore(`${site.url}/`, "Pipe what a gate moved").finally(site.stop);
    return events.flatMap((event) =>
      event.type === "milestone" && event.name === "goal_answer" ? event.detail.unseen : [],
    );
  };
  expect([await missing("can move"), await missing("is piped"), await missing("with pip")]).toEqual([
    ["pipe"],
    ["moved"],
    ["pipe", "moved"],
  ]);
});

const firstOf = async (routes: Record<string, SiteRoute>, id: string) => {
  const [check] = await checksOf(routes, id);
  return check && [check.url, check.line, check.quote];
};
const page = (body: string, head = "") => ({
  body: `<html>\n<head>\n<title>Open a gate</title>\n${head}</head>\n${body}</html>`,
});
/** A start page that doesn't answer the goal. */
const boats = (menu: string) => ({
  body: `<title>Boats</title><nav>${menu}</nav><h1>Boats</h1><p>They wait at the quay until the tide turns, and leave in the order in which they came.</p>`,
});
const command = "<pre><code class='language-sh'>gate open --now</code></pre>";

test("what the Markdown of a page doesn't show is reported with its line of the HTML", async () => {
  const noindex = '<meta name="robots" content="noindex">';
  const hidden = page(`<h1>Open a gate</h1>${command}`, `${noindex}\n`);
  const home = page(`<h1>Gates</h1><p>${prose}<a href="/open">Open a gate</a></p>`);
  expect(await firstOf({ "/": home, "/open": hidden }, "page-listed")).toEqual(["/open", 4, noindex]);
  const tabs = '<div role="tablist"><button role="tab">A</button><button role="tab">B</button></div>';
  expect(await firstOf({ "/": page(`<h1>Open a gate</h1>\n<p>${prose}</p>\n${tabs}\n`) }, "tabs-have-content")).toEqual(
    ["/", 7, tabs],
  );
});

test("a picture in place of a sample is found beside other samples, with its line", async () => {
  const shown =
    "# Open a gate\n\n## Open it\n\nDo it like this:\n\n![Screenshot](/a.png)\n\n## See the version\n\n```sh\ngate -v\n```\n";
  const check = await firstOf({ "/": { body: shown, type: "text/markdown" } }, "text-instead-of-pictures");
  expect(check?.slice(0, 2)).toEqual(["/", 7]);
});

test("a page that robots.txt forbids is reported with the rule", async () => {
  const routes = {
    "/": page(`<h1>Open a gate</h1><p>First <a href="/installation">install</a> it.</p>${command}`),
    "/installation": page(`<h1>Installation</h1><p>${prose}</p>`),
    "/robots.txt": { body: "User-agent: *\nAllow: /\nDisallow: /inst*\n", type: "text/plain" },
  };
  expect(await firstOf(routes, "robots-allow")).toEqual(["/robots.txt", 3, "Disallow: /inst*"]);
  const site = serveSite({
    "/": boats('<a href="/open">Open a gate</a>'),
    "/robots.txt": { body: "User-agent: *\nDisallow: /open\n", type: "text/plain" },
  });
  const { grade } = await explore(`${site.url}/`, "Open a gate").finally(site.stop);
  const fix = grade.recommendations.find(({ title }) => title.includes("robots.txt"));
  expect([fix?.evidence?.line, fix?.evidence?.text]).toEqual([2, "Disallow: /open"]);
});

test("an API description in JSON is no YAML, and its errors have a line", async () => {
  const api = (text: string) =>
    firstOf(
      { "/": page("<h1>Open a gate</h1>"), "/openapi.json": { body: text, type: "application/json" } },
      "openapi-valid",
    );
  const text = JSON.stringify({ openapi: "3.0.3", info: { title: "Gates", version: "1" }, paths: {} }, null, 2);
  expect(await api(text)).toBeUndefined();
  expect(await api(text.replace('"1"\n', '"1",\n'))).toEqual(["/openapi.json", 5, '"version": "1",']);
  expect((await api(text.replace('"version"', '"versoin"')))?.slice(0, 2)).toEqual(["/openapi.json", 3]);
  expect((await api(text.replace('  "openapi": "3.0.3",\n', "")))?.slice(0, 2)).toEqual(["/openapi.json", 1]);
  const parameters = '[{ "name": "id", "in": "path", "required": true, "schema": {} }]';
  const operation = `{ "parameters": ${parameters}, "responses": { "200": { "description": "Open" } } }`;
  const paths = (path: string) =>
    text.replace('"paths": {}', `"paths": {\n    "${path}": { "get": ${operation} }\n  }`);
  expect((await api(paths("/gates/:id")))?.slice(0, 2)).toEqual(["/openapi.json", 8]);
  expect(await api(paths("/gates/{id}"))).toBeUndefined();
});

test("an error in a sample of data has its line", async () => {
  const lineIn = async (language: string, lines: string[]) => {
    const body = `# Open a gate\n\n\`\`\`${language}\n${lines.join("\n")}\n\`\`\`\n`;
    return (await firstOf({ "/": { body, type: "text/markdown" } }, "sample-parses"))?.[1];
  };
  expect(await lineIn("toml", ["[gate]", 'name = "a"', "level = info", "wide = 1"])).toBe(6);
  expect(await lineIn("json", ["{", '  "a": 1,', '  "b": False', "}"])).toBe(6);
  expect(await lineIn("yaml", ["gate:", "  wide: 1", "   tall: 2"])).toBe(6);
});

test("a line of Python goes back to the column of an earlier one", async () => {
  const broken = async (lines: string[]) => {
    const body = `# Open a gate\n\n\`\`\`python\n${lines.join("\n")}\n\`\`\`\n`;
    return (await checksOf({ "/": { body, type: "text/markdown" } }, "sample-parses")).map(({ line }) => line);
  };
  const head = ["def open(gate):", "    width = [gate.left,", "  gate.right]", '    text = """a', '  b""" + gate.name'];
  expect(await broken([...head, "    return text", "open(1)"])).toEqual([]);
  expect(await broken([...head, "  return text", "open(1)"])).toEqual([9]);
  expect(await broken(["        return text", "", "    def close(gate):", "        pass"])).toEqual([]);
});

test("text that was encoded twice is garbled, but not a page that shows some of it", async () => {
  const garbled = async (text: string) =>
    (await checksOf({ "/": page(`<meta charset="utf-8"><h1>Open a gate</h1><p>${text}</p>`) }, "charset-matches"))
      .length;
  expect(await garbled("Félix, Jörg, Anaïs")).toBe(0);
  expect(await garbled(Buffer.from("Félix, Jörg, Anaïs – “it’s”").toString("latin1"))).toBe(1);
  expect(await garbled("Félix, Jörg, Anaïs, Søren, Zoé: the é of one is Ã© elsewhere")).toBe(0);
});

test("a list all of whose entries are elsewhere is of the docs if it has their name", async () => {
  const links = ["a", "b", "c"].map((name) => `<a href="/docs/${name}">Gate ${name}</a>`).join(" ");
  const pages = Object.fromEntries(
    ["a", "b", "c"].map((name) => [`/docs/${name}`, page(`<h1>Gate ${name}</h1><p>${prose}</p>`)]),
  );
  const deadWith = async (name: string) => {
    const list = { body: `# ${name}\n\n- [Gate a](/old/a)\n- [Gate b](/old/b)\n`, type: "text/plain" };
    const routes = { ...pages, "/docs/": page(`<h1>Gates</h1><p>${links}</p>`), "/llms.txt": list };
    return (await checksOf(routes, "llms-entry-resolves", "/docs/")).length;
  };
  expect([await deadWith("Gates"), await deadWith("Harbor")]).toEqual([2, 0]);
});

test("an error page that loads a test of the browser is bot protection, on the way to the answer too", async () => {
  const challenge = `<html><head><title>Just a moment</title></head><body><h2>Please wait while your browser is checked for a moment.</h2>
    <script>var s = document.createElement("script"); s.src = "/x/challenge-platform/run";</script></body></html>`;
  const site = serveSite({
    "/": page('<h1>Gates</h1><p><a href="/open">Open a gate</a></p>'),
    "/open": () => new Response(challenge, { status: 403, headers: { "content-type": "text/html" } }),
  });
  const { grade } = await explore(`${site.url}/`, "Open a gate").finally(site.stop);
  const titles = grade.frictions.map(({ title }) => title.replace(/ on .*|: .*/, ""));
  expect(titles).toContain("Bot protection in front of a page");
  expect(titles).not.toContain("Page requires sign-in");
});

test("a comment says which version of a package a sample is for", async () => {
  const install = "# Installation\n\n```groovy\nimplementation 'dev.gates:gate4j:5.2.0'\n```\n";
  const sample = (version: string) =>
    `# Open a gate\n\n[Install](/install) it.\n\n\`\`\`java\n// dev.gates:gate4j:${version}\nimport dev.gates.Gate;\nGate.open();\n\`\`\`\n`;
  const other = async (version: string) =>
    (
      await checksOf(
        { "/": { body: sample(version), type: "text/markdown" }, "/install": { body: install, type: "text/markdown" } },
        "sdk-version-matches",
      )
    ).map(({ line }) => line);
  expect([await other("4.0.2"), await other("5.0.0")]).toEqual([[6], []]);
});

test("nobody knows what a page explains that could not be read", async () => {
  const sample = `# Open a gate\n\n${prose}\n\n[Install](/install) it first.\n\n\`\`\`python\nimport os\nopen_gate(os.environ["GATES_TOKEN"])\n\`\`\`\n`;
  const unexplained = async (install: SiteRoute) => {
    const routes = { "/": { body: sample, type: "text/markdown" }, "/install": install };
    return (await checksOf(routes, "prerequisite-explained")).map(({ quote }) => quote);
  };
  expect(await unexplained({ body: `# Install\n\n${prose}\n`, type: "text/markdown" })).toEqual(["GATES_TOKEN"]);
  expect(await unexplained({ body: "", status: 500 })).toEqual([]);
  const tabs = '<div role="tablist"><button role="tab">A</button><button role="tab">B</button></div>';
  expect(await unexplained(page(`<h1>Install</h1><p>${prose}</p>${tabs}`))).toEqual([]);
});

test("what was seen is fixed before what is only missing in all that was read", async () => {
  const body = `# Open a gate\n\n${prose}\n\n\`\`\`python\nimport os\nopen_gate(os.environ["GATES_TOKEN"])\n\`\`\`\n\n\`\`\`json\n{ "gate": 1, }\n\`\`\`\n`;
  const site = serveSite({ "/": { body, type: "text/markdown" } });
  const { grade } = await explore(`${site.url}/`, "Open a gate").finally(site.stop);
  const titles = grade.recommendations.filter(({ isConvention }) => !isConvention).map(({ title }) => title);
  expect(titles.map((title) => title.split(" ").slice(0, 2).join(" "))).toEqual(["Fix code", "Explain the"]);
});

test("XHTML is HTML, whatever its content type says", async () => {
  const body = `<?xml version="1.0"?>\n<!-- made by hand -->\n<!DOCTYPE html PUBLIC "-//W3C//DTD XHTML 1.0 Strict//EN" "x.dtd">\n<html><head><title>Open a gate</title></head><body><p>${prose}</p></body></html>`;
  const wrongWith = async (type: string) => (await checksOf({ "/": { body, type } }, "content-type-matches")).length;
  expect([await wrongWith("text/plain"), await wrongWith("application/xhtml+xml")]).toEqual([1, 0]);
});

test("a host that closes a connection without a response exists, so the link isn't dead", async () => {
  const home = `# Open a gate\n\n${prose}\n\n[Install](/install) it first.\n`;
  const listener = Bun.listen({
    hostname: "127.0.0.1",
    port: 0,
    socket: {
      data(socket, data) {
        const path = data.toString().split(" ")[1];
        const status = path === "/" ? "200 OK" : "404 Not Found";
        if (path !== "/install")
          socket.write(`HTTP/1.1 ${status}\r\ncontent-type: text/markdown\r\nconnection: close\r\n\r\n${home}`);
        socket.end();
      },
    },
  });
  const { grade } = await explore(`http://127.0.0.1:${listener.port}/`, "Open a gate").finally(() =>
    listener.stop(true),
  );
  const titles = grade.frictions.map(({ title }) => title.replace(/ on .*|: .*/, ""));
  expect(titles).toContain("Page cannot be read");
  expect(titles).not.toContain("Dead link");
});

test("elements that are nested too deeply are found on any page, and not if browsers end them", async () => {
  const deepWith = async (html: string) => {
    const routes = {
      "/": page(`<h1>Open a gate</h1><p>${prose}<a href="/install">Install</a></p>${command}`),
      "/install": page(`<h1>Install</h1><p>${prose}</p>${html}`),
    };
    return (await checksOf(routes, "nesting-depth")).map(({ subject }) => subject);
  };
  expect(await deepWith("<div>".repeat(600) + "</div>".repeat(600))).toEqual(["/install"]);
  expect(await deepWith(`<table>${"<tr><td>a".repeat(600)}</table><dl>${"<dt>a<dd>b".repeat(600)}</dl>`)).toEqual([]);
});

test("a page on the way that says nothing has no content, in whatever words", async () => {
  const routes = (text: string) => ({
    "/": boats('<a href="/open">Open a gate</a> <a href="/more">More</a>'),
    "/open": { body: `<title>Gates, part 2</title><h1>Gates, part 2</h1><p>${text}</p>` },
    "/more": page(
      `<h1>More</h1><p>Gates are made of oak, and last for forty years if they are oiled in spring, before the first storms.</p>`,
    ),
  });
  const emptyWith = async (text: string) =>
    (await checksOf(routes(text), "page-has-content")).map(({ subject }) => subject);
  expect(await emptyWith("This page was intentionally left blank.")).toEqual(["/open"]);
  expect(await emptyWith("")).toEqual(["/open"]);
  expect(
    await emptyWith("Turn the wheel to the left until the chain is tight, then pull the lever once.".repeat(2)),
  ).toEqual([]);
});

test("brackets that match in no language are wrong in a sample without a label", async () => {
  const brokenLineIn = async (code: string) => {
    const body = `# Open a gate\n\n${prose}\n\n\`\`\`\n${code}\n\`\`\`\n`;
    return (await firstOf({ "/": { body, type: "text/markdown" } }, "sample-parses"))?.[1];
  };
  const kotlin = `suspend fun main() {\n    val gate = Gates.open(name = "north"\n    gate.use {\n        println(it.state)\n    }\n}`;
  expect(await brokenLineIn(kotlin)).toBe(7);
  expect(await brokenLineIn(kotlin.replace('"north"', '"north")'))).toBeUndefined();
  expect(await brokenLineIn(`- val gate = 1\n${kotlin}`)).toBeUndefined();
  expect(await brokenLineIn("1) open the gate if it is closed (\n2) wait for the tide")).toBeUndefined();
});

test("packages of Swift, Homebrew and .NET have versions, and release notes name old ones", async () => {
  const other = async (install: string, sample: string) => {
    const routes = {
      "/": {
        body: `# Gates\n\n[Install](/install), [open a gate](/open), [changes](/changes).\n`,
        type: "text/markdown",
      },
      "/changes": { body: `# Changes\n\nUntil then:\n\n\`\`\`\n${sample}\n\`\`\`\n`, type: "text/markdown" },
      "/install": { body: `# Install\n\n\`\`\`\n${install}\n\`\`\`\n`, type: "text/markdown" },
      "/open": { body: `# Open a gate\n\n${prose}\n\n\`\`\`\n${sample}\n\`\`\`\n`, type: "text/markdown" },
    };
    return (await checksOf(routes, "sdk-version-matches")).map(({ line }) => line);
  };
  const swift = (version: string) => `.package(url: "https://github.com/gates/gate-swift.git", from: "${version}"),`;
  expect([await other(swift("3.1.0"), swift("2.0.0")), await other(swift("3.1.0"), swift("3.0.0"))]).toEqual([[6], []]);
  expect(await other("brew install gates/tap/gate@3", "brew install gates/tap/gate@2")).toEqual([6]);
  expect(await other("dotnet add package Gates --version 3.1.0", "dotnet add package Gates --version 2.0.0")).toEqual([
    6,
  ]);
});

test("a call is known by its URL and method in any language", async () => {
  const calls = async (language: string, code: string) =>
    (await callsOf({ language, code, line: 1, isClosed: true })).map(({ method, url }) => `${method} ${url.pathname}`);
  const url = '"https://api.gates.dev/v1/gates"';
  expect(await calls("js", `await axios(${url});\nawait ky(${url}, { method: "put" });\nawait got(${url});`)).toEqual([
    "GET /v1/gates",
    "PUT /v1/gates",
    "GET /v1/gates",
  ]);
  expect(await calls("js", `await axios.get(${url});\nawait axios.request({ url: ${url}, method: "post" });`)).toEqual([
    "GET /v1/gates",
    "POST /v1/gates",
  ]);
  expect(await calls("python", `requests.request("DELETE", ${url})\nhttpx.get(${url})`)).toEqual([
    "DELETE /v1/gates",
    "GET /v1/gates",
  ]);
  expect(await calls("csharp", `await client.PostAsync(new Uri(${url}), body);`)).toEqual(["POST /v1/gates"]);
  expect(await calls("php", `$client->delete(${url});`)).toEqual(["DELETE /v1/gates"]);
  expect(await calls("go", `http.NewRequestWithContext(ctx, "PUT", ${url}, nil)`)).toEqual(["PUT /v1/gates"]);
  expect(
    await calls("java", `HttpRequest.newBuilder(URI.create(${url}))\n  .header("a", "b")\n  .POST(body).build();`),
  ).toEqual(["POST /v1/gates"]);
  expect(await calls("swift", `var r = URLRequest(url: URL(string: ${url})!)\nr.httpMethod = "PATCH"`)).toEqual([
    "PATCH /v1/gates",
  ]);
});

test("line numbers in a table are no part of the code beside them", () => {
  const codeOf = (html: string) => {
    const { samples, markdown } = readPage(
      "http://docs.test/",
      "text/html",
      `<h1>Open a gate</h1><p>${prose}</p>${html}`,
    );
    return samples.map(({ code, line }) => [code, markdown.split("\n")[line]]);
  };
  const row = (number: number, code: string) => `<tr><td class="n">${number}</td><td><span>${code}</span></td></tr>`;
  const rows = `<pre><code><table><tbody>${row(1, "gate open")}${row(2, "")}${row(3, "gate close 4")}</tbody></table></code></pre>`;
  expect(codeOf(rows)).toEqual([["gate open\n\ngate close 4", "gate open"]]);
  const cells =
    "<table><tbody><tr><td><div><pre><span>1</span>\n<span>2</span></pre></div></td><td><div><pre><code>gate open\ngate close</code></pre></div></td></tr></tbody></table>";
  expect(codeOf(cells)).toEqual([["gate open\ngate close", "gate open"]]);
});

test("UTF-16 that nothing declares is garbled", async () => {
  const body = new Uint8Array(Buffer.from(`<h1>Open a gate</h1><p>${prose}</p>`, "utf16le"));
  expect((await checksOf({ "/": { body } }, "charset-matches")).length).toBe(1);
});

test("placeholders in the description of a command are not for readers to fill in", async () => {
  const count = async (code: string) => {
    const body = `# Open a gate\n\n${prose}\n\n\`\`\`sh\n${code}\n\`\`\`\n`;
    return (await checksOf({ "/": { body, type: "text/markdown" } }, "placeholder-explained")).length;
  };
  for (const text of [
    "gate open <harbor> [<berth>...] [flags]",
    "Usage: gate open <harbor>",
    "gate open --help\n  -b, --berth <BERTH>  Where the ship is",
  ])
    expect([text, await count(text)]).toEqual([text, 0]);
  for (const text of [
    "gate open <harbor>",
    "gate open \\\n  --berth <berth>  \\\n  --hold",
    "[ -f a ] && gate open <harbor>",
  ])
    expect([text, await count(text)]).toEqual([text, 1]);
});

test("what a placeholder is the value of doesn't explain it", async () => {
  const unexplained = async (text: string) => {
    const body = `# Open a gate\n\n${text}\n\n\`\`\`sh\ncurl "https://api.gates.dev/open?dock=YOUR_DOCK"\n\`\`\`\n`;
    return (await checksOf({ "/": { body, type: "text/markdown" } }, "placeholder-explained")).length;
  };
  const option = `${prose}\n\n\`\`\`sh\ngate join --token <token> 1\n\`\`\``;
  expect([await unexplained(prose), await unexplained(option)]).toEqual([1, 2]);
  expect(await unexplained(`${prose} Each dock has a number.`)).toBe(0);
});

test("typographic quotes are wrong in programs, but not in their texts", async () => {
  const isBroken = async (language: string, code: string) =>
    (await parseSample({ language, code, line: 1, isClosed: true }))?.broken;
  const open = (language: string, text: string) => isBroken(language, `open(${text}, 1);\nclose(2);`);
  for (const language of ["go", "java", "php", "csharp", "rust", "cpp"])
    expect([language, await open(language, "“north”"), await open(language, '"a “b” c"')]).toEqual([
      language,
      true,
      false,
    ]);
});

test("a page that is sent as a file is no download unless its name is sent too", async () => {
  const subjects = async (path: string, body: string, headers = {}) => {
    const routes = {
      "/": boats(`<a href="/open">Open a gate</a> <a href="${path}">List</a>`),
      "/open": { body: `# Open a gate\n\n${prose}\n\n\`\`\`sh\ngate open\n\`\`\`\n`, type: "text/markdown" },
      [path]: { body, type: "application/octet-stream", headers },
    };
    return [...new Set((await checksOf(routes, "content-type-readable")).map(({ subject }) => subject))];
  };
  const attachment = { "content-disposition": "attachment" };
  expect(await subjects("/list", `<!doctype html><h1>Gates</h1><p>${prose}</p>`, attachment)).toEqual(["/list"]);
  const download = { "content-disposition": "attachment; filename=gates.html" };
  expect(await subjects("/list", `<!doctype html><h1>Gates</h1><p>${prose}</p>`, download)).toEqual([]);
  expect(await subjects("/list.md", `# Gates\n\n${prose}`)).toEqual(["/list.md"]);
  expect(await subjects("/list.bin", prose)).toEqual([]);
});

test("a page of pictures in Markdown says nothing", async () => {
  const body = (name: string, text: string) => ({ body: `# ${name}\n\n${text}\n`, type: "text/markdown" });
  const routes = {
    "/": body("Gates", `${prose} [Open a gate](/open) and [close it](/close).`),
    "/open": body("Open a gate", "![](/1.png)\n\n![](/2.png)\n\n![](/3.png)"),
    "/close": body(
      "Close it",
      `Turn the wheel back until the bell rings twice, and then wait until the last boat has passed. ![](/4.png)`,
    ),
  };
  const checks = await checksOf(routes, "text-instead-of-pictures");
  expect(checks.map(({ subject, line }) => [subject, line])).toEqual([["/open", 3]]);
});

const brokenLine = async (language: string, lines: string[]) => {
  const result = await parseSample({ language, code: lines.join("\n"), line: 1, isClosed: true });
  return result?.broken ? result.line : null;
};

test("what is missing between two lines is reported where the first of them ends", async () => {
  expect(
    await brokenLine("js", ["gates({", "  north: {", "    width: 1", "  }", "", "  // wide", "  south: 2,", "});"]),
  ).toBe(4);
  expect(await brokenLine("json", ["{", '  "width": 1', '  "height": 2', "}"])).toBe(2);
  expect(await brokenLine("toml", ["gates = [", '  {name = "a"}', '  {name = "b"}', "]"])).toBe(2);
  const python = ["gates = [", '    Gate("north", sides=["a"])', '    Gate("south"),', "]"];
  expect(await brokenLine("python", python)).toBe(2);
  for (const next of ['    "b" for _ in docks', "    if wide else None", '    .name("a")'])
    expect(await brokenLine("python", ["gates = [", "    gate", next, "]", "x ="])).toBeNull();
});

test("what is never closed is reported where it starts", async () => {
  const call = ['gate open "north \\', '  --name "a b" \\', "  --wide"];
  expect(await brokenLine("sh", call)).toBe(1);
  expect(await brokenLine("sh", ["gate list", 'gate open --json \'{ "a": 1,', '  "b": "it" }', "  --as 'me'"])).toBe(2);
  expect(await brokenLine("sh", ["gate say 'two", "lines'", 'gate open "north'])).toBe(3);
  expect(await brokenLine("sh", ["gate say 'two", "lines' \"a\" # don't"])).toBeNull();
  expect(await brokenLine("json", ["{", '  "width": 1,', "  \"sides\": ['a']", "}"])).toBe(3);
});

test("a quote that is never closed is named, and not the bracket around it", async () => {
  const messageOf = async (language: string, code: string) => {
    const result = await parseSample({ language, code, line: 1, isClosed: true });
    return result?.broken ? result.message : null;
  };
  const cases: [language: string, code: string, mark: string][] = [
    ["swift", 'open { gate in\n  label.text = "\\(gate.name) open\n}', '"'],
    ["php", "#[Gate(min: 2, name: 'Wide gate.)]\npublic string $a = '';", "'"],
    ["java", "gate.open(wide(2;\n// don't", "("],
    ["kotlin", "open(gate[1)\n", "["],
  ];
  for (const [language, code, mark] of cases)
    expect([language, (await messageOf(language, code))?.split(" ")[0]]).toEqual([language, mark]);
});

test("a comma after an import separates nothing", async () => {
  const rest = ["", "export const open = () => gate({ wide: true });"];
  expect(await brokenLine("js", ["// open.js", "", 'import { gate } from "gates",', ...rest])).toBe(3);
  expect(await brokenLine("js", ["// open.js", "", 'import { gate } from "gates";', ...rest])).toBeNull();
});

test("a shell refuses a branch without a condition, and a line of options without a backslash before it", async () => {
  const branch = (second: string) => ['if [ "$1" = low ]; then', "  open", `${second} then`, "  close", "fi"];
  expect(await brokenLine("zsh", branch("elif;"))).toBe(3);
  expect(await brokenLine("bash", branch("elif true;"))).toBeNull();
  const call = (end: string) => [
    "curl https://gates.dev \\",
    `  --header "A: b"${end}`,
    "  --json '{",
    '    "c": 1',
    "  }'",
  ];
  expect(await brokenLine("bash", call(""))).toBe(2);
  expect(await brokenLine("bash", call(" \\ "))).toBe(2);
  expect(await brokenLine("bash", call(" \\"))).toBeNull();
  expect(await brokenLine("sh", ["gate [options]", "  --wide  Open all of it", "  --slow  Take time"])).toBeNull();
});

test("the code of a page of HTML shows that a fence was never closed in its source", () => {
  const closed = (language: string, code: string) =>
    readPage(
      "http://docs.test/",
      "text/html",
      `<h1>Gates</h1><pre><code class="language-${language}">${code}</code></pre>`,
    ).samples[0]?.isClosed;
  const swallowed = "open();\n\nThen:\n\n```js title=close.js\nclose();\n";
  expect([closed("js", swallowed), closed("text", swallowed), closed("md", swallowed)]).toEqual([false, false, true]);
  expect([closed("text", `${swallowed}\`\`\`\n`), closed("text", "```js\nopen();\n")]).toEqual([true, true]);
});

test("a fragment names a line only of a file of code", async () => {
  const section = `<h1 id="a">Gates</h1><h2 id="b">Open</h2><p>${prose.repeat(3)}</p>`;
  const links = '<a href="/fuses#L27">Fuses</a> <a href="/gate.go#L27">Source</a>';
  const routes = { "/": page(section + links), "/fuses": page(section), "/gate.go": page(section) };
  expect((await checksOf(routes, "anchor-resolves")).map(({ subject }) => subject)).toEqual(["/fuses#L27"]);
});

test("a package is missing that only one sample imports, if its name is nearly that of an installed one", async () => {
  const missing = async (install: string, imports: string, other = "") => {
    const sample = (code: string) => `\`\`\`js\n${code}\n\`\`\`\n`;
    const routes = {
      "/": { body: `# Gates\n\n[Open a gate](/open)\n\n${prose}\n\n${other && sample(other)}`, type: "text/markdown" },
      "/open": {
        body: `# Open a gate\n\n${prose}\n\n\`\`\`sh\nnpm install ${install}\n\`\`\`\n\n${sample(imports)}`,
        type: "text/markdown",
      },
    };
    return (await checksOf(routes, "prerequisite-explained")).map(({ quote }) => quote);
  };
  const from = (name: string) => `import { Lever } from "${name}";`;
  expect(await missing("@harbor/exporter-oltp", from("@harbor/exporter-otlp"))).toEqual(["@harbor/exporter-otlp"]);
  expect(await missing("@harbor/exporter-v2", from("@harbor/exporter-v3"))).toEqual([]);
  expect(await missing("harbor-cache-lever", from("harbor-lever"), from("harbor-cache-lever"))).toEqual([
    "harbor-lever",
  ]);
  expect(
    await missing("harbor-cache-lever", from("harbor-lever"), from("harbor-cache-lever").replace("Lever", "Rope")),
  ).toEqual([]);
  expect(await missing("@harbor/gateway", from("@harbor/gatway"), from("@harbor/gateway"))).toEqual(["@harbor/gatway"]);
  expect(
    await missing("@harbor/gateway", from("@harbor/gatway"), from("@harbor/gateway").replace("Lever", "Rope")),
  ).toEqual([]);
});

test("a module of Go without a version in its path has version 1", async () => {
  const other = async (imported: string) => {
    const routes = {
      "/": { body: `# Gates\n\n[Install](/install), [open a gate](/open).\n`, type: "text/markdown" },
      "/install": { body: "# Install\n\n```sh\ngo get github.com/gates/gate/v3\n```\n", type: "text/markdown" },
      "/open": { body: `# Open a gate\n\n${prose}\n\n\`\`\`go\nimport "${imported}"\n\`\`\`\n`, type: "text/markdown" },
    };
    return (await checksOf(routes, "sdk-version-matches")).map(({ line }) => line);
  };
  expect(await other("github.com/gates/gate")).toEqual([6]);
  expect([await other("github.com/gates/gate/v3"), await other("github.com/gates/gate/trace")]).toEqual([[], []]);
});

test("a call whose host readers fill in is one of the API if its path is", async () => {
  const openapi = JSON.stringify({
    openapi: "3.0.3",
    info: { title: "Gates", version: "1" },
    servers: [{ url: "https://api.gates.dev/v1" }],
    paths: { "/gates/{id}": { patch: { responses: { 200: { description: "Changed" } } } } },
  });
  const wrong = async (call: string) => {
    const body = `# Open a gate\n\n${prose}\n\n[API](/openapi.json)\n\n\`\`\`sh\ncurl \\\n  -X ${call}\n\`\`\`\n`;
    const routes = {
      "/": { body, type: "text/markdown" },
      "/openapi.json": { body: openapi, type: "application/json" },
    };
    return (await checksOf(routes, "sample-matches-api")).length;
  };
  for (const host of ["GATES_URL", "$GATES", "http://$HOST:8080/v1", "'{{base_url}}"])
    expect(await wrong(`PUT ${host}/gates/GATE_ID${host.startsWith("'") ? "'" : ""}`)).toBe(1);
  expect([await wrong("PATCH GATES_URL/gates/GATE_ID"), await wrong("PUT $OTHER/docks/1")]).toEqual([0, 0]);
});

test("a short page with sections is no error page", async () => {
  const text = (sections: string) => ({ body: `# Gates\n\n${sections}`, type: "text/plain" });
  const suspected = async (sections: string) => {
    const routes = {
      "/": page(`<h1>Boats</h1><p>${prose} <a href="/llms-full.txt">Open all as text</a></p>`),
      "/llms-full.txt": text(sections),
    };
    return [...(await checksOf(routes, "missing-pages-say-so")), ...(await checksOf(routes, "page-has-content"))]
      .length;
  };
  const line = "Turn the wheel until the chain is tight.";
  expect(await suspected(`## North\n\n${line}\n\n## South\n\n${line}\n`)).toBe(0);
  expect(await suspected("It moved to another harbor in spring.\n")).toBe(1);
});

test("the entry of a list is told from others that start with its address", async () => {
  const urls = ["/gates/open/wide", "/gates/open/"].map((path) => `<url><loc>{{ORIGIN}}${path}</loc></url>`).join("\n");
  const routes = {
    "/": page(`<h1>Open a gate</h1><p>${prose}</p>`),
    "/gates/open/wide": page(`<h1>Wide</h1><p>${prose}</p>`),
    "/one": { body: `# Open a gate\n\n${prose}\n\n[All gates](/open)\n\n${prose}\n`, type: "text/markdown" },
    "/sitemap.xml": (request: Request) =>
      new Response(`<urlset>\n${urls.replaceAll("{{ORIGIN}}", new URL(request.url).origin)}\n</urlset>`, {
        headers: { "content-type": "application/xml" },
      }),
  };
  const lines = (await checksOf(routes, "sitemap-entry-resolves")).map(({ line }) => line);
  expect([...new Set(lines)]).toEqual([3]);
});

test("callouts of AsciiDoc are no part of the code", async () => {
  const callout = (number: number) => `<i class="conum" data-value="${number}"></i><b>(${number})</b>`;
  const code = `{ # ${callout(1)}\n  "a": 1, ${callout(2)} ${callout(3)}\n  "b": 2\n}`;
  const html = `<h1>Gates</h1><pre class="highlight"><code class="language-json">${code}</code></pre>`;
  const [sample] = readPage("http://docs.test/", "text/html", html).samples;
  expect([sample?.line, sample?.code]).toEqual([3, '{\n  "a": 1,\n  "b": 2\n}']);
});

test("parameters of Go are closed before the block of their function", async () => {
  const head = (parameters: string) => ["gates.Use(gates.Dump(func(", `  gate gates.Gate, ${parameters} {`, "})))"];
  expect(await brokenLine("go", head("sides []byte"))).toBe(2);
  const valid = "ends struct{ a int }, any interface{}, f func(int) error) error";
  expect(await brokenLine("go", ["x := 1 +", ...head(valid).slice(0, 2), "}))"])).toBeNull();
});

test("a page that declares no encoding is read as browsers read it", async () => {
  const names = "Thanks to Jörg, Zoë and Søren, who oiled the gates.";
  const garbledAs = async (bytes: Buffer, type: string) => {
    const routes = { "/": { body: new Uint8Array(bytes), type } };
    return (await checksOf(routes, "charset-matches")).length;
  };
  const html = `<title>Gates</title><h1>Open a gate</h1><p>${prose}${names}</p>`;
  expect(await garbledAs(Buffer.from(html, "latin1"), "text/html")).toBe(0);
  expect(await garbledAs(Buffer.from(html), "text/html")).toBe(0);
  expect(await garbledAs(Buffer.from(html, "latin1"), "text/html; charset=utf-8")).toBe(1);
  expect(decodeText(new Uint8Array(Buffer.from(names, "latin1")), "text/html")).toBe(names);
});

test("what is written out beside a parameter of a path belongs to the path", async () => {
  const openapi = JSON.stringify({
    openapi: "3.0.3",
    info: { title: "Gates", version: "1" },
    servers: [{ url: "https://api.gates.dev" }],
    paths: { "/gates/{id}": { get: {} }, "/gates/{id}:open": { post: {} }, "/plans/{name}.{format}": { get: {} } },
  });
  const right = [
    "GET /gates/GATE_ID",
    "POST /gates/g_1:open",
    "POST /gates/GATE_ID:open",
    "GET /gates/g:1",
    "GET /plans/a.svg",
  ];
  const wrong = ["POST /gates/g_1", "POST /gates/g_1:close", "GET /plans/a"];
  const samples = [...right, ...wrong].map((call) => {
    const [method, path] = call.replace("GATE_ID", "{id}").split(" ");
    return `\`\`\`sh\ncurl -X ${method} https://api.gates.dev${path}\n\`\`\`\n`;
  });
  const body = `# Open a gate\n\n${prose}\n\n[API](/openapi.json)\n\n${samples.join("\n")}`;
  const routes = { "/": { body, type: "text/markdown" }, "/openapi.json": { body: openapi, type: "application/json" } };
  const checks = await checksOf(routes, "sample-matches-api");
  const expected = wrong.map((call) => expect.stringContaining(`${call}:`));
  expect(checks.map(({ message }) => message)).toEqual(expected);
});

test("a page that leads elsewhere, has sections or tools, or says something of its name, has content", async () => {
  const menu = ["install", "boats/", "try", "tides"].map((name) => `<li><a href="/${name}">${name}</a></li>`).join("");
  const page = (title: string, main: string) => ({
    body: `<head><title>${title}</title></head><nav><ul>${menu}</ul></nav><main><h1>${title}</h1>${main}</main>`,
  });
  const emptyWith = async (install: string, start = "<p>Opens gates.</p>") => {
    const routes = {
      "/": page("Gates", start),
      "/install": page("Install", install),
      "/boats/": page("Boats", '<a href="/boats/ferry">A ferry</a>'),
      "/boats/ferry": page("A ferry", `<p>${prose}</p>`),
      "/try": page("Try", "<p>All of it runs in the browser.</p><textarea>open north</textarea>"),
      "/tides": page("Tides", "<h2>High</h2><p>Twice a day.</p><h2>Low</h2><p>Between them.</p>"),
    };
    const ids = ["page-has-content", "missing-pages-say-so"];
    return (await Promise.all(ids.map((id) => checksOf(routes, id)))).flat().map(({ subject }) => subject);
  };
  expect(await emptyWith("<p>Install it with <code>gatectl</code>.</p>")).toEqual([]);
  expect(await emptyWith("<p>Will be written next week.</p>", "<ul><li>Welcome</li></ul>")).toEqual(["/install"]);
});

test("an icon of all pages, or one in a list of links, stands in place of no text", async () => {
  const row = (name: string) => `<tr><td><a href="/${name}">${name}</a></td><td>2026-02-01</td></tr>`;
  const list = {
    body: `<h1>Files</h1><table><tr><th><img src="/i.png" alt="[F]"></th></tr>${row("open")}${row("hold")}</table>`,
  };
  const text = { body: `# Open a gate\n\n${prose}\n`, type: "text/plain" };
  const routes = { "/": list, "/?sort=name": list, "/?sort=date": list, "/open": text, "/hold": text };
  expect(await checksOf(routes, "text-instead-of-pictures")).toEqual([]);
  const pictures = { body: `<h1>Hold a gate</h1><img src="/1.png"><img src="/2.png"><a href="/open">Next</a>` };
  const found = await checksOf({ ...routes, "/hold": pictures }, "text-instead-of-pictures");
  expect(found.map(({ subject }) => subject)).toEqual(["/hold"]);
});

test("a text that says how it is shown is a sample, and the name of a tab or a language isn't", () => {
  const samplesOf = (html: string) =>
    readPage("https://gates.test/", "text/html", `<h1>Gates</h1><p>${prose}</p>${html}<p>${prose}</p>`).samples.map(
      ({ language, code }) => [language, code],
    );
  const code = "gate.open(&quot;north&quot;);\n  wait();";
  const text = 'gate.open("north");\n  wait();';
  expect(samplesOf(`<div class="code-block" data-lang="java">${code}</div>`)).toEqual([["java", text]]);
  expect(samplesOf(`<div role="code" data-language="go">${code}</div>`)).toEqual([["go", text]]);
  expect(samplesOf(`<div style="color: red; white-space: pre">${code}</div>`)).toEqual([[null, text]]);
  expect(samplesOf('<div class="code-block" data-lang="bash">gate open --wide</div>')).toEqual([
    ["bash", "gate open --wide"],
  ]);
  expect(samplesOf(`<div class="gate" data-lang="java"><pre>${code}</pre></div>`)).toEqual([["java", text]]);
  for (const html of [
    '<div class="tab" data-lang="cpp">C++</div><div class="tab" data-lang="js">Node.js</div>',
    `<div class="greeting" data-lang="de">Tore\nöffnen sich; (bald)</div>`,
    `<div style="white-space: pre-wrap">${prose}\n${prose}</div>`,
    `<div class="tabs" data-lang="java"><p>${prose}</p></div>`,
  ])
    expect(samplesOf(html)).toEqual([]);
});

test("a page of pictures isn't one whose text scripts bring, which has a logo at most", () => {
  const pageOf = (body: string) =>
    readPage(
      "https://gates.test/",
      "text/html",
      `<div id="app"><h1>Gates</h1>${body}</div><div id="live"></div><script src="/a.js"></script>`,
    );
  const pictures = pageOf('<img src="/1.png" alt="Step 1"><img src="/2.png" alt="Step 2">');
  expect([pictures.problem, pictures.hasOnlyImages]).toEqual([null, true]);
  expect(pageOf('<img src="/logo.png" alt="Gates">').problem).toBe("empty_shell");
});

test("a list of links to pages of the menu has content", async () => {
  const menu = ["/", "/open", "/close", "/docks", "/tides"].map((path) => `<a href="${path}">${path}</a>`).join(" ");
  const page = (body: string) => ({ body: `<title>Gates</title><nav>${menu}</nav>${body}`, type: "text/html" });
  const linesOf = async (docks: string) => {
    const rest = Object.fromEntries(
      ["/", "/open", "/close", "/tides"].map((path) => [
        path,
        page(`<h1>${path.slice(1)} a gate</h1><p>${path} ${prose.repeat(3)}</p>`),
      ]),
    );
    return (await checksOf({ ...rest, "/docks": page(`<h1>Docks</h1>${docks}`) }, "page-has-content")).map(
      ({ subject }) => subject,
    );
  };
  const item = (path: string) => `<li><a href="${path}">Dock ${path.length}</a></li>`;
  expect(await linesOf(`<ul>${item("/open")}${item("/close")}${item("/tides")}</ul>`)).toEqual([]);
  expect(await linesOf("<p>Soon.</p>")).toEqual(["/docks"]);
});

test("a sample is wrong on purpose if what introduces it says so", async () => {
  const brokenAfter = async (sentences: string[]) => {
    const samples = sentences.map((sentence, at) => `${sentence}\n\n\`\`\`json\n{ "gate": [${at}, }\n\`\`\`\n`);
    const body = `# Open a gate\n\n${prose}\n\n${samples.join("\n")}`;
    const checks = await checksOf({ "/": { body, type: "text/markdown" } }, "sample-parses");
    return checks.map(({ quote }) => Number(/\d/.exec(quote!)?.[0]));
  };
  const intended = [
    "To close it, remove the comma. Incorrect code for this rule:",
    "The following plan has a typo. Find it before you go on:",
    "This configuration contains two mistakes:",
    "Spot the bug:",
    "This plan leads to a parser crash and an error:",
    "The following plan raises a `GateError`:",
    "Such a plan doesn't load:",
    "The comma makes this a malformed example:",
    "A frequent mistake is a comma too many:",
  ];
  const unintended = [
    "If this plan raises an error when the tide is high, write:",
    "A common mistake is to forget the number, so write it instead:",
    "The next plan works, and the broken one doesn't. To open a gate in spite of an error:",
    "If the gate has a bug, open it by hand:",
    "Write a plan. See what it opens:",
    "The invalid plan is now fixed by the code for this gate:",
  ];
  expect(await brokenAfter(intended)).toEqual([]);
  expect(await brokenAfter(unintended)).toEqual(unintended.map((_, at) => at));
});

test("robots.txt may forbid a search that the answer links to", async () => {
  const forbidden = async (link: string) => {
    const routes = {
      "/": page(`<h1>Open a gate</h1><p>${prose}</p><p>See also <a href="${link}">other gates</a>.</p>`),
      "/robots.txt": { body: "User-agent: *\nDisallow: /find\n", type: "text/plain" },
    };
    return (await checksOf(routes, "robots-allow")).length;
  };
  expect([await forbidden("/find?q=gate"), await forbidden("/find")]).toEqual([0, 1]);
});

test("a setting is a version only where a project lists its dependencies", async () => {
  const other = async (language: string, install: string, sample: string) => {
    const fence = (code: string) => `\`\`\`${language}\n${code}\n\`\`\`\n`;
    const routes = {
      "/": { body: `# Gates\n\n[Install](/install), [open a gate](/open).\n`, type: "text/markdown" },
      "/install": { body: `# Install\n\n${prose}\n\n${fence(install)}`, type: "text/markdown" },
      "/open": { body: `# Open a gate\n\n${prose}\n\n${fence(sample)}`, type: "text/markdown" },
    };
    return (await checksOf(routes, "sdk-version-matches")).map(({ quote }) => quote);
  };
  const differ = async (language: string, code: (value: string) => string, values: [string, string]) =>
    (await other(language, code(values[0]), code(values[1]))).length > 0;
  expect([
    await differ("hcl", (hold) => `resource "gate" "a" {\n  hold = "${hold}"\n}`, ["1h", "30m"]),
    await differ("toml", (hold) => `[gate]\nhold = "${hold}"`, ["1.5", "3.0"]),
    await differ("json", (tries) => `{ "tries": "${tries}" }`, ["3", "5"]),
    await differ("json", (month) => `{ "month": "${month}" }`, ["2026-10", "2025-11"]),
    await differ("json", (price) => `{\n  "dependencies": { "gate": "3" },\n  "price": "${price}"\n}`, [
      "9.10",
      "3.60",
    ]),
  ]).toEqual([false, false, false, false, false]);
  expect([
    await differ("toml", (version) => `[dependencies]\ngate = "${version}"`, ["3", "2.1"]),
    await differ("toml", (version) => `rope = { version = "1", features = [] }\ngate = "${version}"`, [
      "3.0.0",
      "2.1.0",
    ]),
    await differ("json", (version) => `{ "devDependencies": { "@gates/gate": "${version}" } }`, ["3.1.0", "2"]),
    await differ("json", (version) => `"@gates/gate": "${version}"`, ["^3", "^2"]),
  ]).toEqual([true, true, true, true]);
});

test("a class of Java isn't part of the name of its package", () => {
  const code = "import dev.gates.tide.Gate;\nimport dev.gates.Lever.Arm;\n";
  const [sample] = readPage("http://docs.test/", "text/markdown", `\`\`\`java\n${code}\`\`\`\n`).samples;
  expect(importsOf(sample!).map(({ name }) => name)).toEqual(["gates.tide", "gates"]);
});

test("old versions on pages about releases are none that the docs install, whatever follows in their titles", async () => {
  const other = async (title: string) => {
    const gate = (version: string) => `\`\`\`sh\nnpm install @gates/gate@${version}\n\`\`\`\n`;
    const routes = {
      "/": { body: `# Gates\n\n[Install](/install), [open a gate](/open), [${title}](/old).\n`, type: "text/markdown" },
      "/install": { body: `# Install\n\n${prose}\n\n${gate("3")}`, type: "text/markdown" },
      "/old": { body: `# ${title}\n\n${prose}\n\n${gate("2")}`, type: "text/markdown" },
      "/open": { body: `# Open a gate\n\n${prose}\n\n${gate("2")}`, type: "text/markdown" },
    };
    return (await checksOf(routes, "sdk-version-matches")).length;
  };
  expect([
    await other("Upgrade guide – Gates Help Center"),
    await other("Release history"),
    await other("Levers"),
  ]).toEqual([1, 1, 0]);
});

test("removed lines of a diff are no part of its code", () => {
  const codeOf = (html: string) =>
    readPage(
      "http://docs.test/",
      "text/html",
      `<h1>Open a gate</h1><p>${prose}</p><pre><code class="language-js">${html}</code></pre>`,
    ).samples.map(({ code, isDiff, line }) => [code, isDiff ?? false, line]);
  const removed = (open: string, close: string) => `${open}gate({${close}\ngate(1, {\n});`;
  for (const [open, close] of [
    ["<del>", "</del>"],
    ['<span class="line diff remove"><span>', "</span></span>"],
    ['<div class="ec-line highlight del">', "</div>"],
    ['<span class="token deleted">', "</span>"],
    ['<span class="hljs-deletion">', "</span>"],
  ] as const)
    expect([open, codeOf(removed(open, close)).map(([code, isDiff]) => [String(code).trim(), isDiff])]).toEqual([
      open,
      [["gate(1, {\n});", true]],
    ]);
  expect(codeOf(removed('<span class="delimiter">', "</span>"))[0]?.slice(0, 2)).toEqual([
    "gate({\ngate(1, {\n});",
    false,
  ]);
  const markdown = "# Open a gate\n\n```js del={1}\ngate({\ngate(1, {\n});\n```\n";
  expect(readPage("http://docs.test/", "text/markdown", markdown).samples[0]).toMatchObject({ isDiff: true, line: 3 });
});

test("robots.txt may forbid other views of a page, wherever they are linked", async () => {
  const forbidden = async (link: string) => {
    const site = serveSite({
      "/": boats(`<a href="${link}">Open a gate</a>`),
      "/robots.txt": { body: "User-agent: *\nDisallow: /index.php\n", type: "text/plain" },
    });
    const { grade } = await explore(`${site.url}/`, "Open a gate").finally(site.stop);
    return grade.frictions.filter(({ category }) => category === "auth").length;
  };
  expect([await forbidden("/index.php?title=Gate&action=edit"), await forbidden("/index.php/gate")]).toEqual([0, 1]);
});

test("a file of another kind that is linked is no page", async () => {
  const unreadable = async (path: string, type: string, headers = {}) => {
    const site = serveSite({
      "/": page(`<h1>Open a gate</h1><p>${prose}</p><p>Take the <a href="${path}">gate</a>.</p>`),
      "/other": page(`<h1>Tides</h1><p>${prose}</p>`),
      [path]: { body: "{}", type, headers },
    });
    const { grade } = await explore(`${site.url}/`, "Open a gate").finally(site.stop);
    return grade.frictions.filter(({ category }) => category === "unreadable_page").length;
  };
  expect(await unreadable("/gate.ipynb", "application/x-ipynb+json")).toBe(0);
  expect(await unreadable("/gate.drawio", "application/vnd.jgraph.mxfile")).toBe(0);
  const named = { "content-disposition": 'attachment; filename="gate"' };
  expect(await unreadable("/gate", "application/octet-stream", named)).toBe(0);
  expect(await unreadable("/gate", "application/octet-stream")).toBe(1);
  expect(await unreadable("/v1.2/gate.html", "application/octet-stream")).toBe(1);
});

test("what a page shows in a frame need not be a page, unless a link leads there or it is all there is", async () => {
  const findings = async (body: string) => {
    const site = serveSite({
      "/": page(body),
      "/demo": page('<title>Gate</title><div id="app"></div><script src="/a.js"></script>'),
    });
    const { grade } = await explore(`${site.url}/`, "Open a gate").finally(site.stop);
    return grade.frictions.filter(({ severity }) => severity !== "low").map(({ category }) => category);
  };
  const frame = (url: string) => `<iframe src="${url}" title="Open a gate"></iframe>`;
  const text = `<h1>Open a gate</h1><p>${prose.repeat(4)}</p>`;
  expect(await findings(text + frame("/demo"))).toEqual([]);
  expect(await findings(text + frame("/gone"))).toEqual(["dead_link"]);
  expect(await findings(`${text}${frame("/demo")}<p>Or <a href="/demo">alone</a>.</p>`)).toEqual(["unreadable_page"]);
  expect(await findings(frame("/demo"))).toContain("unreadable_page");
});
