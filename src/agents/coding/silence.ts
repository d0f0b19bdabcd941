import type { AgentEvent } from "../agent.ts";
import { asksForLogin, asksQuestion } from "../endings.ts";
import { textsOf } from "./printed.ts";
import type { ModelRecord } from "./record.ts";
import type { Wait } from "./session-ending.ts";
import type { SessionReporter } from "./session-reporter.ts";

const checkMs = 250;
/** Silence after which an agent that has asked something counts as waiting for an answer: this, or a smaller share of the idle limit. */
const maxWaitMs = 20_000;
const idleShare = 0.25;
/** After this many vain attempts to shorten its conversation, an agent is stopped: it would go on until the run reaches a limit. */
const maxOverflows = 4;

/**
 * Watches an agent that prints something and then does nothing. `waits` resolves when it waits for a login or for an answer, which nobody
 * gives, or when it shortens its conversation again and again without success. Anything else that it printed is reported: its session may end as idle,
 * and the text may say why.
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
