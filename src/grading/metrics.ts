import type { Facts } from "./facts.ts";
import type { Metrics } from "./grade.ts";
import { round1 } from "./methodology.ts";
import { count, dollars, duration, list, oneLine, sentence } from "./text.ts";

/** The metrics of a session: time, errors, tool calls, cost and interruptions, each with its text. */
export function metricsOf(facts: Facts): Metrics {
  return {
    ...time(facts),
    ...errors(facts),
    ...toolCalls(facts),
    ...cost(facts),
    interruptions: facts.interruptions.length,
  };
}

function time({ elapsedMs, taskRequests, checkRequests }: Facts) {
  if (elapsedMs === null) return { time: "unknown", timeDetail: "The session has no events.", timeSeconds: null };
  const describeRequests = (requests: { ms: number }[], purpose: string) => {
    const seconds = requests.reduce((sum, each) => sum + each.ms, 0) / 1000;
    return requests.length === 0 ? [] : [`${count(requests.length, "request")} ${purpose} took ${duration(seconds)}`];
  };
  const parts = [
    ...describeRequests(taskRequests, "on the path to the goal"),
    ...describeRequests(checkRequests, "to test the docs"),
  ];
  return {
    time: duration(elapsedMs / 1000),
    timeDetail: `From start to end${parts.length === 0 ? "" : `; ${list(parts)}`}.`,
    timeSeconds: round1(elapsedMs / 1000),
  };
}

function errors({ failures, results, taskRequests }: Facts) {
  const requests = failures.filter((each) => each.source === "request");
  const statuses = new Map<string, number>();
  for (const failure of requests) {
    const status = taskRequests.find((http) => http.seq === failure.seqs[0])?.status;
    const name = String(status ?? "without a response");
    statuses.set(name, (statuses.get(name) ?? 0) + 1);
  }
  const breakdown = [...statuses]
    .sort((a, b) => b[1] - a[1] || (a[0] < b[0] ? -1 : 1))
    .map(([name, n]) => `${n} × ${name}`);
  const tools = failures.filter((each) => each.source === "tool");
  const others = failures.filter((each) => each.source === "error");
  const parts: string[] = [];
  if (requests.length > 0)
    parts.push(`${count(requests.length, "request")} on the path to the goal failed (${breakdown.join(", ")})`);
  if (tools.length > 0) parts.push(`${count(tools.length, "tool call")} failed`);
  if (others.length > 0) parts.push(count(others.length, "other error"));
  const failureText = sentence(list(parts));
  const unknown = results.filter(({ ok }) => ok === null).length;
  const unknownText = unknown === 0 ? "" : `The agent does not say whether ${count(unknown, "tool call")} succeeded.`;
  return { errors: failures.length, errorsDetail: `${failureText} ${unknownText}`.trim() || "Nothing failed." };
}

function toolCalls({ calls }: Facts) {
  const byTool = Map.groupBy(calls, (call) => oneLine(call.tool, 60));
  const tools = [...byTool].map(([tool, toolCalls]) => ({ tool, n: toolCalls.length }));
  tools.sort((a, b) => b.n - a.n || (a.tool < b.tool ? -1 : 1));
  const breakdown = tools.map(({ tool, n }) => `${n} × ${tool}`).join(", ");
  return { toolCalls: calls.length, toolCallsDetail: calls.length === 0 ? "No tool calls." : `${breakdown}.` };
}

/** Difference between two costs, relative to the first, from which it is mentioned. */
const notableDifference = 0.05;

function cost({ kind, usage, claimedUsd }: Facts) {
  if (usage.length === 0)
    return kind === "rules"
      ? { cost: "$0.00", costDetail: "No model was used.", costUsd: 0 }
      : { cost: "unknown", costDetail: "The agent did not report its usage.", costUsd: null };
  const tokens = usage.reduce((sum, each) => sum + each.inputTokens + each.outputTokens, 0);
  const models = [...new Set(usage.map((each) => oneLine(each.model, 60)))].sort();
  const usageText = `${count(usage.length, "model call")} to ${list(models)}, ${count(tokens, "token")}`;
  const unpriced = usage.filter((each) => each.costUsd === null);
  if (unpriced.length > 0) return { cost: "unknown", costUsd: null, ...unknownCost(usage, unpriced.length, usageText) };
  const usd = usage.reduce((sum, each) => sum + each.costUsd!, 0);
  const differs = claimedUsd !== null && Math.abs(claimedUsd - usd) > notableDifference * usd;
  const claim = differs ? ` The agent itself reports ${dollars(claimedUsd)}.` : "";
  return { cost: dollars(usd), costDetail: `${usageText}.${claim}`, costUsd: Math.round(usd * 1e6) / 1e6 };
}

/**
 * What is known of the cost if `unpriced` of the calls have no cost. `estimatedUsd`: the cost with an estimate for each of these calls, as limits
 * count them.
 */
function unknownCost(usage: Facts["usage"], unpriced: number, usageText: string) {
  const usds = usage.map((each) => each.costUsd ?? each.estimate?.costUsd ?? null);
  if (usds.includes(null)) return { costDetail: `${usageText}; ${unpriced} of them have no known price.` };
  const estimatedUsd = Math.round(usds.reduce((sum: number, usd) => sum + (usd ?? 0), 0) * 1e6) / 1e6;
  const detail = `${unpriced} of them did not fully report their usage, with an estimate for which it is ${dollars(estimatedUsd)}`;
  return { costDetail: `${usageText}; ${detail}.`, estimatedUsd };
}
