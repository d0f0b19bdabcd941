import type { AgentEvent } from "../../src/agents/agent.ts";
import { createExplorer } from "../../src/agents/explorer/explorer.ts";
import { createKey } from "../../src/auth/keys.ts";
import { listMembers } from "../../src/auth/members.ts";
import { updateOrg } from "../../src/auth/orgs.ts";
import { advanceBisects } from "../../src/bisects/progress.ts";
import { advanceCalibrations } from "../../src/calibration/progress.ts";
import { findLatestResults } from "../../src/comparisons/latest.ts";
import { jobs } from "../../src/db/tables/jobs.ts";
import { invitations } from "../../src/db/tables/people.ts";
import { artifacts } from "../../src/db/tables/runs.ts";
import { advanceExperiments } from "../../src/experiments/progress.ts";
import { reportFriction } from "../../src/field/reports.ts";
import { advanceGates } from "../../src/gates/progress.ts";
import type { Grade } from "../../src/grading/grade.ts";
import { setModelKey } from "../../src/models/models.ts";
import { testDestination } from "../../src/notifications/deliveries.ts";
import { createDestination } from "../../src/notifications/destinations.ts";
import { createPrompt, updatePrompt } from "../../src/prompts/prompts.ts";
import { createProvider } from "../../src/providers/providers.ts";
import { getReport } from "../../src/reports/reports.ts";
import { requestEval } from "../../src/runs/requests.ts";
import { setSecret } from "../../src/secrets/secrets.ts";
import { storeTraffic } from "../../src/traffic/traffic.ts";
import { goal, guessedPathAnswer, guessedPathSession } from "./guessed-path.ts";
import { judgedApp, says } from "./judged.ts";
import { join } from "./people.ts";
import { completeProposals, demoProposals } from "./proposals.ts";
import { evaluation, finishRuns, judge, niceGrade } from "./reports.ts";
import { serveSite } from "./site.ts";

const dayMs = 86_400_000;
const preview = { "docs.notes.example": "https://pr-212.preview.notes.example" };

const [deadLink] = niceGrade.frictions as [Grade["frictions"][number]];
const frictions: Grade["frictions"] = [
  deadLink,
  {
    ...deadLink,
    ...{
      fingerprint: "00000000000000b2",
      severity: "medium",
      phase: "setup",
      category: "missing_docs",
      lostPoints: 2.2,
    },
    ...{ title: "No page says how to get an API key", quote: null, events: [4], lostSeconds: 6.3 },
    ...{ url: "https://docs.notes.example/auth", description: "The agent looked on three pages and then asked." },
  },
  {
    ...deadLink,
    ...{ fingerprint: "00000000000000c3", severity: "low", phase: "integration", category: "broken_sample" },
    ...{ title: "A sample on Upload doesn’t parse: unexpected end of input", lostPoints: 0.8, events: [9] },
    ...{ url: "https://docs.notes.example/upload", description: "The JavaScript sample lacks its last line." },
  },
];

/** A grade between good and bad, as a run of that prompt would get. */
function graded(score: number, friction: number, more: Partial<Grade> = {}): Grade {
  const grade = score >= 90 ? "A-" : score >= 87 ? "B+" : score >= 80 ? "B-" : score >= 70 ? "C-" : "D";
  return {
    ...niceGrade,
    ...{ score, grade, outcome: "succeeded", judge, frictions: frictions.slice(0, friction) },
    recommendations: niceGrade.recommendations.slice(0, friction),
    metrics: { ...niceGrade.metrics, cost: "$0.12", costUsd: 0.12, time: "1m 48s", timeSeconds: 108 },
    dimensions: [
      { name: "Goal achievement", weight: 0.3, score: 100, grade: "A+", parts: [], unmeasured: [] },
      ...niceGrade.dimensions,
      { name: "Efficiency", weight: 0.1, score: Math.max(0, score - 4), grade: "C", parts: [], unmeasured: [] },
    ],
    ...more,
  };
}

/**
 * A service with what a team has after three weeks: docs with a wrong line, a prompt that regressed a week ago, a gate that failed, failed
 * runs, a schedule, people, keys. The second organization is empty. One run stays in progress until `stop`. `reachable`: more hosts on loopback that
 * the service may reach.
 */
export async function demo(reachable: string[] = []) {
  let at = Date.UTC(2026, 10, 2, 9, 12);
  const held = Promise.withResolvers<void>();
  let isHeld = false;
  const site = serveSite({
    "/": {
      body: "<title>Files</title><h1>Files</h1><a href='/quickstart'>Quickstart</a> <a href='/upload'>Upload a file</a> <a href='/gone'>Client reference</a>",
    },
    "/quickstart": {
      body: "<title>Quickstart</title><h1>Quickstart</h1><p>Read <a href='/clients/old'>the client</a>.</p>",
    },
    "/upload": {
      body: "<title>Upload a file</title><h1>Upload a file</h1><pre><code class='language-json'>{\"a\": }</code></pre>",
    },
    "/reference/client": { body: "<title>Client reference</title><h1>Client reference</h1>" },
  });
  async function sessions(): Promise<AgentEvent[]> {
    if (isHeld) await held.promise;
    return guessedPathSession();
  }
  const app = judgedApp({
    ...{ id: "llm", turns: [says(guessedPathAnswer())], sessions, now: () => (at += 31) },
    agents: { explorer: createExplorer({ version: "1" }) },
    env: {
      EVALD_SECRET_KEY: Buffer.alloc(32, 7).toString("base64"),
      EVALD_ALLOW_PRIVATE: [`127.0.0.1:${site.port}`, ...reachable].join(),
    },
  });
  const { service, db, a } = app;
  updateOrg(service.ctx, a.org, { name: "Acme", timeZone: "Europe/Berlin" });
  const { id: notes } = createProvider(service.ctx, a.org, {
    ...{ name: "Notes", docsUrl: "https://docs.notes.example/", productUrl: "https://notes.example" },
  });
  const { id: files } = createProvider(service.ctx, a.org, { name: "Files", docsUrl: `${site.url}/` });
  const newPrompt = (title: string, text: string, more: object = {}) =>
    createPrompt(service.ctx, a.org, {
      title,
      text,
      targetProviderId: notes,
      agent: "llm",
      tags: ["nightly"],
      ...more,
    }).id;
  setSecret(service.ctx, a.org, "NOTES_TOKEN", { value: "a token of the notes", hosts: ["notes.example"] });
  const add = newPrompt("Add a note", "Add a note.", { endGoal: goal, isOnResultsPage: true });
  const search = newPrompt("Search the notes of a team", "Search all notes of a team for {{word}}.", {
    ...{ templateDefaults: { word: "invoice" }, runsPerEval: 4, isOnResultsPage: true },
    ...{
      endGoal: "The search was sent. Its hits were printed.",
      declaredChecks: [
        { url: "https://notes.example/health" },
        {
          ...{ url: "https://notes.example/searches", headers: { Authorization: "Bearer {{secret.NOTES_TOKEN}}" } },
          json: { pointer: "/0/word", equals: "invoice" },
        },
      ],
    },
    additionalUrls: [{ url: "https://notes.example/openapi.json", kind: "openapi", name: "OpenAPI" }],
  });
  const upload = newPrompt("Upload a file", "Upload a file and print its URL.", {
    ...{ targetProviderId: files, agent: "explorer", endGoal: "A file was uploaded." },
    isOnResultsPage: true,
  });
  const canary = newPrompt("Canary", "Read the guide.", { isCanary: true, tags: [] });
  const archive = createPrompt(service.ctx, a.org, { text: "Old task. https://docs.notes.example/old" });
  updatePrompt(service.ctx, a.org, archive.id, { status: "archived" });

  const report = (where: string, happened: string, more: { category?: "broken_sample"; agent?: string } = {}) =>
    reportFriction(service.ctx, a.org, "key of the docs", {
      ...{ where, happened, tried: "I followed the quickstart to add a note and then searched for it.", ...more },
    });
  const broken = "https://docs.notes.example/upload";
  const month = new Date(service.ctx.now()).toISOString().slice(0, 7);
  const read = (kind: "coding" | "answer", name: string, path: string, reads: number, missing = 0) => ({
    ...{ month, kind, name, url: `${site.url}${path}`, reads, markdown: Math.floor(reads / 2), missing },
  });
  storeTraffic(service.ctx, a.org, {
    log: "0".repeat(64),
    pages: [
      read("coding", "Claude Code", "/upload", 412),
      read("answer", "ChatGPT", "/upload", 77),
      read("coding", "Codex", "/guides/webhooks", 2),
      read("coding", "Unnamed agent", "/guides/rotate-keys", 31),
      read("coding", "Cursor", "/api/search", 0, 19),
      read("coding", "Claude Code", "/llms.txt", 58),
    ],
  });
  report(broken, "SyntaxError: Unexpected end of input in the sample.", {
    ...{ category: "broken_sample", agent: "claude-code 2.1.4" },
  });
  report(broken, "The sample lacks its last line.", { category: "broken_sample", agent: "codex 0.9" });
  report("notes search --team", "error: unknown option '--team'. The docs of the CLI list it.", { agent: "cursor" });

  const args = { templateArgs: { word: "invoice" }, trigger: "schedule" } as const;
  let sharedPath = "";
  let baseline: string | undefined;
  /** Reports before and after the prompt regressed. */
  const compared: string[] = [];
  for (let day = 0; day < 17; day++) {
    const isAfter = day >= 11;
    const scores = [0, 2, -1, 1].map((jitter) => (isAfter ? 71 : 89) + jitter + (day % 3));
    const runs = evaluation(
      app,
      search,
      scores.map((score) => graded(score, isAfter ? 3 : 1)),
      args,
    );
    if (day === 9) baseline = runs[0]?.evalRequestId;
    if (day === 10 || day === 11) compared.push(runs[0]?.slug ?? "");
    if (day % 4 === 0) evaluation(app, canary, [graded(92, 0)]);
    at += dayMs;
  }
  updatePrompt(service.ctx, a.org, search, { baselineRequestId: baseline ?? null });
  evaluation(app, search, ["timeout: the run took longer than 20 minutes"], { templateArgs: { word: "tax" } });
  const none = { scope: "docs_only", outcome: "no_creds", score: null, grade: null } as const;
  evaluation(app, canary, [graded(0, 0, { ...none, nullNotice: "The agent had no credentials." })]);
  at += 3_600_000;
  const endJobs = () => db.update(jobs).set({ state: "done", completedAt: at }).run();
  endJobs();
  await requestEval(service.ctx, a.org, add, { urlMap: {}, trigger: "web", runs: 4 });
  await requestEval(service.ctx, a.org, upload, { urlMap: {}, trigger: "cli" });
  await app.runJobs();
  const slug = findLatestResults(service.ctx, a.org, add)?.slug ?? "";
  at += 600_000;
  await furnish();
  endJobs();
  isHeld = true;
  await requestEval(service.ctx, a.org, add, { urlMap: {}, trigger: "web" });
  await service.runner.start();

  /** What people and CI add: gates, members, keys, links, decisions. */
  async function furnish(): Promise<void> {
    const post = async (path: string, body: unknown) => {
      const answer = await app.send("POST", path, { body });
      if (answer.status >= 300) throw new Error(`${path}: ${answer.status} ${JSON.stringify(answer.body)}`);
      return answer.body;
    };
    await post("/api/v1/gates", { promptId: search, templateArgs: { word: "invoice" }, urlMap: preview, runs: 5 });
    for (let i = 0; i < 5; i++) {
      finishRuns(app, ({ urlMap }) => (Object.keys(urlMap).length > 0 ? graded(52 - i, 3) : graded(73 - i, 2)), 0.12);
      await advanceGates(service.ctx);
    }
    const edits = { hidden: ["https://docs.notes.example/llms.txt"], replacements: [] };
    const arms = [{ name: "baseline" }, { name: "no llms.txt", edits }, { name: "new quickstart", urlMap: preview }];
    const experiment = { promptIds: [search], templateArgs: { word: "invoice" }, arms, repeats: 8, seed: 3 };
    await post("/api/v1/experiments", experiment);
    let n = 0;
    finishRuns(app, ({ editsDigest, urlMap }) => {
      const noise = [0, 4, -3, 2, -5, 1][n++ % 6] ?? 0;
      const isPreview = Object.keys(urlMap).length > 0;
      return graded((editsDigest !== null ? 61 : isPreview ? 76 : 73) + noise, editsDigest !== null ? 3 : 2);
    });
    await advanceExperiments(service.ctx);
    await post("/api/v1/calibrations", { agent: "explorer", sites: 1 });
    finishRuns(app, () => graded(70, 2));
    await advanceCalibrations(service.ctx);
    const commits = ["a1b2c3d", "b2c3d4e", "c3d4e5f", "d4e5f60", "e5f6071"];
    const builds = { urlTemplate: "https://{commit}.preview.example", commits };
    await post("/api/v1/bisects", { promptId: search, templateArgs: { word: "invoice" }, ...builds });
    for (let i = 0; i < 5; i++) {
      const isLater = (urlMap: Record<string, string>) => /[de]\w{6}\.preview/.test(JSON.stringify(urlMap));
      finishRuns(app, ({ urlMap }) => (isLater(urlMap) ? graded(52, 3) : graded(73, 2)), 0.02);
      await advanceBisects(service.ctx);
    }
    await post("/api/v1/gates", { promptId: upload, urlMap: {}, runs: 1, minScore: 60 });
    await app.runJobs();
    await advanceGates(service.ctx);
    updatePrompt(service.ctx, a.org, search, { frequency: "daily" });
    db.$client.run(
      "update runs set started_at = completed_at - 108000 where completed_at > started_at + 3600000 or started_at is null and completed_at > 0",
    );
    const share = await post(`/api/v1/reports/${slug}/shares`, { days: 7, withSession: true });
    sharedPath = new URL(share.url).pathname;
    await post("/api/v1/dismissals", {
      fingerprints: ["00000000000000c3"],
      reason: "The sample is shortened on purpose",
    });
    await post(`/api/v1/regrades`, { since: "2020-01-01", judge: "openai-compatible/agent", maxUsd: 0.5 });
    for (const [role, name] of [
      ["admin", "ben"],
      ["member", "cleo"],
      ["viewer", "dan"],
    ] as const)
      join(app, a.org, role, `${name}@acme.example`);
    const [owner] = listMembers(service.ctx, a.org);
    const invited = { orgId: a.org, role: "member" as const, status: "pending" as const, inviterId: owner?.id ?? "" };
    for (const [email, ageDays] of [
      ["finn@acme.example", 1],
      ["eve@acme.example", 0],
    ] as const) {
      const createdAt = at - ageDays * dayMs;
      // The library compares the expiry with the real clock.
      const expiresAt = new Date(Math.max(createdAt, Date.now()) + 2 * dayMs);
      db.insert(invitations)
        .values({ ...invited, id: service.ctx.newId(createdAt), email, createdAt: new Date(createdAt), expiresAt })
        .run();
    }
    createKey(service.ctx, a.org, "CI");
    const { proposalSetId } = await post("/api/v1/proposals", { docsUrl: "https://docs.acme.example/" });
    completeProposals(app, proposalSetId, demoProposals);
    await post(`/api/v1/proposals/${proposalSetId}/prompts`, { only: [2] });
    const hook = { kind: "webhook" as const, url: "https://hooks.acme.example/evald" };
    const { id } = createDestination(service.ctx, a.org, { ...hook, events: ["run.completed"] });
    testDestination(service.ctx, a.org, id);
    setModelKey(service.ctx, a.org, "openai", "sk-of-acme-0123456789");
    const { runId } = getReport(service.ctx, a.org, slug).run;
    const name = "screenshot-1.webp";
    db.insert(artifacts)
      .values({ orgId: a.org, runId, attempt: 1, name, data: Buffer.from("RIFF") })
      .run();
  }

  async function stop(): Promise<void> {
    held.resolve();
    site.stop();
    await app.stop();
  }
  return { ...app, slug, sharedPath, compared, prompts: { add, search, upload, canary }, stop };
}
export type Demo = Awaited<ReturnType<typeof demo>>;
