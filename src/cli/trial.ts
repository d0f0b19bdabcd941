import type { Agent, AgentEvent } from "../agents/agent.ts";
import type { Preset } from "../agents/coding/preset.ts";
import { serveScriptedModel } from "../agents/coding/scripted-model.ts";
import { createOrg } from "../auth/orgs.ts";
import { toAllowRule } from "../config/allow-rules.ts";
import type { Config } from "../config/config.ts";
import type { ModelProvider } from "../config/model-settings.ts";
import { closeDb, openDb } from "../db/open.ts";
import { createCommandLog } from "../log.ts";
import { createPrompt } from "../prompts/prompts.ts";
import { findAgentOutput } from "../reports/artifacts.ts";
import { readSession } from "../reports/session-events.ts";
import { requestEval } from "../runs/requests.ts";
import { getRun } from "../runs/runs.ts";
import { createService } from "../service.ts";
import { findProblems, findSteps } from "./trial-diagnosis.ts";

type TriedAgent = { id: string; agent: Agent; preset: Preset; model?: string };

/** Models that the agents know. For an unknown model, an agent may offer other tools. */
const models: Record<ModelProvider, string> = {
  anthropic: "claude-opus-4-8",
  openai: "gpt-5.6-sol",
  google: "gemini-3.1-pro-preview",
  "openai-compatible": "qwen3-coder-plus",
};
const host = "docs.evald.test";
/** A program that does nothing for this long is most likely waiting for a person. */
const limits = { idleSeconds: 120 };
const key = "trial-key-of-no-value";
/** Long enough for programs that extract the main text of a page. */
const page = `<!doctype html><title>Trial</title><main><article><h1>Trial page</h1><p>The word of the day is heron.</p>${"<p>A heron is a bird with long legs that stands still at the edge of the water, waits for a fish to come near, and then catches it with its long bill.</p>".repeat(8)}</article></main>`;

/** Runs an agent against a scripted model and one page on this machine. Returns what its events show of each step, and the problems. */
export async function tryAgent(config: Config, { id, agent, preset, model }: TriedAgent) {
  const provider = Object.keys(preset.providers)[0] as ModelProvider;
  const site = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    fetch: () => new Response(page, { headers: { "content-type": "text/html" } }),
  });
  const siteUrl = site.url.origin;
  const scriptedModel = serveScriptedModel(`https://${host}/guide`);
  const modelBaseUrl = `${scriptedModel.url}/${provider === "google" ? "v1beta" : "v1"}`;
  const modelName = `${provider}/${model ?? models[provider]}`;
  const modelEndpoints = { ...config.modelEndpoints, [provider]: { key, baseUrl: modelBaseUrl } };
  const modelPrices = { ...config.modelPrices, [modelName]: { in: 0, out: 0, cached: 0 } };
  const db = openDb(":memory:");
  const service = createService({
    db,
    config: { ...config, modelEndpoints, modelPrices, judgeModels: [] },
    log: createCommandLog(config, [key]),
    agents: { [id]: agent },
    baseUrl: () => "http://127.0.0.1",
    alsoAllow: () => [toAllowRule(siteUrl)],
    backoffMs: () => 500,
  });
  try {
    const org = createOrg(service.ctx, "Trial").id;
    const text = `Read https://${host}/guide, run a command, and write a file.`;
    const prompt = createPrompt(service.ctx, org, { text, agent: id, model: modelName, limits });
    const urlMap = { [host]: siteUrl };
    const { runIds } = await requestEval(service.ctx, org, prompt.id, { urlMap, trigger: "cli" });
    const runId = runIds[0] as string;
    await service.start();
    while (getRun(service.ctx, org, runId).completedAt === null) await Bun.sleep(20);
    await service.stop(0);
    const { failureReason, attempt } = getRun(service.ctx, org, runId);
    const events = readSession(db, { orgId: org, runId, attempt });
    const trial = { events, requests: scriptedModel.requests(), preset, host, failureReason };
    return {
      failureReason,
      steps: findSteps(trial),
      problems: findProblems(trial),
      events,
      output: findAgentOutput(service.ctx, { runId, attempt }),
    };
  } finally {
    closeDb(db);
    scriptedModel.stop();
    await site.stop(true);
  }
}

/** An event in one line. */
export function describeEvent(event: AgentEvent): string {
  const { type, what } = summarizeEvent(event);
  return `${type}  ${what}`;
}

/** The type of an event, and its subject. */
export function summarizeEvent(event: AgentEvent): { type: string; what: string } {
  return { type: event.type.padEnd(12), what: contentOf(event).slice(0, 160).replace(/\s+/g, " ") };
}

function contentOf(event: AgentEvent): string {
  switch (event.type) {
    case "tool_call":
      return `${event.tool}${event.ownName ? ` (${event.ownName})` : ""} ${JSON.stringify(event.input)}`;
    case "tool_result": {
      const result = event.ok ? "ok" : "failed";
      return `${event.tool} ${event.ok === null ? "ended" : result} ${JSON.stringify(event.output)}`;
    }
    case "http":
      return `${event.method} ${event.url} ${event.status ?? event.error?.message}`;
    case "usage":
      return `${event.model}, ${event.inputTokens} tokens in, ${event.outputTokens} out`;
    case "milestone":
      return event.name ?? "unreadable milestone";
    default:
      if ("text" in event) return event.text;
      if ("message" in event) return event.message;
      return "reason" in event ? event.reason : "";
  }
}
