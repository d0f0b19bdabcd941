import { describe, expect, test } from "bun:test";
import type { Agent } from "../src/agents/agent.ts";
import { updateOrg } from "../src/auth/orgs.ts";
import { listPrompts } from "../src/prompts/lists.ts";
import { createPrompt, getPrompt, updatePrompt } from "../src/prompts/prompts.ts";
import { getEvalRequest } from "../src/runs/evals.ts";
import { listRunPage } from "../src/runs/lists.ts";
import { countRuns, getRun, getRunTask } from "../src/runs/runs.ts";
import { instantAgent, noisy, testApp } from "./support/app.ts";
import { decode, fieldsOf } from "./support/form-fields.ts";
import { browse, signedIn } from "./support/people.ts";
import { evaluation, niceGrade, runWithReport } from "./support/reports.ts";

type App = ReturnType<typeof testApp>;
const docs = "https://docs.example.com";
const newest = (app: App) => {
  const { items } = listPrompts(app.service.ctx, app.a.org, { limit: 1, offset: 0, includeArchived: true });
  return getPrompt(app.service.ctx, app.a.org, items[0]!.id);
};
const countPrompts = (app: App) =>
  listPrompts(app.service.ctx, app.a.org, { limit: 1, offset: 0, includeArchived: true }).total;
const full = {
  title: "Upload",
  text: `Upload with {{language}}.\r\n${docs}`,
  endGoal: "{{file}} is there.",
  wordings: "Store a file.\n\n Put  {{file}} there. ",
  frequency: "cron",
  cron: "0 6 * * 1-5",
  runsPerEval: "4",
  "templateDefaults.language": "Go",
  "templateDefaults.file": "a.txt",
  "templateDefaults.gone": "no variable",
  "url.url": [`${docs}/llms.txt`, ""],
  "url.kind": ["docs", "docs"],
  "url.name": ["Index", ""],
  "url.more": ['{"team":"sdk"}', ""],
  "check.kind": ["url", "url", "url", "command"],
  "check.target": [
    "https://api.example.com/v1/files",
    "https://api.example.com/a",
    "https://api.example.com/b",
    "true",
  ],
  "check.expected": ["201", "", "", ""],
  "check.invariant": ["yes", "", "", ""],
  "check.contains": ["a.txt", "", "", ""],
  "check.method": ["", "POST", "", ""],
  "check.headers": ["", "Accept: application/json\r\nX-Time: 10:30", "", ""],
  "check.body": ["", '{\r\n "a": 1}', "", ""],
  "check.pointer": ["", "/a/0", "", ""],
  "check.valueTest": ["", "equals", "missing", ""],
  "check.value": ["", '"7"', "", ""],
  "check.env": ["", "", "", "CI=1\r\nQUERY=a=b"],
  "workspace.repository.url": "https://git.example.com/starter.git",
  "workspace.repository.ref": "v1.2",
  "workspace.setup": "npm ci\r\nnpm run build",
  "workspace.env": "REGION=eu-1\r\nQUERY=a=b",
  "workspace.instructions": "Use TypeScript.",
  "limits.toolCalls": "80",
  "limits.costUsd": "0.5",
  reviewBeforePublishing: "on",
  hasPublicBadge: "on",
  "successBar.scope": "docs_only",
  "successBar.minScore": "80",
  supersedesByDefault: "on",
  isOnResultsPage: "on",
  tags: "sdk, quickstart",
};

describe("the prompt form", () => {
  test("creates a prompt from its fields", async () => {
    const app = testApp();
    const person = await signedIn(app, { role: "member" });
    const { status, location } = await person.post("/prompts", full);
    const made = newest(app);
    expect([status, location]).toEqual([303, `/prompts/${made.id}`]);
    expect(made).toMatchObject({
      title: "Upload",
      text: `Upload with {{language}}.\n${docs}`,
      endGoal: "{{file}} is there.",
      wordings: ["Store a file.", "Put {{file}} there."],
      frequency: "0 6 * * 1-5",
      runsPerEval: 4,
      templateVars: ["language", "file"],
      additionalUrls: [{ team: "sdk", url: `${docs}/llms.txt`, name: "Index", kind: "docs" }],
      declaredChecks: [
        { url: "https://api.example.com/v1/files", status: 201, contains: "a.txt", invariant: true },
        {
          url: "https://api.example.com/a",
          method: "POST",
          headers: { Accept: "application/json", "X-Time": "10:30" },
          body: '{\n "a": 1}',
          json: { pointer: "/a/0", equals: "7" },
        },
        { url: "https://api.example.com/b", json: { pointer: "", exists: false } },
        { command: "true", env: { CI: "1", QUERY: "a=b" } },
      ],
      workspace: {
        repository: { url: "https://git.example.com/starter.git", ref: "v1.2" },
        setup: "npm ci\nnpm run build",
        env: { REGION: "eu-1", QUERY: "a=b" },
        instructions: "Use TypeScript.",
      },
      targetProviderId: null,
      limits: { toolCalls: 80, costUsd: 0.5 },
      agent: null,
      model: null,
      reviewBeforePublishing: true,
      hasPublicBadge: true,
      successBar: { scope: "docs_only", minScore: 80 },
      supersedesByDefault: true,
      isOnResultsPage: true,
      tags: ["sdk", "quickstart"],
      status: "active",
    });
    expect(made.templateDefaults).toEqual({ language: "Go", file: "a.txt" });
  });

  test("saves and duplicates a prompt unchanged", async () => {
    const app = testApp();
    const person = await signedIn(app);
    await person.post("/prompts", full);
    const made = newest(app);
    for (const [page, send] of [
      [`/prompts/${made.id}/edit`, `/prompts/${made.id}/edit`],
      [`/prompts/new?from=${made.id}`, "/prompts"],
    ] as const) {
      const { body } = await person.get(page);
      expect((await person.post(send, fieldsOf(body))).status).toBe(303);
      const isCopy = send === "/prompts";
      expect({ ...newest(app), id: made.id, createdAt: made.createdAt, nextRunsAt: made.nextRunsAt }).toEqual({
        ...made,
        title: isCopy ? "Upload (copy)" : "Upload",
        ...(isCopy && { hasPublicBadge: false, badgeUrl: null, isOnResultsPage: false }),
      });
    }
    expect(countPrompts(app)).toBe(2);
  });

  test("opens a prompt whose variables are no longer used, whatever their names", async () => {
    const app = testApp();
    const templateDefaults = { "a.b": "1", language: "Go" };
    const { id } = createPrompt(app.service.ctx, app.a.org, {
      title: "Dots",
      text: "See {{language}}",
      templateDefaults,
    });
    const { status, body } = await (await signedIn(app)).get(`/prompts/${id}/edit`);
    expect([status, fieldsOf(body)["templateDefaults.a.b"], fieldsOf(body)["templateDefaults.language"]]).toEqual([
      200,
      "1",
      "Go",
    ]);
  });

  test("creates one prompt with the schedule that it showed, however often it is submitted", async () => {
    const now = Date.parse("2026-11-21T09:30:00Z");
    const app = testApp({ now: () => now });
    updateOrg(app.service.ctx, app.a.org, { timeZone: "America/New_York" });
    const person = await signedIn(app);
    const form = { ...fieldsOf((await person.get("/prompts/new")).body), text: `Look. ${docs}`, frequency: "daily" };
    const shown = listIn((await person.post("/prompts/derived-fields", form)).body, "times");
    expect(shown).toHaveLength(3);
    const first = await person.post("/prompts", form);
    const second = await person.post("/prompts", form);
    expect([first.location, countPrompts(app)]).toEqual([second.location, 1]);
    expect(
      listIn((await person.get(first.location ?? "")).body, "schedule-times").map((item) =>
        item.slice(0, shown[0]?.length),
      ),
    ).toEqual(shown);
    const at = new Date(newest(app).nextRunsAt?.[0] ?? 0).toLocaleTimeString("en-GB", {
      timeZone: "America/New_York",
      hour: "2-digit",
      minute: "2-digit",
    });
    expect(shown[0]).toEndWith(at);
  });

  test("can be previewed without saving: variables, times, another empty row", async () => {
    const app = testApp();
    const person = await signedIn(app);
    const { status, body } = await person.post("/prompts", { ...full, do: "preview" });
    expect([status, countPrompts(app)]).toEqual([200, 0]);
    expect(body).toContain('name="templateDefaults.language" value="Go"');
    expect(body).toContain('name="templateDefaults.file" value="a.txt"');
    expect(listIn(body, "times")).toHaveLength(3);
    expect(body.match(/name="url\.url"/g)).toHaveLength(2);
  });

  test.each([
    ["text", { text: " " }, "Must be a non-blank string"],
    ["cron", { cron: "0 0 30 2 *" }, "never occurs"],
    ["frequency", { "templateDefaults.file": "" }, "need a default for each variable"],
    ["runsPerEval", { runsPerEval: "51" }, "Must be an integer from 1 to 50"],
    ["additionalUrls", { "url.url": ["ftp://x", ""] }, "Row 1: Must be an absolute http or https URL"],
    ["declaredChecks", { "check.expected": "many" }, "Row 1: Must be an integer from 100 to 599"],
    ["workspace", { "workspace.env": "no value" }, "env"],
    ["workspace", { "workspace.repository.ref": "" }, "repository.ref"],
    ["workspace", { "workspace.archive": "0199f3a1-7b21-7f02-9d11-2c9d4e5f6a70" }, "Set either"],
    ["limits", { "limits.toolCalls": "many" }, "toolCalls: Must be an integer"],
    ["limits", { "limits.toolCalls": "201" }, "toolCalls: 201 exceeds"],
    ["agent", { agent: "robot" }, "is not available on this server"],
    ["tags", { tags: "quick start!" }, "Row 2: Must"],
    ["model", { model: "openai/gpt-5" }, "No available agent uses a model"],
    ["targetProviderId", { targetProviderId: crypto.randomUUID() }, "No provider has the ID"],
  ] as [string, Record<string, string | string[]>, string][])(
    "shows an error in %s next to the field, saves nothing and keeps all values",
    async (_, wrong, message) => {
      const app = testApp();
      const person = await signedIn(app);
      const { status, body } = await person.post("/prompts", { ...full, ...wrong });
      expect([status, countPrompts(app)]).toEqual([400, 0]);
      const [told] = /<(?:span|p) class="wrong"[^>]*>[^<]*/.exec(body) ?? [];
      expect(told).toContain(message);
      const kept = fieldsOf(body);
      for (const [name, value] of Object.entries({ ...full, ...wrong }))
        if (!["text", "agent", "targetProviderId"].includes(name))
          expect([name, [kept[name]].flat()[0]]).toEqual([name, [value].flat()[0]]);
    },
  );

  test("offers only available agents, and says why others are unavailable", async () => {
    const absent: Agent = {
      ...instantAgent,
      preflight: () => [{ what: "sandbox", isMet: false, detail: "bubblewrap is not installed" }],
    };
    const app = testApp({ agents: { llm: absent } });
    const { body } = await (await signedIn(app)).get("/prompts/new");
    expect(body).toMatch(/<option value[^>]*>[^<]*\(explorer\)/);
    expect(body).toContain('<option value="llm" disabled>');
    expect(body).toMatch(/<strong>llm<\/strong>[^<]*bubblewrap is not installed/);
  });

  test("pauses, archives and unarchives a prompt", async () => {
    const app = testApp();
    const person = await signedIn(app);
    await person.post("/prompts", full);
    const { id } = newest(app);
    for (const [act, form, status] of [
      ["status", { status: "paused" }, "paused"],
      ["status", { status: "active" }, "active"],
      ["archive", { confirmed: "1" }, "archived"],
      ["archive", { back: "1" }, "active"],
    ] as const) {
      const { location } = await person.post(`/prompts/${id}/${act}`, form);
      expect([location, newest(app).status]).toEqual([`/prompts/${id}`, status]);
    }
    expect((await person.post(`/prompts/${id}/status`, { status: "gone" })).status).toBe(400);
    await person.post(`/prompts/${id}/archive`, { confirmed: "1" });
    const resumed = await person.post(`/prompts/${id}/status`, { status: "active" });
    expect([resumed.status, newest(app).status]).toEqual([400, "archived"]);
    const { body } = await person.get(`/prompts/${id}`);

    expect(body).not.toContain("run-form");
  });
});

test("the prompt form shows an error for one row too many, and rejects more rows", async () => {
  const app = testApp();
  const person = await signedIn(app);
  const rows: [number, (count: number) => Record<string, string[]>][] = [
    [100, (count) => ({ "url.url": Array(count).fill(docs) })],
    [50, (count) => ({ "check.kind": Array(count).fill("url"), "check.target": Array(count).fill(docs) })],
    [9, (count) => ({ "furtherAgent.agent": Array(count).fill("explorer") })],
  ];
  for (const [most, rowsOf] of rows)
    for (const path of ["/prompts", "/prompts/derived-fields"]) {
      const send = (count: number) =>
        person.post(path, { text: `See ${docs}`, agent: "explorer", do: "preview", ...rowsOf(count) });
      const field = Object.keys(rowsOf(1)).at(-1) ?? "";
      const shown = (body: string) => body.split(`name="${field}"`).length - 1;
      const [kept, refused] = [await send(most + 1), await send(most + 2)];
      expect([path, field, kept.status, refused.status]).toEqual([path, field, 200, 400]);
      expect([shown(kept.body), shown(refused.body)]).toEqual([path === "/prompts" ? most + 2 : 0, 0]);
    }
  const tooMany = await person.post("/prompts", { text: `See ${docs}`, "url.url": Array(101).fill(docs) });
  expect([tooMany.status, fieldsOf(tooMany.body)["url.url"]?.length]).toEqual([400, 102]);
  const most = await person.post("/prompts", { text: `See ${docs}`, "url.url": Array(100).fill(docs) });
  expect([most.status, newest(app).additionalUrls?.length]).toEqual([303, 100]);
});

describe("Run now", () => {
  const made = async () => {
    const app = testApp();
    const person = await signedIn(app, { role: "member" });
    await person.post("/prompts", { title: "Upload", text: `Upload {{file}} with {{language}}. ${docs}` });
    return { app, person, id: newest(app).id };
  };

  test("starts one run or an evaluation of several, once per loaded page", async () => {
    const { app, person, id } = await made();
    const form = { ...fieldsOf((await person.get(`/prompts/${id}`)).body), "arg.file": "a", "arg.language": "Go" };
    const one = await person.post(`/prompts/${id}/run`, { ...form, runs: "1" });
    expect(one.location).toMatch(/^\/runs\/[0-9a-f-]{36}$/);
    expect((await person.post(`/prompts/${id}/run`, { ...form, runs: "1" })).location).toBe(one.location);
    const run = getRun(app.service.ctx, app.a.org, one.location?.slice(6) ?? "");
    expect(run.templateArgs).toEqual({ file: "a", language: "Go" });
    expect(getEvalRequest(app.service.ctx, app.a.org, run.evalRequestId).trigger).toBe("web");
    const map = { "urlMap.from": ["docs.example.com", ""], "urlMap.to": ["https://preview.example.com", ""] };
    const many = await person.post(`/prompts/${id}/run`, { ...form, ...map, key: "other", runs: "4", supersede: "on" });
    expect(many.location).toMatch(/^\/evals\/[0-9a-f-]{36}$/);
    const { runs } = getEvalRequest(app.service.ctx, app.a.org, many.location?.slice(7) ?? "");
    expect(runs).toHaveLength(4);
    expect(getRunTask(app.service.ctx, app.a.org, runs[0]!.runId).urlMap).toEqual({
      "docs.example.com": "https://preview.example.com",
    });
  });

  test.each([
    [{ "arg.language": "Go" }, 400, "Missing template variables in templateArgs: file"],
    [{ "arg.file": "a", "arg.language": "Go", runs: "51" }, 400, "Runs must be a whole number from 1 to 50"],
    [{ "arg.file": "a", "arg.language": "Go", runs: "1.5" }, 400, "Runs must be a whole number from 1 to 50"],
    [{ "arg.file": "a".repeat(2001), "arg.language": "Go" }, 400, "file must have at most 2000 characters"],
    [{ "arg.file": "a", "arg.language": "Go", "urlMap.from": "not a host", "urlMap.to": "x" }, 400, "urlMap"],
  ] as [Record<string, string>, number, string][])(
    "shows the error and keeps the values: case %#",
    async (form, status, message) => {
      const { app, person, id } = await made();
      const answer = await person.post(`/prompts/${id}/run`, { runs: "1", ...form });
      expect(answer.status).toBe(status);
      expect(/role="alert">([^<]*)/.exec(answer.body)?.[1]).toContain(message);
      expect(fieldsOf(answer.body)).toMatchObject({ "arg.language": "Go" });
      expect(countRuns(app.service.ctx, app.a.org)).toBe(0);
    },
  );

  test("requires consent to the cost of a model", async () => {
    const agent: Agent = {
      ...instantAgent,
      describe: () => ({ id: "llm", version: "test", model: null, kind: "model" }),
    };
    const app = testApp({
      agents: { llm: agent },
      env: { EVALD_AGENT_MODEL: "openai/gpt-5", OPENAI_API_KEY: "sk-0123456789abcdef", EVALD_MAX_COST_USD: "3" },
    });
    const person = await signedIn(app);
    await person.post("/prompts", { text: `Look. ${docs}` });
    const { id } = newest(app);
    const { body } = await person.get(`/prompts/${id}`);
    expect(body).toMatch(/name="agreed"[^>]*> [^<]*openai\/gpt-5[^<]*30 min[^<]*\$3\.00/);
    const refused = await person.post(`/prompts/${id}/run`, { runs: "1" });
    expect([refused.status, countRuns(app.service.ctx, app.a.org)]).toEqual([400, 0]);
    expect((await person.post(`/prompts/${id}/run`, { runs: "1", agreed: "on" })).status).toBe(303);
  });
});

describe("the pages of prompts", () => {
  test("list prompts, filtered by search and status, in pages", async () => {
    const app = testApp();
    const make = (title: string) => createPrompt(app.service.ctx, app.a.org, { title, text: `Do it. ${docs}` });
    const [first, second, third] = ["Upload a file", "Search 100%", "Delete"].map(make);
    updatePrompt(app.service.ctx, app.a.org, second!.id, { status: "paused" });
    updatePrompt(app.service.ctx, app.a.org, third!.id, { status: "archived" });
    const shown = async (query: string) => {
      const { body } = await app.send("GET", `/prompts${query}`);
      return [...body.matchAll(/<td class="title"[^>]*><a class="plain" href="\/prompts\/([^"]+)">/g)].map(
        ([, id]) => id,
      );
    };
    expect(await shown("")).toEqual([second!.id, first!.id]);
    expect(await shown("?search=UPLOAD")).toEqual([first!.id]);
    expect(await shown("?search=100%25")).toEqual([second!.id]);
    expect(await shown("?search=docs.example")).toEqual([second!.id, first!.id]);
    expect(await shown("?status=archived")).toEqual([third!.id]);
    expect(await shown("?status=all")).toHaveLength(3);
    expect(await shown("?search=nothing")).toEqual([]);
    expect((await app.send("GET", "/prompts?status=gone")).status).toBe(400);
    for (let i = 0; i < 49; i++) make(`More ${i}`);
    const [newer, older] = [await shown(""), await shown("?offset=50")];
    expect([newer.length, older]).toEqual([50, [first!.id]]);
  });

  test("show a prompt as better or worse only if a comparison shows it", async () => {
    const app = testApp({ agents: noisy });
    const { id } = createPrompt(app.service.ctx, app.a.org, {
      title: "Upload",
      text: `Do it. ${docs}`,
      agent: "noisy",
    });
    const scores = (...all: number[]) => all.map((score) => ({ ...niceGrade, score }));
    evaluation(app, id, scores(60, 61));
    evaluation(app, id, scores(90, 91));
    expect((await app.send("GET", "/prompts")).body).not.toContain("change-");
    expect((await app.send("GET", "/")).body).not.toContain("data-item");
    evaluation(app, id, scores(70, 71, 72, 73, 74));
    evaluation(app, id, scores(80, 81, 82, 83, 84));
    for (const path of ["/prompts", `/prompts/${id}`]) {
      const { body } = await app.send("GET", path);
      expect(body).toContain('class="change change-improved"');
      expect(body).toContain("+10.0 improved");
    }
    expect((await app.send("GET", "/")).body).toContain('data-kind="score_rose"');
    evaluation(app, id, scores(79, 83, 80, 84, 82));
    expect((await app.send("GET", "/")).body).not.toContain("data-item");
    const { body } = await app.send("GET", "/prompts");
    expect(body).not.toContain("change-improved");
    expect(body).toContain("oldest first: 61, 91, 72, 82, 82");
  });

  test("show the outcomes of scheduled evaluations, the prompt's ID and the command that runs it", async () => {
    let time = Date.parse("2026-11-21T09:30:00Z");
    const app = testApp({ now: () => time });
    const { id } = createPrompt(app.service.ctx, app.a.org, {
      text: `It's {{x}}. ${docs}`,
      templateDefaults: { x: "it's" },
      frequency: "0 * * * *",
    });
    time += 3 * 3600_000;
    await app.service.scheduler.tick();
    const { body } = await app.send("GET", `/prompts/${id}`);
    expect(listIn(body, "schedule-times")).toEqual([
      "Sat 21 Nov 2026, 13:00in 30 minutes",
      "Sat 21 Nov 2026, 14:00in 1 hour",
      "Sat 21 Nov 2026, 15:00in 2 hours",
    ]);
    expect(body).toContain('<li class="outcome-ran"><span>Sat 21 Nov 2026, 12:00</span>');
    expect(body).toContain('<li class="outcome-missed">');
    expect(body).toContain(`<code id="prompt-id">${id}</code>`);
    expect(decode(body)).toContain(`-d '{"urlMap":{},"templateArgs":{"x":"it'\\''s"}}'`);
  });

  test("are visible only to their organization, and their forms only to people with the role", async () => {
    const app = testApp();
    const { id } = createPrompt(app.service.ctx, app.a.org, { title: "Upload", text: `Do it. ${docs}` });
    const [own, foreign] = [await signedIn(app), await signedIn(app, { org: app.b.org })];
    for (const path of [`/prompts/${id}`, `/prompts/${id}/edit`, `/prompts/new?from=${id}`])
      expect([path, (await own.get(path)).status, (await foreign.get(path)).status]).toEqual([path, 200, 404]);
    expect((await foreign.get("/prompts?status=all")).body).not.toContain("Upload");
    for (const path of ["edit", "status", "archive", "run"].map((action) => `/prompts/${id}/${action}`)) {
      const form = { text: "Other", status: "paused", runs: "1" };
      expect([path, (await foreign.post(path, form)).status]).toEqual([path, 404]);
      expect([path, (await own.post(path, form, { origin: "https://evil.example" })).status]).toEqual([path, 403]);
      expect([path, (await browse(app).post(path, form)).status]).toEqual([path, 401]);
    }
    const taken = await foreign.post("/prompts", { id, text: `Mine. ${docs}` });
    expect(taken.location).toMatch(/^\/prompts\//);
    expect(taken.location).not.toBe(`/prompts/${id}`);
    expect(getPrompt(app.service.ctx, app.a.org, id)).toMatchObject({ title: "Upload", status: "active" });
    expect(countRuns(app.service.ctx, app.a.org)).toBe(0);
  });

  test("escape text that people wrote", async () => {
    const app = testApp();
    const evil = '</textarea><script>alert(1)</script>"><img src=x onerror=alert(1)>';
    const { id } = createPrompt(app.service.ctx, app.a.org, { title: evil, text: `${evil} ${docs}`, endGoal: evil });
    const { runId } = runWithReport(app, niceGrade, evil);
    const person = await signedIn(app);
    for (const path of ["/", "/prompts", `/prompts/${id}`, `/prompts/${id}/edit`, "/runs", `/runs/${runId}`]) {
      const { status, body } = await person.get(path);
      expect([path, status]).toEqual([path, 200]);
      expect(body).not.toMatch(/<(script(?! src="\/client\.js)|img)\b/i);
    }
  });
});

test("a new organization sees how to start", async () => {
  const app = testApp();
  const { body } = await app.send("GET", "/");
  expect(body).toContain('class="first"');
  expect(body).toContain("curl -s http://localhost:3000/api/v1/prompts");
  const { location } = await (await signedIn(app)).post("/prompts", {
    title: "First",
    text: `Do it. ${docs}`,
    endGoal: "",
  });
  expect(location).toBe(`/prompts/${newest(app).id}`);
});

/** The items of the first list in an element with this class, as text. */
function listIn(html: string, name: string): string[] {
  const from = html.indexOf(`class="${name}"`);
  const list = from < 0 ? "" : html.slice(from, html.indexOf("</ol>", from));
  return [...list.matchAll(/<li[^>]*>(.*?)<\/li>/gs)].map(([, item = ""]) => item.replace(/<[^>]+>/g, ""));
}

test("a run on a page can use another agent and model after consent to the cost", async () => {
  const other: Agent = {
    describe: () => ({ id: "other", version: "1", model: null, kind: "model", providers: ["openai"] }),
    preflight: () => [],
    async *run() {
      yield { type: "end", outcome: "not_judged", reason: "scripted" };
    },
  };
  const app = testApp({ agents: { other }, env: { OPENAI_API_KEY: "sk-0123456789abcdef" } });
  const { id } = createPrompt(app.service.ctx, app.a.org, { text: docs, agent: "explorer" });
  const visitor = await signedIn(app);
  expect((await visitor.get(`/prompts/${id}`)).body).toContain('<option value="other">other</option>');
  const form = { runs: "1", agent: "other", model: "openai/gpt-5" };
  const refused = await visitor.post(`/prompts/${id}/run`, form);
  expect([refused.status, refused.body.includes('name="agreed"')]).toEqual([400, true]);
  expect((await visitor.post(`/prompts/${id}/run`, { ...form, model: "google/gemini" })).body).toContain(
    "No API key for google",
  );
  const { status } = await visitor.post(`/prompts/${id}/run`, { ...form, agreed: "on" });
  const [run] = listRunPage(app.service.ctx, app.a.org, { promptId: id }, { limit: 2 }).items;
  expect([status, run?.agent]).toEqual([303, "other"]);
});
