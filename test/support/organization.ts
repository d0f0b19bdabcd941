import { createHash } from "node:crypto";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createExplorer } from "../../src/agents/explorer/explorer.ts";
import { createModelAgent } from "../../src/agents/llm/llm.ts";
import { firstIdOf, timeOfId } from "../../src/db/rows.ts";
import { exportOrg } from "../../src/exchange/export.ts";
import { createPrompt } from "../../src/prompts/prompts.ts";
import { pausedReason } from "../../src/prompts/warnings.ts";
import { createProvider } from "../../src/providers/providers.ts";
import { requestEval } from "../../src/runs/requests.ts";
import { clock } from "../truth/clock.ts";
import type { DocsSite } from "../truth/docs-site.ts";
import { answerFrom } from "../truth/server.ts";
import { testApp } from "./app.ts";
import { serveFakeModel } from "./fake-model.ts";
import { modelKey } from "./model-runs.ts";
import {
  answerOfProduct,
  historyDays,
  listedDays,
  type Plan,
  planOrganization,
  type State,
  siteOf,
  statesOf,
  turnsOf,
} from "./organization-plan.ts";
import { randomOf } from "./random.ts";

const dayMs = 86_400_000;
const quarterMs = 900_000;
const model = "openai-compatible/scripted";
/** Prompts whose runs fail. */
export const faults = { slow: "Takes too long", down: "Site is down" };

/** A prompt whose score changed. `path`: of the page that it is about. */
export type PlantedChange = {
  promptId: string;
  title: string;
  what: string;
  kind: "fell" | "rose";
  at: number;
  path: string;
};
/** A prompt with what was recorded for each of its states: IDs of evaluations. */
type Recorded = { plan: Plan; promptId: string; evaluations: { state: State; id: string }[] };

/**
 * An export of an organization with 44 prompts against as many generated docs sites, and a history of 60 days until `until`. Each session was run once
 * by an agent over HTTP; the history repeats them, drawn with `seed`. `planted`: the changes of the last 30 days that are large enough to be listed.
 */
export async function recordOrganization({ seed = 1, until }: { seed?: number; until: number }) {
  const plans = planOrganization(seed);
  const states = new Map<Plan, State>(plans.map((plan) => [plan, statesOf(plan)[0] as State]));
  const stateOf = (plan: Plan) => states.get(plan) as State;
  const serve = (answer: (request: Request) => Response | Promise<Response>) => {
    const server = Bun.serve({ hostname: "127.0.0.1", port: 0, fetch: answer });
    return { url: server.url.origin, stop: () => void server.stop(true) };
  };
  const fake = serveFakeModel();
  const down = serve(() => new Response());
  down.stop();
  const version = { current: "2.1.0" };
  const beganAt = Date.now() - clock.now();
  const llm = createModelAgent({ version: "" });
  const app = testApp({
    agents: {
      explorer: createExplorer({ version: "1.4.0" }),
      llm: {
        ...llm,
        describe: () => ({ ...llm.describe(), version: version.current }),
        run: (task, context) => createModelAgent({ version: version.current }).run(task, context),
      },
    },
    // A machine that is busy doesn't make pages slow.
    now: () => beganAt + clock.now(),
    monotonicNow: clock.now,
    env: {
      OPENAI_COMPATIBLE_BASE_URL: fake.baseUrls["openai-compatible"],
      OPENAI_COMPATIBLE_API_KEY: modelKey,
      EVALD_AGENT_MODEL: model,
      EVALD_ALLOW_PRIVATE: "127.0.0.1",
      EVALD_MODEL_PRICES: JSON.stringify({ [model]: { in: 10, out: 100, cached: 1 } }),
      EVALD_CONCURRENCY: "4",
    },
  });
  const { ctx } = app.service;
  const servers: { stop(): void }[] = [];
  const recorded = plans.map((plan): Recorded & { docs: string; api: string } => {
    const api = serve((request) => answerOfProduct(plan, stateOf(plan), request));
    const docs = serve((request) => {
      const { site } = siteOf(plan, stateOf(plan));
      // The samples of a model agent's docs lead to its product.
      if (plan.agent === "llm") for (const server of site.api.servers) replaceInSamples(site, server.url, api.url);
      return answerFrom(site, request);
    });
    servers.push(docs, api);
    const { site } = siteOf(plan, stateOf(plan));
    const provider = createProvider(ctx, app.a.org, {
      ...{ name: `${site.product} ${plan.seed}`, docsUrl: `${docs.url}${startOf(plan)}`, productUrl: api.url },
    });
    const { id: promptId } = createPrompt(ctx, app.a.org, {
      ...{ title: plan.title, text: site.goal, endGoal: site.goal, targetProviderId: provider.id, agent: plan.agent },
      tags: [plan.agent === "llm" ? "models" : "docs"],
    });
    return { plan, promptId, evaluations: [], docs: docs.url, api: api.url };
  });
  const evaluate = async (promptId: string) =>
    (await requestEval(ctx, app.a.org, promptId, { urlMap: {}, trigger: "schedule" })).evalRequestId;

  // The sites of all prompts change together, so that their sessions run beside each other.
  const explored = recorded.filter(({ plan }) => plan.agent === "explorer");
  for (let nth = 0; nth < 4; nth++) {
    for (const { plan, promptId, evaluations } of explored) {
      const state = statesOf(plan)[nth];
      if (state === undefined) continue;
      states.set(plan, state);
      evaluations.push({ state, id: await evaluate(promptId) });
    }
    await app.runJobs();
  }
  for (let nth = 0; nth < 8; nth++)
    for (const { plan, promptId, evaluations, docs, api } of recorded.filter(({ plan }) => plan.agent === "llm")) {
      const state = statesOf(plan)[nth];
      if (state === undefined) continue;
      states.set(plan, state);
      version.current = plan.event?.what === "agent_version" && state.isAfter ? "2.2.0" : "2.1.0";
      fake.add("scripted", { turns: turnsOf(plan, state, docs, api) });
      evaluations.push({ state, id: await evaluate(promptId) });
      await app.runJobs();
    }
  const failing: { promptId: string; id: string; title: string }[] = [];
  fake.add("scripted", { turns: [{ silent: true }] });
  for (const [title, agent, more] of [
    [faults.slow, "llm", { limits: { wallClockSeconds: 1 } }],
    [faults.down, "explorer", { frequency: "daily" }],
  ] as const) {
    const { id: promptId } = createPrompt(ctx, app.a.org, { title, agent, text: `${title}. ${down.url}/`, ...more });
    failing.push({ promptId, title, id: await evaluate(promptId) });
  }
  await app.runJobs();

  for (const server of servers) server.stop();
  fake.stop();
  const lines = [...exportOrg(ctx, app.a.org, {})].join("").trimEnd().split("\n");
  await app.service.stop(0);

  const folder = mkdtempSync(join(tmpdir(), "evald-organization-"));
  const file = join(folder, "organization.jsonl");
  const history = repeat(lines, { seed, beganAt, until, recorded, failing });
  writeFileSync(file, history.text);
  const planted = recorded.flatMap(({ plan, promptId }): PlantedChange[] => {
    const { event, title } = plan;
    if (event === null || (event.kind !== "fell" && event.kind !== "rose")) return [];
    const at = until - (historyDays - event.day) * dayMs;
    if (at < until - listedDays * dayMs) return [];
    const path = siteOf(plan, { ...stateOf(plan), isAfter: true }).path ?? "";
    return [{ promptId: history.idOf(promptId), title, what: event.what, kind: event.kind, at, path }];
  });
  return {
    file,
    planted,
    plans: recorded.map(({ plan, promptId }) => ({ ...plan, promptId: history.idOf(promptId) })),
    failing: failing.map(({ promptId, title }) => ({ title, promptId: history.idOf(promptId) })),
    sessions: recorded.reduce((sum, { evaluations }) => sum + evaluations.length, 0),
    remove: () => rmSync(folder, { recursive: true }),
  };
}

function replaceInSamples(site: DocsSite, from: string, to: string): void {
  for (const { sections } of site.pages.values())
    for (const block of sections.flatMap(({ blocks }) => blocks))
      if (block.kind === "code") block.code = block.code.replaceAll(from, to);
}

const startOf = (plan: Plan): string => {
  const { markup } = siteOf(plan, statesOf(plan)[0] as State).site;
  return { docusaurus: "/docs/", mkdocs: "/guide/", markdown: "/docs/index.md" }[markup as string] ?? "/";
};

type Row = Record<string, unknown>;
type Parsed = { type: string; row: Row; text: string };

const uuids = /[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}/g;
const times = /(?<=[:[,])1\d{12}(?=[,}\]])/g;
const recordingMs = 600_000;

/** An export with the sessions of another one, repeated over the history. */
function repeat(
  [header = "", ...lines]: string[],
  {
    seed,
    beganAt,
    until,
    recorded,
    failing,
  }: {
    seed: number;
    beganAt: number;
    until: number;
    recorded: Recorded[];
    failing: { promptId: string; id: string; title: string }[];
  },
) {
  const random = randomOf(seed * 17 + 3);
  const startedAt = until - historyDays * dayMs;
  const parsed = lines.slice(0, -1).map((text): Parsed => ({ ...JSON.parse(text), text }));
  const setUp = parsed.filter(({ type }) => ["organization", "provider", "prompt"].includes(type));
  const shiftId = (id: string, byMs: number) => firstIdOf(timeOfId(id) + byMs).slice(0, 13) + id.slice(13);
  const fixed = new Map(
    setUp.flatMap(({ row: { id } }) =>
      typeof id === "string" ? [[id, shiftId(id, startedAt - beganAt)] as const] : [],
    ),
  );
  const idOf = (id: string) => fixed.get(id) ?? id;
  let slugs = 0;
  const move = (text: string, byMs: number, ids: Map<string, string> = new Map()) =>
    text
      .replace(uuids, (id) => ids.get(id) ?? fixed.get(id) ?? shiftId(id, byMs))
      .replace(times, (at) =>
        Number(at) >= beganAt && Number(at) < beganAt + recordingMs ? `${Number(at) + byMs}` : at,
      );
  const bundles = new Map<string, { run: Row; texts: string[] }>();
  let bundle: { run: Row; texts: string[] } | null = null;
  for (const { type, row, text } of parsed) {
    if (type === "run") {
      bundle = { run: row, texts: [] };
      bundles.set(String(row.evalRequestId), bundle);
    }
    bundle?.texts.push(text);
  }
  const evalRows = new Map(
    parsed.filter(({ type }) => type === "eval_request").map((each) => [String(each.row.id), each]),
  );
  const evaluations: { id: string; text: string }[] = [];
  const runs: { id: string; texts: string[] }[] = [];
  /** By the start of its 15 minutes. */
  const spentUsd = new Map<number, number>();

  /** Adds an evaluation at a time that consists of recorded ones. */
  function add(at: number, ids: string[]): string {
    const [first = ""] = ids;
    const evalRow = evalRows.get(first);
    if (!evalRow) throw new Error("nothing was recorded");
    const byMs = at - Number(evalRow.row.createdAt);
    const id = shiftId(first, byMs);
    evaluations.push({ id, text: move(evalRow.text, byMs) });
    for (const [i, recordedId] of ids.entries()) {
      const { run, texts } = bundles.get(recordedId) as { run: Row; texts: string[] };
      const runByMs = at + 10 + i * 1_000 - Number(run.createdAt);
      const own = new Map([[recordedId, id]]);
      const from = Math.floor(at / quarterMs) * quarterMs;
      if (Number(run.spentUsd) > 0) spentUsd.set(from, (spentUsd.get(from) ?? 0) + Number(run.spentUsd));
      runs.push({
        id: shiftId(String(run.id), runByMs),
        texts: texts.map((text) =>
          move(text, runByMs, own).replace(
            /("slug":"[a-z0-9-]+-)[0-9a-f]{8}"/,
            (_, name) => `${name}${(++slugs).toString(16).padStart(8, "0")}"`,
          ),
        ),
      });
    }
    return id;
  }

  for (const [nth, { plan, evaluations: of }] of recorded.entries()) {
    for (let day = 0; day < historyDays; day += plan.everyDays) {
      const isAfter = plan.event !== null && day >= plan.event.day;
      const draw = (): string => {
        const isEdited = random() < plan.editedShare;
        const wayTotal = Object.values(plan.shares).reduce((sum, share) => sum + share, 0);
        const drawn = random() * wayTotal;
        const sharesUpTo = (n: number) =>
          Object.values(plan.shares)
            .slice(0, n)
            .reduce((sum, share) => sum + share, 0);
        const way = Object.keys(plan.shares).find((_, n) => drawn < sharesUpTo(n + 1));
        const fits = of.filter(({ state }) => state.isAfter === isAfter);
        return (
          (
            fits.find(({ state }) => (plan.agent === "llm" ? state.way === way : state.isEdited === isEdited)) ??
            fits[0]
          )?.id ?? ""
        );
      };
      add(startedAt + day * dayMs + nth * 60_000, Array.from({ length: plan.runs }, draw));
    }
  }
  const others: string[] = [];
  for (const { promptId, id, title } of failing)
    for (let day = historyDays - 5; day < historyDays; day++) {
      const at = startedAt + day * dayMs + 3 * 3_600_000;
      const evalRequestId = add(at, [id]);
      if (title !== faults.down) continue;
      const scheduled = { promptId: idOf(promptId), scheduledAt: at, createdAt: at };
      others.push(toLine("scheduled_evaluation", { ...scheduled, outcome: "ran", evalRequestId, reason: null }));
      if (day === historyDays - 1)
        others.push(
          toLine("scheduled_evaluation", {
            ...scheduled,
            scheduledAt: at + 3_600_000,
            createdAt: at + 3_600_000,
            outcome: "failed",
            evalRequestId: null,
            reason: pausedReason,
          }),
        );
    }
  const down = idOf(failing.find(({ title }) => title === faults.down)?.promptId ?? "");
  const all = [
    ...setUp.map(({ type, row, text }) => {
      const moved = move(text, startedAt - beganAt);
      return type === "prompt" && idOf(String(row.id)) === down
        ? moved.replace('"status":"active"', '"status":"paused"')
        : moved;
    }),
    ...evaluations.sort((a, b) => (a.id < b.id ? -1 : 1)).map(({ text }) => text),
    ...others,
    ...[...spentUsd].map(([from, usd]) => toLine("spending", { from, usd, estimatedUsd: 0, unpricedCalls: 0 })),
    ...runs.sort((a, b) => (a.id < b.id ? -1 : 1)).flatMap(({ texts }) => texts),
  ].map((line) => `${line}\n`);
  const body = all.join("");
  const end = { type: "end", rows: all.length, sha256: createHash("sha256").update(body).digest("hex") };
  return { text: `${header}\n${body}${JSON.stringify(end)}\n`, idOf };
}

const toLine = (type: string, row: Row) => JSON.stringify({ type, row });
