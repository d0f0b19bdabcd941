import { afterAll, expect, test } from "bun:test";
import { randomBytes } from "node:crypto";
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { gunzipSync } from "node:zlib";
import type { SiteHost } from "../src/agents/site/host-rules.ts";
import { answerPath, readSite } from "../src/agents/site/site.ts";
import { packSite } from "../src/cli/site-folder.ts";
import { testApp } from "./support/app.ts";
import { rpc } from "./support/mcp.ts";
import { networkedExplorer } from "./support/networked-explorer.ts";
import { signedIn } from "./support/people.ts";

const root = mkdtempSync(join(tmpdir(), "evald-sites-"));
afterAll(() => rmSync(root, { recursive: true }));
let folders = 0;

/** A new folder with these files. */
function folderOf(files: Record<string, string>): string {
  const folder = join(root, String(++folders));
  for (const [path, content] of Object.entries(files)) {
    mkdirSync(dirname(join(folder, path)), { recursive: true });
    writeFileSync(join(folder, path), content);
  }
  return folder;
}

const pageText = "Acme stores the files of your users, and serves them from anywhere.";
const page = (head = "") => `<!doctype html><html><head>${head}</head><body><p>${pageText}</p></body></html>`;
const at = "https://docs.acme.example/";

/** A status, with the target of a redirect. */
async function answersOf(folder: string, host: SiteHost, paths: string[], url = at) {
  const site = await readSite(folder, { at: url, host });
  return paths.map((path) => {
    const { status, location } = answerPath(site, path);
    return location === undefined ? status : `${status} ${location}`;
  });
}

const forms = ["/file", "/file/", "/file.html", "/folder", "/folder/", "/folder/index.html"];
test.each<[SiteHost, object, (number | string)[]]>([
  ["github", {}, [200, 404, 200, "301 /folder/", 200, 200]],
  ["netlify", {}, [200, "301 /file", 200, "301 /folder/", 200, 200]],
  ["vercel", {}, [404, 404, 200, 200, 200, 200]],
  ["vercel", { "vercel.json": '{"cleanUrls": true}' }, [200, 200, "308 /file", 200, 200, "308 /folder"]],
  ["cloudflare", {}, [200, "308 /file", "308 /file", "308 /folder/", 200, "308 /folder/"]],
  ["plain", {}, [200, "301 /file", 200, "301 /folder/", 200, 200]],
])("%s with %j answers the forms of a path as the host does", async (host, files, answers) => {
  const folder = folderOf({ "file.html": page(), "folder/index.html": page(), "404.html": page(), ...files });
  expect(await answersOf(folder, host, forms)).toEqual(answers);
});

test("a site under a path has nothing outside of it", async () => {
  const folder = folderOf({ "index.html": page(), "guide.html": page() });
  const paths = ["/latest", "/latest/", "/latest/guide", "/latest/guide/", "/guide", "/", "/latestguide"];
  const answers = ["301 /latest/", 200, 200, "301 /latest/guide", 404, 404, 404];
  expect(await answersOf(folder, "plain", paths, `${at}latest/`)).toEqual(answers);
});

test("redirect rules of each host are applied, and those that depend on more than the path are named", async () => {
  const files = { "index.html": page(), "b/x.html": page(), "taken.html": page(), "new.html": page() };
  const lines = [
    "/a/:slug /b/:slug 302",
    "/old/* /b/:splat",
    "/taken /new",
    "/taken.html /new 301!",
    "/kept /new 200",
    "/gone /new 404",
    "/out https://other.example/:splat 301",
    "/country /de 302 Country=de",
    "/api/* https://api.example/:splat 200",
  ];
  const netlify = folderOf({ ...files, _redirects: lines.join("\n"), _headers: "/*\n  X-A: b" });
  const paths = ["/a/x", "/old/x/y", "/old", "/taken", "/taken.html", "/kept", "/gone", "/out", "/country", "/api/v1"];
  expect(await answersOf(netlify, "netlify", paths)).toEqual([
    ...["302 /b/x", "301 /b/x/y", "301 /b/", 200, "301 /new", 200, 404, "301 https://other.example/", 404, 404],
  ]);
  const { notApplied } = await readSite(netlify, { at, host: "netlify" });
  expect(notApplied).toEqual([
    "_redirects: /country to /de",
    "_redirects: /api/* to https://api.example/:splat",
    "_headers",
  ]);
  const vercel = folderOf({
    ...files,
    "vercel.json": JSON.stringify({
      redirects: [
        { source: "/a/:path*", destination: "/b/:path*" },
        { source: "/t", destination: "/new.html", permanent: false },
        { source: "/(old|older)", destination: "/new.html" },
        { source: "/c", destination: "/new.html", has: [{ type: "host", value: "x" }] },
      ],
      rewrites: [{ source: "/kept", destination: "/new.html" }],
      headers: [],
    }),
  });
  expect(await answersOf(vercel, "vercel", ["/a/x/y", "/t", "/old", "/c", "/kept"])).toEqual([
    ...["308 /b/x/y", "307 /new.html", 404, 404, 200],
  ]);
  expect((await readSite(vercel, { at, host: "vercel" })).notApplied).toEqual([
    "vercel.json: /(old|older) to /new.html",
    "vercel.json: /c to /new.html",
    "vercel.json: headers",
  ]);
});

test("nothing outside of the folder and no hidden file is served", async () => {
  const folder = folderOf({
    "site/index.html": page(),
    "secret.txt": "x",
    "site/.env": "x",
    "site/.well-known/a.txt": "x",
  });
  const paths = [
    "/../secret.txt",
    "/%2e%2e/secret.txt",
    "/..%2fsecret.txt",
    "/.env",
    "/%00",
    // A path below a file is that of none, and no error.
    "/index.html/index.md",
    `/${"a".repeat(300)}`,
    "/a%5c..%5c..%5csecret.txt",
  ];
  expect(await answersOf(join(folder, "site"), "plain", paths)).toEqual(Array(8).fill(404));
  expect(await answersOf(join(folder, "site"), "plain", ["/%zz", "/.well-known/a.txt"])).toEqual([400, 200]);
});

test("Markdown sources are pages of a plain host only", async () => {
  const folder = folderOf({ "README.md": "# Acme", "guide/upload.md": "# Upload" });
  const paths = ["/", "/guide/upload", "/guide/upload.md"];
  expect(await answersOf(folder, "plain", paths)).toEqual([200, 200, 200]);
  expect(await answersOf(folder, "github", paths)).toEqual([404, 404, 200]);
});

test.each([
  ["a canonical link", { "index.html": page('<link rel="canonical" href="https://a.example/latest/">') }, "canonical"],
  [
    "a canonical link of a file",
    { "index.html": page("<link href=https://a.example/latest/index.html rel=canonical>") },
    "canonical",
  ],
  [
    "a sitemap",
    {
      "index.html": page(),
      "sitemap.xml":
        "<urlset><url><loc>https://a.example/latest/x/y</loc></url><url><loc>https://a.example/latest/</loc></url></urlset>",
    },
    "sitemap",
  ],
] as const)("%s says where a folder is published", async (_, files, foundBy) => {
  expect(await packSite(folderOf(files), {})).toMatchObject({ at: "https://a.example/latest/", foundBy });
});

test("CNAME says where a folder is published, and that GitHub serves it", async () => {
  const site = await packSite(folderOf({ "index.html": page(), CNAME: "docs.a.example\n" }), {});
  expect(site).toMatchObject({ at: "https://docs.a.example/", foundBy: "CNAME", host: "github", hostFile: "CNAME" });
});

const canonical = (url: string) => ({ "index.html": page(`<link rel="canonical" href="${url}">`) });
test.each<[string, Record<string, string>, { at?: string }, RegExp]>([
  ["no page", { "a.png": "x" }, {}, /No HTML or Markdown file/],
  [
    "pages without text",
    { "index.html": "<html><body><div id=root></div><script>run()</script></body></html>" },
    { at },
    /server-side rendering/,
  ],
  ["nothing that names its URL", { "index.html": page() }, {}, /--at/],
  ["a loopback URL as its own", canonical("http://localhost:3000/"), {}, /--at/],
  [
    "several hosts",
    { ...canonical("https://a.example/"), CNAME: "b.example" },
    {},
    /several hosts: a\.example, b\.example/,
  ],
  ["a loopback URL in --at", { "index.html": page() }, { at: "http://127.0.0.1:8000/" }, /this machine/],
  ["no URL in --at", { "index.html": page() }, { at: "docs.acme.example" }, /--at/],
])("a folder with %s is refused", async (_, files, options, message) => {
  expect(packSite(folderOf(files), options)).rejects.toThrow(message);
});

test("a URL or a missing folder in place of a folder is named", async () => {
  for (const folder of ["https://docs.acme.example/", join(tmpdir(), "missing")])
    await expect(packSite(folder, {})).rejects.toMatchObject({
      code: "bad_request",
      message: expect.stringContaining(folder),
    });
});

test("the same files make the same archive, without hidden files, links out of the folder, and content that agents don't read", async () => {
  const files = {
    "index.html": page(),
    ".git/config": "secret",
    ".env": "secret",
    "logo.png": "pixels",
    "node_modules/a/index.html": page(),
  };
  const [first, second] = [folderOf(files), folderOf(files)];
  for (const folder of [first, second]) symlinkSync("/etc/passwd", join(folder, "passwd.txt"));
  const packed = await Promise.all([first, second].map((folder) => packSite(folder, { at })));
  expect(Buffer.compare(packed[0]!.data, packed[1]!.data)).toBe(0);
  expect(packed[0]!.files).toBe(2);
  const text = gunzipSync(packed[0]!.data).toString("latin1");
  expect([/secret/, /pixels/, /root:/, /logo\.png/, /index\.html/].map((part) => part.test(text))).toEqual([
    ...[false, false, false, true, true],
  ]);
});

test("a site is kept for 7 days after its last run, outside of the limit of archives, and a run names what is wrong with it", async () => {
  let passedMs = 0;
  const start = Date.now();
  const app = testApp({ now: () => start + passedMs, monotonicNow: () => passedMs });
  const { send } = app;
  const { data } = await packSite(folderOf({ "index.html": page() }), { at });
  const upload = (kind: string) => send("POST", `/api/v1/archives?kind=${kind}`, { body: data });
  const { status, body: archive } = await upload("site");
  expect([status, archive.kind]).toEqual([201, "site"]);
  expect((await upload("cake")).status).toBe(400);
  const prompt = (await send("POST", "/api/v1/prompts", { body: { text: `Read ${at}` } })).body;
  const run = (sites: object, urlMap = {}) =>
    send("POST", `/api/v1/prompts/${prompt.id}/run`, { body: { urlMap, sites } });
  const site = { [at]: { archiveId: archive.id } };
  const unknown = "0199f3a1-7b21-7f02-9d11-2c9d4e5f6a70";
  expect((await run({ [at]: { archiveId: unknown } })).body.detail).toContain(unknown);
  expect((await run({ "docs.acme.example": { archiveId: archive.id } })).status).toBe(400);
  expect((await run({ [at]: { archiveId: archive.id, host: "moon" } })).status).toBe(400);
  expect((await run({ ...site, "https://other.example/": { archiveId: archive.id } })).status).toBe(400);
  expect((await run(site, { "docs.acme.example": "https://preview.acme.example" })).status).toBe(400);

  const pass = async (days: number) => {
    passedMs += days * 24 * 3_600_000;
    await app.service.upkeep.runOnce();
    return (await send("GET", "/api/v1/archives")).body.length;
  };
  expect(await pass(6)).toBe(1);
  expect((await run(site)).status).toBe(200);
  // An active run needs it, however long it waits.
  expect(await pass(8)).toBe(1);
  await app.runJobs();
  expect(await pass(0)).toBe(0);
  expect((await run(site)).body.detail).toContain(archive.id);
});

test("the page of a run with a site says that it read built docs, without a link that leads nowhere", async () => {
  const app = testApp();
  const { data } = await packSite(folderOf({ "index.html": page() }), { at });
  const archive = (await app.send("POST", "/api/v1/archives?kind=site", { body: data })).body;
  const prompt = (await app.send("POST", "/api/v1/prompts", { body: { text: `Read ${at}` } })).body;
  const body = { urlMap: {}, sites: { [at]: { archiveId: archive.id } } };
  const { runId } = (await app.send("POST", `/api/v1/prompts/${prompt.id}/run`, { body })).body;
  const owner = await signedIn(app);
  const shown = (await owner.get(`/runs/${runId}`)).body;
  expect(shown).toContain(`Built docs ${archive.digest.slice(0, 12)}`);
  expect(shown).not.toContain("site.invalid");
});

test("a site may be larger than the files of a workspace, and both have a limit", async () => {
  const app = testApp();
  const folder = folderOf({});
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, "random"), randomBytes(6 * 1024 * 1024));
  const body = Buffer.from(Bun.spawnSync(["tar", "-czf", "-", "random"], { cwd: folder }).stdout);
  const upload = async (kind: string, size: Buffer) => {
    const headers = { "content-length": String(size.length) };
    return (await app.send("POST", `/api/v1/archives?kind=${kind}`, { body: size, headers })).status;
  };
  expect(await upload("site", body)).toBe(201);
  expect(await upload("workspace", body)).toBe(413);
  expect(await upload("site", Buffer.concat([body, body, body]))).toBe(413);
});

test("files that a workspace starts with are kept, even if they were uploaded as a site before", async () => {
  let passedMs = 0;
  const start = Date.now();
  const app = testApp({ now: () => start + passedMs, monotonicNow: () => passedMs });
  const { data } = await packSite(folderOf({ "index.html": page() }), { at });
  const kindOf = async (kind: string) =>
    (await app.send("POST", `/api/v1/archives?kind=${kind}`, { body: data })).body.kind;
  expect([await kindOf("site"), await kindOf("workspace"), await kindOf("site")]).toEqual([
    ...["site", "workspace", "workspace"],
  ]);
  passedMs = 30 * 24 * 3_600_000;
  await app.service.upkeep.runOnce();
  expect((await app.send("GET", "/api/v1/archives")).body.length).toBe(1);
});

const reader = networkedExplorer("test");

/** Requests an evaluation through MCP that reads a folder, and returns its report. */
async function reportOf(folder: string, options: { host?: SiteHost } = {}) {
  const app = testApp({ agent: reader });
  const { data } = await packSite(folder, { at });
  const archive = (await app.send("POST", "/api/v1/archives?kind=site", { body: data })).body;
  const prompt = (await app.send("POST", "/api/v1/prompts", { body: { text: `Store a file. ${at}` } })).body;
  const { call } = rpc(app);
  const sites = { [at]: { archiveId: archive.id, ...options } };
  const { evalRequestId } = await call("request_eval", { promptId: prompt.id, sites });
  await app.runJobs();
  const [{ runs }] = (await call("list_eval_requests", { evalRequestId })).evalRequests;
  if (!runs[0].report) throw new Error(JSON.stringify(runs[0]));
  const { slug } = runs[0].report;
  const owner = await signedIn(app);
  return {
    digest: archive.digest,
    report: (await app.send("GET", `/api/v1/reports/${slug}`)).body,
    texts: await Promise.all(
      [`/reports/${slug}`, `/reports/${slug}.md`].map(async (path) => (await owner.get(path)).body),
    ),
    findings: (await call("get_report", { slug })).frictionPoints,
  };
}

test("a report says which folder was read as which URL, and what of its host's rules was not applied", async () => {
  const folder = folderOf({
    "index.html": page(),
    "guide.html": page(),
    _redirects: [
      "/country /de 302 Country=de",
      ...Array.from({ length: 30 }, (_, i) => `/a${i} /b 302 Country=de`),
    ].join("\n"),
  });
  const { report, digest, texts } = await reportOf(folder);
  expect(report.context).toEqual({
    ...{ instructions: null, skills: [], mcpServers: [], env: [] },
    sites: [
      {
        ...{ at, digest, files: 3, host: "netlify", form: "html", notAppliedTotal: 31 },
        notApplied: expect.arrayContaining(["_redirects: /country to /de"]),
      },
    ],
  });
  expect(report.context.sites[0].notApplied.length).toBe(20);
  // How fast a folder answers says nothing about its host.
  const unmeasured = report.dimensions.flatMap((dimension: { unmeasured: string[] }) => dimension.unmeasured);
  expect(unmeasured).toContain("Response time");
  for (const text of texts)
    expect([text.includes(digest.slice(0, 12)), /Markdown sources/.test(text)]).toEqual([true, false]);
});

test("Markdown sources have a report that says so, and no finding that only a build could have", async () => {
  const text = "Acme stores the files of your users. ".repeat(20);
  const folder = folderOf({
    "README.md": `# Acme\n\n${text}\n\n[Store a file](guide/upload.md) [Limits](guide/upload.md#size-limits) [None](guide/upload.md#none)`,
    "guide/upload.md": `# Store a file\n\n${text}\n\n## Size limits\n\n${text}`,
  });
  const { report, findings, texts } = await reportOf(folder);
  expect(report.context.sites[0]).toMatchObject({ form: "markdown", host: "plain", notAppliedTotal: 0 });
  for (const text of texts) expect(text).toContain("Markdown sources");
  expect(findings.map(({ title }: { title: string }) => title)).toEqual([]);
});
