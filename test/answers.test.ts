import { afterEach, expect, setDefaultTimeout, test } from "bun:test";
import type { MilestoneDetail } from "../src/agents/milestones.ts";
import { type Site, type SiteRoute, serveSite } from "./support/site.ts";
import { type Explored, explore } from "./truth/session.ts";

setDefaultTimeout(60_000);

const sites: Site[] = [];
afterEach(() => {
  for (const site of sites.splice(0)) site.stop();
});

const document = (title: string, body: string, language = "en"): SiteRoute => ({
  body: `<!doctype html><html lang="${language}"><head><title>${title}</title></head><body><h1>${title}</h1>${body}</body></html>`,
  headers: { "cache-control": "max-age=300" },
});
const links = (...pages: [url: string, text: string][]) =>
  `<ul>${pages.map(([url, text]) => `<li><a href="${url}">${text}</a></li>`).join("")}</ul>`;
const filler = "<p>This tool has a friendly community and a long history. Everybody is welcome to take part.</p>";

/** What a session on a site with these pages found. The first page is the start. */
async function answerIn(goal: string, routes: Record<string, SiteRoute>) {
  const site = serveSite(routes);
  sites.push(site);
  const explored = await explore(site.url + Object.keys(routes)[0]!, goal);
  const detail = explored.events.flatMap((event) =>
    event.type === "milestone" && event.name === "goal_answer" ? [event.detail] : [],
  )[0] as MilestoneDetail<"goal_answer">;
  return { ...explored, ...detail, pagesNearest: detail.nearest.map(({ url }) => new URL(url).pathname) };
}

const scoreOf = ({ grade }: Explored) => grade.score ?? 0;

const prune = document(
  "Prune old archives",
  "<p>Prune deletes archives that are too old. Keep the last 7 daily archives:</p><pre><code class=language-sh>tool prune --keep-daily=7</code></pre>",
);
const home = document(
  "Tool",
  `${filler}${links(["/prune", "Prune old archives"], ["/init", "Create a repository"], ["/mount", "Mount"])}`,
);
const others = {
  "/init": document("Create a repository", `${filler}<pre><code class=language-sh>tool init</code></pre>`),
  "/mount": document("Mount", `${filler}<pre><code class=language-sh>tool mount</code></pre>`),
};

test("finds the answer although an everyday word or a number in words isn't in the docs", async () => {
  const routes = { "/": home, "/prune": prune, ...others };
  for (const goal of ["Keep seven daily archives and prune the others", "Comfortably prune old daily archives"]) {
    const { state, pagesNearest } = await answerIn(goal, routes);
    expect([state, pagesNearest[0]]).toEqual(["likely", "/prune"]);
  }
});

test("loses its answer, and at least 20 points, if the page is gone, forbidden or redirects in a loop", async () => {
  const goal = "Prune old daily archives";
  const before = await answerIn(goal, { "/": home, "/prune": prune, ...others });
  expect(before.state).toBe("likely");
  for (const gone of [
    { body: "gone", status: 404 },
    { body: "no", status: 403 },
    { body: "", status: 302, headers: { location: "/prune" } },
  ]) {
    const after = await answerIn(goal, { "/": home, "/prune": gone, ...others });
    expect(after.state).toBe("unclear");
    expect(scoreOf(before) - scoreOf(after)).toBeGreaterThanOrEqual(20);
  }
});

test("loses at least 20 points without its answer, although a changelog, a list of links and the source code have its words", async () => {
  const goal = "Prune old daily archives";
  const release = (version: string) =>
    `<h2>${version}</h2><p>Prune old daily archives faster.</p><pre><code class=language-sh>tool prune</code></pre>`;
  const source = Array.from({ length: 80 }, (_, line) => `prune_old_daily_archives_${line}(archives, keep=${line});`);
  const routes = {
    ...others,
    "/changes": document("Changes", ["2.2.0", "2.1.0", "2.0.0"].map(release).join("")),
    "/source": document("Source code for prune", `<pre># Prune old daily archives\n${source.join("\n")}</pre>`),
    "/all": document(
      "All pages",
      links(...["/init", "/mount"].map((path): [string, string] => [path, "Prune old daily archives"])),
    ),
  };
  const more = links(["/changes", "Changes"], ["/source", "Source"], ["/all", "All pages"]);
  const before = await answerIn(goal, {
    "/": document("Tool", `${filler}${links(["/prune", "Prune old archives"])}${more}`),
    "/prune": prune,
    ...routes,
  });
  const after = await answerIn(goal, { "/": document("Tool", `${filler}${more}`), ...routes });
  expect([before.state, after.state, after.fit]).toEqual(["likely", "unclear", 0]);
  expect(scoreOf(before) - scoreOf(after)).toBeGreaterThanOrEqual(20);
});

test("answers in the language of the start page", async () => {
  const english = "<p>Set up a reverse proxy that balances the load.</p><pre>ProxyPass / balancer://all</pre>";
  const routes = {
    "/en/": document(
      "Server",
      links(["/fr/proxy", "français"], ["/ru/proxy", "Reverse proxy load"], ["/en/proxy", "How-to"]),
    ),
    "/fr/proxy": document("Reverse proxy, load balancer", english, "fr"),
    "/ru/proxy": document("Reverse proxy, load balancer", english, "ru-RU"),
    "/en/proxy": document("Reverse proxy guide", english, "en-GB"),
  };
  const { pagesNearest, close } = await answerIn("Set up a reverse proxy with load balancer", routes);
  expect([pagesNearest[0], close]).toEqual(["/en/proxy", 1]);
});

const numbered = Array.from({ length: 120 }, (_, line) => `${line + 1} int padLeft${line}(String text, char zero);`);
const entries = ["3.2.0", "3.1.0 (2024-02-01)", "3.0.1"]
  .map((version) => `<h2>${version}</h2><p>Pad a string on the left with zeros: fixed in strings.</p><pre>pad()</pre>`)
  .join("");

test("doesn't take a source listing, a changelog or an index for an answer", async () => {
  const goal = "Pad a string on the left with zeros";
  const guide = document(
    "Strings",
    `${filler}<h2>Padding</h2><p>leftPad pads a string with a character, such as zeros, on the left.</p><pre><code class=language-java>leftPad("7", 3, '0')</code></pre>`,
  );
  const pad = `<p>Pad a string on the left with zeros</p><pre>/* Pad a string on the left with zeros. */\n${numbered.join("\n")}</pre>`;
  const index = Array.from({ length: 20 }, (_, at): [string, string] => [
    `/strings#${at}`,
    "Pad string left with zeros",
  ]);
  const distractors: Record<string, SiteRoute> = {
    "/source": document("Pad string left zeros", pad),
    "/history": document("Pad string left zeros", entries),
    "/all": document("Pad string left zeros", links(...index)),
  };
  for (const [path, distractor] of Object.entries(distractors)) {
    const { pagesNearest } = await answerIn(goal, {
      "/": document("Library", `${filler}${links([path, "More"], ["/strings", "Strings"])}`),
      [path]: distractor,
      "/strings": guide,
    });
    expect([path, pagesNearest[0]]).toEqual([path, "/strings"]);
  }
});

test("a release's date or version in a title doesn't make a guide a changelog", async () => {
  const { state } = await answerIn("Connect with TLS 1.3", {
    "/": document("Server", `${filler}${links(["/tls", "TLS"])}`),
    "/tls": document(
      "TLS",
      "<h2>TLS 1.3</h2><p>Connect with TLS 1.3:</p><pre><code class=language-sh>connect --tls 1.3</code></pre>",
    ),
  });
  expect(state).toBe("likely");
});

test("puts a page first that says in words of docs what the goal says in everyday words", async () => {
  const runner = (place: string) =>
    document(
      `Run a pipeline ${place}`,
      `<p>Run your pipeline ${place} and see its steps.</p><pre><code class=language-sh>tool run</code></pre>`,
    );
  const routes = {
    "/": document("Tool", `${filler}${links(["/hosted", "Cloud runs"], ["/local", "Local runs"])}`),
    "/hosted": runner("in the cloud"),
    "/local": runner("locally"),
  };
  const { pagesNearest } = await answerIn("Run a pipeline on my laptop", routes);
  expect(pagesNearest.slice(0, 2)).toEqual(["/local", "/hosted"]);
});

test("puts a page first that is about the goal, though another has more of its words", async () => {
  const routes = {
    "/": document("Tool", `${filler}${links(["/options", "Options"], ["/replicas", "Replicas"])}`),
    "/options": document(
      "Server options",
      "<p>The server listens on a port. Set the port of the server and its address.</p>",
    ),
    "/replicas": document(
      "Replication and failover",
      "<p>If the primary fails, a replica of the server takes over. Run at least two replicas for high availability.</p>",
    ),
  };
  const { pagesNearest } = await answerIn("Survive a crash of the server", routes);
  expect(pagesNearest.slice(0, 2)).toEqual(["/replicas", "/options"]);
});

test("calls an answer likely that lacks words of the goal, if it is far ahead of the other pages", async () => {
  const goal = "Prune archives of old hosts to free disk space";
  const sample = "<pre><code class=language-sh>tool run</code></pre>";
  const pages = {
    "/hosts": document("Hosts", `<p>Add a host to the group of hosts.</p>${sample}`),
    "/disks": document("Disks", `<p>Choose a disk for the cache.</p>${sample}`),
    "/mount": document("Mount", `<p>Mount a folder of another host.</p>${sample}`),
  };
  const pruning = (by: string) =>
    document(
      `Prune archives by ${by}`,
      `<p>Prune deletes archives by ${by} that are too old, and frees space.</p>${sample}`,
    );
  const siteWith = (answers: Record<string, SiteRoute>) => ({
    "/": document(
      "Tool",
      `${filler}${links(...[...Object.keys(answers), ...Object.keys(pages)].map((url) => [url, url.slice(1)] as [string, string]))}`,
    ),
    ...answers,
    ...pages,
  });
  const one = await answerIn(goal, siteWith({ "/prune": pruning("age") }));
  expect([one.state, one.pagesNearest[0]]).toEqual(["likely", "/prune"]);
  const four = await answerIn(
    goal,
    siteWith(Object.fromEntries(["age", "count", "size", "name"].map((by) => [`/${by}`, pruning(by)]))),
  );
  expect(four.state).toBe("unclear");
});

test("names a page that is also at another URL once", async () => {
  const page = (version: string) =>
    document(
      "Prune old archives",
      `<p>Prune deletes <a href="${version}/mount">archives</a> that are too old.</p><pre><code class=language-sh>tool prune</code></pre>`,
    );
  const routes = {
    "/": document(
      "Tool",
      `${filler}${links(["/prune", "Prune"], ["/v1/prune", "Prune, first version"], ["/init", "Init"])}`,
    ),
    "/prune": page(""),
    "/v1/prune": page("/v1"),
    "/v1/mount": others["/mount"],
    ...others,
  };
  const { pagesNearest } = await answerIn("Prune old archives", routes);
  expect(pagesNearest.filter((page) => page.endsWith("/prune"))).toHaveLength(1);
});

test("finds a page by what links to it say", async () => {
  const agent = (name: string) =>
    document(
      name,
      `${filler}<pre><code class=language-js>new ${name}()</code></pre><p>Takes options and requests.</p>`,
    );
  const { pagesNearest } = await answerIn("Retry requests that failed", {
    "/": document(
      "Client",
      `${filler}${links(["/a", "Mock requests"], ["/b", "Retry failed requests"], ["/c", "Proxy"])}`,
    ),
    "/a": agent("MockAgent"),
    "/b": agent("AgainAgent"),
    "/c": agent("ProxyAgent"),
  });
  expect(pagesNearest[0]).toBe("/b");
});

test("finds a page by what llms.txt says about it", async () => {
  const page = (name: string) =>
    document(
      name,
      `${filler}<pre><code class=language-js>new ${name}()</code></pre><p>Takes options and requests.</p>`,
    );
  const { pagesNearest } = await answerIn("Repeat requests after a backoff", {
    "/": document("Client", filler),
    "/llms.txt": {
      type: "text/plain; charset=utf-8",
      body: "# Client\n\n> A client.\n\n- [Mock](/a): for tests\n- [Again](/b): repeats requests after a backoff\n",
    },
    "/a": page("MockAgent"),
    "/b": page("AgainAgent"),
  });
  expect(pagesNearest[0]).toBe("/b");
});

test("names every page that matches equally well", async () => {
  const twin = (title: string) =>
    document(title, "<p>Rotate a webhook secret.</p><pre><code class=language-sh>tool rotate</code></pre>");
  const { close, state, grade } = await answerIn("Rotate a webhook secret", {
    "/": document("Tool", `${filler}${links(["/a", "Webhook secret A"], ["/b", "Webhook secret B"], ["/c", "Other"])}`),
    "/a": twin("Rotate a webhook secret"),
    "/b": twin("Rotate the secret of a webhook"),
    "/c": document("Other", filler),
  });
  expect([state, close]).toEqual(["likely", 2]);
  expect(grade.keyFinding).toContain("one of 2 places");
});

test("recommends no rewriting where a section has most of the goal and a sample", async () => {
  const { state, grade } = await answerIn("Throttle concurrent uploads gently from a flaky laptop", {
    "/": document("Tool", `${filler}${links(["/limits", "Limits"])}`),
    "/limits": document(
      "Limits",
      "<p>Throttle concurrent uploads gently, for instance on a laptop.</p><pre><code class=language-sh>tool --limit 2</code></pre>",
    ),
  });
  expect(state).toBe("unclear");
  expect(grade.recommendations.filter(({ title }) => /answer/i.test(title))).toEqual([]);
});
