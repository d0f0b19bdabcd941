import type { LanguageModelV4, LanguageModelV4Message } from "@ai-sdk/provider";
import { type Agent, type AgentContext, type AgentEvent, type AgentResources, toAgentFailure } from "../agent.ts";
import { createStartReporter, startCpuMeter, toShortage } from "../cpu-meter.ts";
import { type EndingName, endings } from "../endings.ts";
import { checkGoal, decideEnding, type Ending } from "../goal-checks.ts";
import { createReader } from "../reader.ts";
import { createRelayOpener } from "../relay/relay-opener.ts";
import type { PreparedWorkspace } from "../sandbox/prepare-workspace.ts";
import { mountWorkspace } from "../sandbox/workspace.ts";
import type { Task } from "../task.ts";
import { openWorkspaceDiff, reportWorkspaceDiff, setUpWorkspace } from "../workspace-setup.ts";
import { browserTools, type OpenRelay } from "./browser.ts";
import { createChannel } from "./channel.ts";
import { defaultMaxChars, findSmallerLimit, removeOldResults } from "./context-window.ts";
import { skillsFolder, toFirstMessage, toInstructions } from "./instructions.ts";
import { toModel } from "./providers.ts";
import { createReportTools } from "./self-tools.ts";
import { pauseAfter, type StepEnd, takeStep } from "./step.ts";
import { createToolbox, type Toolbox, type ToolSpec } from "./tool.ts";
import { webTools } from "./web.ts";
import { workspaceTools } from "./workspace.ts";

/** Consecutive turns without a tool call after which the run ends. */
const maxIdleTurns = 3;
/** Number of consecutive failures that ends the run. Failures of the provider end it earlier, in the gateway. */
const maxFailures = 8;
/** Names of limits in messages to the model. */
const limitNames: Record<string, string> = {
  model_calls: "its model calls",
  model_tokens: "its tokens",
  model_cost: "its money",
  wall_clock: "its time",
  tool_calls: "its tool calls",
  requests: "its requests",
  bytes_out: "its upload limit",
  workspace_bytes: "the space in /workspace",
  memory: "its memory",
  processes: "its processes",
};
const maxTextChars = 16_000;
/** Tools that can change the workspace. */
const writingTools = new Set(["run_command", "write_file"]);

/**
 * The agent with a model. It reads the docs, runs commands in a sandbox and calls the product until it calls `finish`,
 * reaches a limit, or stops calling tools. `context.resources` describes its model and sandbox.
 */
export function createModelAgent({ version }: { version: string }): Agent {
  const description = { id: "llm", version, model: null, kind: "model" } as const;
  return {
    describe: () => description,
    preflight: () => [],
    run(task, context) {
      const channel = createChannel<AgentEvent>();
      const work = async () => {
        await using mounted = await mountWorkspace(task, context);
        await runSession(version, task, mounted.context, channel.push);
      };
      work().then(channel.end, channel.fail);
      return channel.items;
    },
  };
}

async function runSession(
  version: string,
  task: Task,
  context: AgentContext,
  report: (event: AgentEvent) => void,
): Promise<void> {
  const { resources, signal } = context;
  if (!resources) throw toAgentFailure("unusable", "the agent was started without a model");
  const { browser, model: modelAccess } = resources;
  const sandbox = "workspace" in resources.sandbox ? resources.sandbox : null;
  const progress: Progress = { calls: 0, hasWritten: false, finishEnding: null, nearLimits: new Set() };
  const reader = createReader(task);
  const relayRun = { task, reader, report, now: context.now };
  await using relay = sandbox && createRelayOpener(sandbox, relayRun);
  // The browser itself reports the pages that it opens.
  const openBrowserRelay: OpenRelay | null =
    sandbox &&
    ((egress, findCurrentCallId) =>
      createRelayOpener({ ...sandbox, egress }, { ...relayRun, report: () => {}, findCurrentCallId }));
  await using browserTool =
    "program" in browser
      ? browserTools(task, { ...resources, browser }, { signal, openRelay: openBrowserRelay })
      : null;
  const ownTools: Record<string, ToolSpec> = {
    ...webTools(task, resources, context, reader),
    ...(sandbox && relay ? workspaceTools(sandbox.workspace, relay.open, task) : {}),
    ...browserTool?.tools,
    ...createReportTools((ending) => {
      progress.finishEnding = { ...ending, ending: "finished" };
    }),
  };
  const toolNames = Object.keys(ownTools);
  using meter = startCpuMeter();
  const missing = listMissing(resources);
  report(toStartedEvent(version, task, resources, { tools: toolNames, missing }));

  if (!sandbox && task.workspace)
    throw toAgentFailure("unusable", `the workspace can't be set up: ${missing.join("; ")}`, {
      code: "sandbox_unavailable",
    });
  let lastId = 0;
  const nextId = () => `t${++lastId}`;
  const session = { task, context, nextId, report };
  const prepared = sandbox && (await setUpWorkspace(session, sandbox, { contextFile: "AGENTS.md", skillsFolder }));
  const { skills = [] } = prepared ?? {};
  await using mcp = sandbox && relay && (await openMcp({ task, sandbox, openRelay: relay.open, version, signal }));
  if (prepared) report(toOfferedEvent(prepared, mcp?.available ?? []));
  // Checks that pass before the agent starts aren't its achievement.
  await checkGoal(session, "before");
  const countAndReport = (event: AgentEvent) => {
    if (event.type === "tool_call") {
      progress.calls++;
      progress.hasWritten ||= writingTools.has(event.tool);
    }
    report(event);
  };
  const instructions = toInstructions(task, toolNames, [...missing, ...(mcp?.unavailable ?? [])]);
  const conversation = {
    model: await toModel(modelAccess, (limit) => progress.nearLimits.add(limitNames[limit] ?? limit)),
    modelId: modelAccess.id,
    toolbox: await createToolbox({ ...ownTools, ...mcp?.tools }, { nextId, signal, report: countAndReport }),
    system: { role: "system" as const, content: instructions },
    messages: [fromUser(toFirstMessage(task, skills))],
    progress,
  };
  const reportStart = createStartReporter({ meter, context, report });
  const ending = await converse(conversation, { reportStart, report: countAndReport, signal });
  const shortage = toShortage(meter.read());
  if (shortage) report(shortage);
  if (sandbox && progress.hasWritten) await reportWorkspaceDiff(session, openWorkspaceDiff(session, sandbox));
  // Success checks may have secrets, so everything that the agent started must have ended before.
  await mcp?.[Symbol.asyncDispose]();
  report({ type: "end", ...(await decideEnding(ending, session)) });
}

function toStartedEvent(
  version: string,
  task: Task,
  { model }: AgentResources,
  tools: { tools: string[]; missing: string[] },
): AgentEvent {
  const goal = (task.endGoal ?? task.text).slice(0, 2000);
  const agent = { agent: "llm", version, kind: "model" as const, model: model.id };
  const assignment = { goal, starts: task.startUrls, product: task.productUrl };
  return { type: "milestone", name: "started", detail: { ...agent, ...assignment, ...tools } };
}

const toOfferedEvent = ({ skills, instructionChars }: PreparedWorkspace, mcpServers: string[]): AgentEvent => ({
  type: "milestone",
  name: "context_offered",
  detail: { instructions: instructionChars > 0, skills: skills.map(({ name }) => name), mcpServers },
});

/** What this machine lacks for the agent, each with the reason. */
const listMissing = ({ sandbox, browser }: AgentResources): string[] => [
  ...("missing" in sandbox ? [`commands and files (${sandbox.missing})`] : []),
  ...("missing" in browser ? [`a browser (${browser.missing})`] : []),
];

/** What the model has done so far. */
type Progress = {
  /** Tool calls. */
  calls: number;
  hasWritten: boolean;
  /** What it said when it called `finish`; null: it has not. */
  finishEnding: Ending | null;
  /** Limits that are near, by the names that messages to it have. */
  nearLimits: Set<string>;
};

type Conversation = {
  model: LanguageModelV4;
  modelId: string;
  toolbox: Toolbox;
  system: LanguageModelV4Message;
  /** All other messages. Each step adds some. */
  messages: LanguageModelV4Message[];
  progress: Progress;
};

type ConversationHooks = { reportStart: () => void; report: (event: AgentEvent) => void; signal: AbortSignal };

/** Calls the model again and again until the session ends. Throws an AgentFailure if it can't go on, and the signal's reason. */
async function converse(
  { model, modelId, toolbox, system, messages, progress }: Conversation,
  { reportStart, report, signal }: ConversationHooks,
): Promise<Ending> {
  const announcedLimits = new Set<string>();
  let maxChars = defaultMaxChars;
  let failures = 0;
  let idleTurns = 0;
  for (;;) {
    signal.throwIfAborted();
    reportStart();
    const newLimits = progress.nearLimits.difference(announcedLimits);
    if (newLimits.size > 0) messages.push(fromUser(toLimitWarning([...newLimits])));
    for (const limit of newLimits) announcedLimits.add(limit);
    removeOldResults(messages, maxChars);
    const prompt = [system, ...withCachePoint(messages)];
    const step: StepEnd = await takeStep(model, prompt, { toolbox, report, signal, maxTextChars });
    if (step.kind === "done") {
      failures = 0;
      messages.push(...step.messages);
      idleTurns = step.calls > 0 ? 0 : idleTurns + 1;
      if (progress.finishEnding) return progress.finishEnding;
      if (idleTurns >= maxIdleTurns) return toEnding("stopped", "The model stopped without calling finish.");
      if (idleTurns > 0)
        messages.push(fromUser("Continue with your tools, or call finish if you are done or cannot get any further."));
      continue;
    }
    if (step.kind === "stopped") return toEnding(step.ending, `${stopReasons[step.ending]} ${step.text}`);
    if (step.kind === "over_budget") {
      if (progress.calls === 0) throw toAgentFailure("run_limit", `${step.message} before any work was done`);
      return toEnding("run_limit", `The run reached a limit: ${step.message}.`);
    }
    if (step.ending === "context_overflow") {
      const smallerLimit = findSmallerLimit(messages);
      if (smallerLimit !== null) {
        maxChars = smallerLimit;
        continue;
      }
      if (progress.calls > 0)
        return toEnding(step.ending, `The conversation became too long for the model: ${step.message}.`);
    }
    const isFinal = endings[step.ending].failure.retry === "never";
    if (isFinal || ++failures >= maxFailures)
      throw toAgentFailure(step.ending, step.message, { code: step.code, subject: modelId });
    await pauseAfter(failures, step, signal);
  }
}

const toLimitWarning = (limits: string[]): string =>
  `The run has almost used up ${limits.join(" and ")}. Wrap up now and call finish.`;

/** The end of a session that did not reach the goal. */
const toEnding = (ending: EndingName, reason: string): Ending => ({
  outcome: "goal_not_met",
  reason: reason.trim(),
  ending,
});

const stopReasons = {
  refused: "The model refused to answer, or a content filter stopped it.",
  output_limit: "The answer of the model reached its maximum length.",
};

const fromUser = (text: string): LanguageModelV4Message => ({ role: "user", content: [{ type: "text", text }] });

/** null: the workspace names no MCP servers. */
async function openMcp(options: Parameters<typeof import("./mcp-tools.ts").openMcpTools>[0]) {
  if (Object.keys(options.task.workspace?.mcpServers ?? {}).length === 0) return null;
  const { openMcpTools } = await import("./mcp-tools.ts");
  return await openMcpTools(options);
}

/**
 * Anthropic caches only up to a marked message. Without the mark, the whole conversation would be billed in full at
 * every step.
 */
function withCachePoint(messages: LanguageModelV4Message[]): LanguageModelV4Message[] {
  const cacheControl = { type: "ephemeral" };
  return messages.map((message, i) =>
    i === messages.length - 1 ? { ...message, providerOptions: { anthropic: { cacheControl } } } : message,
  );
}
