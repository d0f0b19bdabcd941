import { and, asc, eq } from "drizzle-orm";
import type { AgentEvent } from "../../src/agents/agent.ts";
import { type Failure, failedCodes, ruleOf, toFailure, toFailureColumns } from "../../src/agents/failure.ts";
import { transaction } from "../../src/db/open.ts";
import { jobs } from "../../src/db/tables/jobs.ts";
import { runs } from "../../src/db/tables/runs.ts";
import type { Grade } from "../../src/grading/grade.ts";
import { gradeSession } from "../../src/grading/score.ts";
import { createPrompt } from "../../src/prompts/prompts.ts";
import { insertReport } from "../../src/reports/report-writer.ts";
import type { SessionId } from "../../src/reports/session-events.ts";
import { announceEnd } from "../../src/runs/announcements.ts";
import type { EvalRequestInput } from "../../src/runs/requests.ts";
import { acceptEval } from "../../src/runs/requests.ts";
import { getRun } from "../../src/runs/runs.ts";
import { openSession } from "../../src/runs/session.ts";
import type { testApp } from "./app.ts";

type App = ReturnType<typeof testApp>;

/** A completed run of A with this grade, over these events or a session of 121, without an agent. */
export function runWithReport(app: App, grade: Grade, title = "Upload a file", events?: AgentEvent[]) {
  const { service, a } = app;
  const prompt = createPrompt(service.ctx, a.org, { title, text: "Upload a file. https://docs.example.com" });
  const [run] = evaluation(app, prompt.id, [grade], {}, events ?? steps(title, 120));
  return run as NonNullable<typeof run>;
}

/**
 * One evaluation of a prompt of A, with a run by this version of its agent for each grade or failure. Those with a grade have these events or a short
 * session.
 */
export function evaluation(
  { service, a, db }: App,
  promptId: string,
  ends: (Grade | string)[],
  more: Partial<EvalRequestInput> = {},
  events?: AgentEvent[],
  agentVersion = "test",
) {
  const asked = { urlMap: {}, trigger: "api", runs: ends.length, ...more } as const;
  const { runIds, evalRequestId } = transaction(db, (tx) => acceptEval(service.ctx, tx, a.org, promptId, asked));
  return runIds.map((runId, i) => {
    const end = ends[i] as Grade | string;
    const run = db.select().from(runs).where(eq(runs.id, runId)).get();
    if (!run) throw new Error("the run is not there");
    if (typeof end !== "string")
      storeSession(service.ctx, { orgId: a.org, runId, attempt: 1 }, events ?? steps(run.task.title ?? "", 2));
    endRun({ service, db }, run, end, agentVersion);
    return { runId, slug: getRun(service.ctx, a.org, runId).report?.slug ?? "", evalRequestId };
  });
}

/** A failure in the form "cause: detail", with the first code of that cause, or "code: detail". */
function failureOf(words: string): Failure {
  const [name = "", ...detail] = words.split(": ");
  const code = failedCodes.find((each) => each === name) ?? failedCodes.find((each) => ruleOf(each).cause === name);
  if (!code) throw new Error(`no cause of failure: ${words}`);
  return toFailure(code, detail.join(": "));
}

/** Ends a run as given, without a session. */
export function endRun(
  { service, db }: Pick<App, "service" | "db">,
  run: typeof runs.$inferSelect,
  end: Grade | string,
  agentVersion = "test",
): void {
  const done = { attempt: 1, agentVersion, completedAt: service.ctx.now() };
  const ended =
    typeof end === "string"
      ? { status: "failed" as const, ...toFailureColumns(failureOf(end)) }
      : { status: "completed" as const };
  db.transaction((tx) => {
    tx.update(runs)
      .set({ ...done, ...ended })
      .where(eq(runs.id, run.id))
      .run();
    if (typeof end !== "string") insertReport(service.ctx, tx, run, 1, end);
    const failure = typeof end === "string" ? failureOf(end) : null;
    announceEnd(service.ctx, tx, run.id, failure);
  });
}

/** Ends all pending runs of A, oldest first, each with a score or a failure, and with its cost. */
export function finishRuns(
  app: App,
  end: (run: typeof runs.$inferSelect) => number | string | Grade,
  costUsd: number | null = 0,
): void {
  const pending = and(eq(runs.orgId, app.a.org), eq(runs.status, "pending"));
  for (const run of app.db.select().from(runs).where(pending).orderBy(asc(runs.id)).all()) {
    const how = end(run);
    endRun(app, run, typeof how === "number" ? { ...niceGrade, score: how } : how);
    const at = app.service.ctx.now();
    app.db
      .update(jobs)
      .set({ state: "done", attempt: 1, attemptStartedAt: at, completedAt: at, costUsd })
      .where(eq(jobs.subject, run.id))
      .run();
  }
}

/** A session with this many steps. */
export const steps = (title: string, count: number): AgentEvent[] => [
  ...Array.from({ length: count }, (_, i) => ({ type: "thought", text: `${title}: step ${i}`, by: "rule" }) as const),
  { type: "end", outcome: "not_judged", reason: "Nobody judges here." },
];

/** Stores the session of a run. */
export function storeSession(ctx: App["service"]["ctx"], id: SessionId, events: AgentEvent[]): void {
  const session = openSession(ctx, id, { secrets: [], mayWrite: () => true });
  for (const event of events) session.append(event, event.type === "usage" ? "gateway" : "agent");
  session.close(new AbortController().signal);
}

const end = { type: "end", outcome: "not_judged", reason: "Nobody judges here." } as const;

export const niceGrade: Grade = {
  // All other fields are as in a session in which nothing happened.
  ...gradeSession([{ ...end, seq: 1, at: 0, tMs: 0, source: "agent" }]),
  outcome: "not_judged",
  scope: "goal",
  score: 78.4,
  grade: "C+",
  nullNotice: null,
  keyFinding: "6 of 41 links on the way are dead.",
  verdict: "An agent finds the upload guide quickly, but then meets dead links.",
  summary: { whatWorked: "llms.txt led straight to the upload guide.", whatDidnt: "Links answer 404." },
  metrics: {
    time: "4.2s",
    timeDetail: "From start to end.",
    timeSeconds: 4.2,
    errors: 2,
    errorsDetail: "2 requests on the way failed (2 × 404).",
    toolCalls: 17,
    toolCallsDetail: "9 × open_page, 8 × check_links.",
    cost: "$0.00",
    costDetail: "No model was used, so nothing was spent.",
    costUsd: 0,
    interruptions: 0,
  },
  dimensions: [
    { name: "Docs discoverability", weight: 0.2, score: 88.2, grade: "B+", parts: [], unmeasured: [] },
    { name: "Docs quality", weight: 0.15, score: 64.3, grade: "D", parts: [], unmeasured: [] },
  ],
  lost: null,
  coverage: 0.45,
  notChecked: [],
  methodology: { id: "3", hash: "3f9c0a17aa55", judge: null },
  judge: null,
  frictions: [
    {
      fingerprint: "00000000000000a1",
      severity: "high",
      phase: "discovery",
      category: "dead_link",
      title: "Dead link on Quickstart: /reference/client (404)",
      description: "The link answers 404.",
      quote: "See the [client reference](/reference/client).",
      url: "https://docs.example.com/quickstart",
      onPath: true,
      events: [1, 2],
      lostSeconds: 1.4,
      lostUsd: null,
      lostPoints: 4.1,
      preconditions: ["tested https://docs.example.com/quickstart"],
    },
  ],
  recommendations: [
    {
      priority: 1,
      title: "Mend dead links on Quickstart",
      action: "Point to /reference/clients.",
      isConvention: false,
      url: "https://docs.example.com/quickstart",
      frictions: ["00000000000000a1"],
      expectedGain: 4.1,
      gain: null,
      lostPoints: null,
      evidence: null,
    },
  ],
  exposure: {
    visits: [
      {
        page: "https://docs.example.com/quickstart",
        url: "https://docs.example.com/quickstart",
        reads: 1,
        misses: 0,
        guesses: 0,
        errors: 1,
        found: { "llms.txt": 1 },
      },
    ],
    listed: [],
    done: ["run"],
    isComplete: true,
    byRules: true,
  },
};

export const judge: NonNullable<Grade["judge"]> = {
  model: "openai/gpt-5",
  costUsd: 0.0123,
  inputTokens: 8200,
  outputTokens: 640,
  calls: 1,
  confidence: 0.85,
  parts: [
    {
      text: "The SDK was installed.",
      met: "yes",
      evidence: "observed",
      events: [41],
      quote: "added 1 package",
      why: "npm said so.",
    },
    {
      text: "Its rows were printed.",
      met: "no",
      evidence: "observed",
      events: [57, 58],
      quote: "TypeError: query",
      why: "The call threw.",
    },
    { text: "The file was kept.", met: "unclear", evidence: null, events: [], quote: null, why: "Nothing shows it." },
  ],
  dropped: ["part 3, yes: its quote stands in none of its events"],
  notice: null,
};

const image = "<img src=x onerror=alert(1)>";
const lines =
  "<script>alert(1)</script>\n# heading\n\n- [a](javascript:alert(1)) <http://evil.example> | **b** _c_ ~~d~~";

/** Text of a target that tries to be more than text. */
export const hostileGrade: Grade = {
  ...niceGrade,
  keyFinding: `${image} # not a heading\\`,
  verdict: `# ${lines}`,
  summary: { whatWorked: `1. ${lines}`, whatDidnt: `> ${lines}\n\u202e\u001b[31m` },
  metrics: { ...niceGrade.metrics, errorsDetail: `${image} | ${lines}` },
  dimensions: [{ name: image, weight: 0.2, score: 50, grade: "F", parts: [], unmeasured: [] }],
  judge: {
    ...judge,
    parts: [
      { text: `## ${image}`, met: "no", evidence: "verified", events: [1], quote: `\`\` ${lines}`, why: `> ${lines}` },
    ],
    dropped: [`- ${lines}`],
    notice: `# ${lines}`,
  },
  frictions: [
    {
      ...(niceGrade.frictions[0] as Grade["frictions"][number]),
      title: `</h3>${image}\n## two`,
      description: `    ${lines}\n===`,
      quote: "``` <b>quote</b> ** `x` ![i](http://evil.example/i.png)",
      url: "javascript:alert(1)",
    },
  ],
  recommendations: [
    {
      ...(niceGrade.recommendations[0] as Grade["recommendations"][number]),
      title: `*${image}*`,
      action: `+ ${lines}`,
      url: "data:text/html,<script>alert(1)</script>",
    },
  ],
};
