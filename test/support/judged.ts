import { afterEach } from "bun:test";
import type { Agent, AgentEvent, Outcome } from "../../src/agents/agent.ts";
import type { Task } from "../../src/agents/task.ts";
import type { Answer } from "../../src/grading/judge/rubric.ts";
import { createPrompt } from "../../src/prompts/prompts.ts";
import { requestEval } from "../../src/runs/requests.ts";
import { listAttempts } from "../../src/runs/runs.ts";
import { testApp } from "./app.ts";
import { serveFakeModel, type Turn } from "./fake-model.ts";

const docs = "https://docs.acme.dev/";
const api = "https://api.acme.dev/";
const endGoal = "The SDK was installed. Its three rows were printed.";
export const installation = "installation inst_81kq";
export const rows = "3 rows: ada, bob, cyd";

type Session = { page?: string; output?: string; works?: boolean; more?: AgentEvent[]; outcome?: Outcome };

/** A model agent's session: reads a page (event 4), fails (7), tries again (10) and is answered by the product (9), and claims success (11, 13). */
export function modelSession({
  page = "Install it: npm i acme",
  output,
  works = true,
  more = [],
  outcome,
}: Session = {}) {
  const call = (id: string, tool: string, input: Record<string, unknown>): AgentEvent => {
    return { type: "tool_call", id, tool, input };
  };
  const result = (id: string, tool: string, ok: boolean, said: Record<string, unknown>): AgentEvent => {
    return { type: "tool_result", id, tool, ok, output: said };
  };
  const request = {
    method: "GET",
    url: docs,
    mappedUrl: null,
    status: 200,
    ms: 300,
    bytes: 100,
    contentType: "text/html",
  };
  const way = { provenance: "given", foundOn: null, purpose: "task", error: null } as const;
  const started = {
    agent: "llm",
    version: "1",
    kind: "model" as const,
    model: "anthropic/claude-test",
    goal: endGoal,
    starts: [docs],
    product: api,
  };
  const printed =
    output ??
    (works ? `added 1 package\n${installation}\n${rows}` : "added 1 package\nTypeError: query is not a function");
  return [
    { type: "milestone", name: "started", detail: started },
    { type: "thought", text: `I will print ${rows}`, by: "model" },
    call("t1", "fetch_page", { url: docs }),
    { type: "http", id: "t1", ...request, ...way },
    result("t1", "fetch_page", true, { url: docs, text: page }),
    {
      type: "milestone",
      name: "page_read",
      detail: { url: docs, title: "Acme docs", chars: 900, form: "html" as const },
    },
    call("t2", "run_command", { command: "npm i acme" }),
    result("t2", "run_command", false, { message: "exit code 1: E404 acme is not in this registry", exitCode: 1 }),
    call("t3", "run_command", { command: "npm i @acme/sdk && node query.js && echo all went well" }),
    {
      type: "http",
      id: "t3",
      ...request,
      url: `${api}query`,
      status: works ? 200 : 400,
      contentType: "application/json",
      body: JSON.stringify(works ? { installation: "inst_81kq", rows: ["ada", "bob", "cyd"] } : { error: printed }),
      ...way,
    },
    result("t3", "run_command", works, { exitCode: works ? 0 : 1, stdout: `${printed}\nall went well` }),
    call("t4", "finish", { outcome: "succeeded", summary: `The SDK was installed and printed ${rows}` }),
    result("t4", "finish", true, { outcome: "succeeded" }),
    ...more,
    { type: "end", outcome: outcome ?? "succeeded", reason: `The SDK was installed and printed ${rows}` },
  ] satisfies AgentEvent[];
}

type Met = Answer["parts"][number]["met"];
export const part = (n: number, met: Met, events: number[], quote: string) => ({
  part: n,
  met,
  events,
  quote,
  why: `part ${n}`,
});

/** An honest judge's answer if all went well; `more` overrides fields. */
export const answer = (more: Partial<Answer> = {}): Answer => ({
  parts: [part(1, "yes", [10], installation), part(2, "yes", [10], rows)],
  frictions: [
    {
      finding: "",
      severity: "high",
      phase: "setup",
      category: "misleading_docs",
      events: [4, 7],
      quote: "npm i acme",
      title: "The install command names a package that is not there",
      why: "The first install failed with E404.",
      advice: "Write npm i @acme/sdk.",
    },
  ],
  keyFinding: "The docs name the wrong package.",
  verdict: "It works in the end. The first command of the docs does not.",
  summary: { whatWorked: "The query.", whatDidnt: "The install command." },
  confidence: 0.9,
  ...more,
});

/** A fake judge's turn: a response, or any other text. */
export const says = (said: Answer | string, more: Turn = {}): Turn => ({
  text: typeof said === "string" ? said : JSON.stringify(said),
  usage: { input: 1000, output: 100 },
  ...more,
});

type Options = {
  turns: Turn[];
  /** The turns of another judge named `openai-compatible/agent`. */
  again?: Turn[];
  /** One per run, of which the last one repeats; or computed from the run's task. */
  sessions?: AgentEvent[][] | ((task: Task) => AgentEvent[] | Promise<AgentEvent[]>);
  env?: Record<string, string>;
  dataDir?: string;
  judge?: string | null;
  kind?: "rules" | "model";
  /** ID of the agent; `explorer` counts as deterministic. */
  id?: string;
  /** The prefix of the provider's variables, if it isn't the default. */
  own?: string;
  now?: () => number;
  /** Further agents by ID. */
  agents?: Record<string, Agent>;
};

const ownUrl = ({ baseUrls }: ReturnType<typeof serveFakeModel>, judge: string | null) =>
  baseUrls[(judge?.split("/")[0] ?? "") as keyof typeof baseUrls];

/** A service whose agent plays these sessions in turn and whose judge gives these responses in turn, over HTTP. The last ones repeat. */
export function judgedApp({
  turns,
  again = turns,
  sessions = [modelSession()],
  env = {},
  dataDir,
  judge = "openai-compatible/judge",
  kind = "model",
  id = "explorer",
  own,
  now,
  agents = {},
}: Options) {
  const inTurn = (said: Turn[]) => ({ first: said.slice(0, -1), turns: said.slice(-1) });
  const model = serveFakeModel({ scenarios: { judge: inTurn(turns), agent: inTurn(again) } });
  let sent = 0;
  const agent: Agent = {
    describe: () => ({ id, version: "test", model: "anthropic/claude-test", kind }),
    preflight: () => [],
    async *run(task) {
      const nth = sent++;
      const session =
        typeof sessions === "function" ? await sessions(task) : (sessions[Math.min(nth, sessions.length - 1)] ?? []);
      for (const event of session)
        yield event.type === "milestone" && event.name === "started"
          ? { ...event, detail: { ...event.detail, kind } }
          : event;
    },
  };
  const app = testApp({
    ...(dataDir !== undefined && { dataDir }),
    agents: { ...agents, [id]: agent },
    now,
    env: {
      EVALD_CONCURRENCY: "1",
      OPENAI_COMPATIBLE_BASE_URL: model.baseUrls["openai-compatible"],
      OPENAI_COMPATIBLE_API_KEY: "sk-judge-key-0123456789",
      EVALD_AGENT_MODEL: "openai-compatible/agent",
      EVALD_MODEL_PRICES:
        '{"openai-compatible/judge": {"in": 1, "out": 10}, "openai-compatible/agent": {"in": 1, "out": 10}}',
      ...(judge === null ? {} : { EVALD_JUDGE_MODEL: judge }),
      ...(own && { [`${own}_API_KEY`]: "sk-judge-key-0123456789", [`${own}_BASE_URL`]: ownUrl(model, judge) }),
      ...env,
    },
  });
  const { service, a } = app;

  /** Runs the task once and returns its run, its report (null if there is none) and the stored data. */
  async function run(more: { endGoal?: string | null; text?: string } = {}) {
    const task = { text: `Query it. Docs: ${docs}`, endGoal, ...more };
    const prompt = createPrompt(service.ctx, a.org, task);
    const { runIds } = await requestEval(service.ctx, a.org, prompt.id, { urlMap: {}, trigger: "api" });
    await app.runJobs();
    const { body } = await app.send("GET", `/api/v1/runs/${runIds[0]}`);
    const report = body.report ? (await app.send("GET", `/api/v1/reports/${body.report.slug}`)).body : null;
    const trace = report ? (await app.send("GET", `/api/v1/reports/${report.slug}/trace?limit=500`)).body.events : [];
    return { run: body, report, trace, attempts: listAttempts(service.ctx, a.org, String(runIds[0])) };
  }
  const stop = async () => {
    await service.stop(0);
    model.stop();
  };
  return { ...app, model, run, sent: () => sent, stop };
}

/** Services with a judge, which stop after each test of the file that calls this. */
export function judgedApps() {
  const apps: ReturnType<typeof judgedApp>[] = [];
  afterEach(async () => {
    for (const app of apps.splice(0)) await app.stop();
  });
  const judged = (...options: Parameters<typeof judgedApp>) => {
    const app = judgedApp(...options);
    apps.push(app);
    return app;
  };
  /** Runs one session that is judged with one answer. */
  const runOnce = (said: Answer | string, session = modelSession(), env = {}) =>
    judged({ turns: [says(said)], sessions: [session], env }).run();
  return { judged, runOnce };
}
