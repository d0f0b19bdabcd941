import type { AgentEvent } from "../agent.ts";
import { asksForLogin, asksQuestion } from "../endings.ts";
import { textsOf } from "./printed.ts";
import type { ModelRecord } from "./record.ts";
import type { Wait } from "./session-ending.ts";
import type { SessionReporter } from "./session-reporter.ts";

const checkMs = 250;
/**
 * An agent that has asked something and then stays silent this long counts as waiting for an answer. If this share of the idle limit is shorter, it
 * applies instead.
 */
const maxWaitMs = 20_000;
const idleShare = 0.25;
/** After this many vain attempts to shorten its conversation, an agent is stopped. Otherwise it would go on until the run reaches a limit. */
const maxOverflows = 4;

/**
 * Watches an agent that prints something and then does nothing. `waits` resolves when the agent waits for a login or an answer, because nobody gives
 * them. It also resolves when the agent tries in vain again and again to shorten its conversation. Anything else that the agent printed is reported:
 * its session may end as idle, and the text may say why.
 */
export function watchSilence(
  reporter: SessionReporter,
  record: ModelRecord,
  idleMs: number,
  send: (event: AgentEvent) => void,
) {
  const waits = Promise.withResolvers<Wait>();
  const waitMs = Math.min(maxWaitMs, idleShare * idleMs);
  let lastState = "";
  let silentSince = performance.now();
  let reportedText = "";
  const check = () => {
    if (record.overflowCount >= maxOverflows) waits.resolve("context_overflow");
    const { stdout, stderr } = textsOf(reporter.printed);
    const isBusy = record.callsInProgress > 0 || reporter.openCalls.size > 0;
    const state = `${reporter.eventCount} ${record.callCount} ${isBusy} ${stdout} ${stderr}`;
    if (state !== lastState) silentSince = performance.now();
    lastState = state;
    const text = [stdout, stderr].filter(Boolean).join("\n");
    if (isBusy || text === "" || text === reportedText || performance.now() - silentSince < waitMs) return;
    reportedText = text;
    if (asksForLogin(text)) waits.resolve("login_needed");
    else if (asksQuestion(stdout) || asksQuestion(stderr)) waits.resolve("question");
    else send({ type: "milestone", name: "agent_printed", detail: { text } });
  };
  const timer = setInterval(check, checkMs);
  return { waits: waits.promise, stop: () => clearInterval(timer) };
}
