import type { Context, OrgId } from "../context.ts";
import { parseShell } from "../grading/actions/shell.ts";
import { count } from "../grading/text.ts";
import { countReport, storeReport } from "./reports.ts";
import type { FrictionReport } from "./schema.ts";
import type { FieldSessionCall, FieldSessionInput, ReceivedFieldSession } from "./session-schema.ts";

/** How many places one session can report. */
const maxPlaces = 20;

/**
 * Turns the failed calls of a session into reports of friction, one for each place and category. The session itself is not stored. A session counts
 * as one report of the key. Throws rate_limited as `reportFriction` does.
 */
export function reportSession(
  ctx: Context,
  org: OrgId,
  keyId: string,
  { agent, calls }: FieldSessionInput,
): ReceivedFieldSession {
  countReport(ctx, keyId);
  const failedCalls = calls.filter(({ ok }) => ok === false);
  const places = Map.groupBy(failedCalls, (call) => `${categoryOf(call)} ${placeOf(call)}`);
  const reports = [...places.values()].slice(0, maxPlaces).map((callsOfPlace) => toReport(callsOfPlace, agent));
  return { reports: reports.map((report) => storeReport(ctx, org, report).id) };
}

function toReport(calls: FieldSessionCall[], agent: string): FrictionReport {
  const [call] = calls as [FieldSessionCall];
  const times = calls.length === 1 ? "" : ` (${count(calls.length, "time")})`;
  return {
    where: placeOf(call),
    tried: `${call.input}${times}`,
    happened: call.text || (call.exitCode === null ? "The call failed." : `Exit code ${call.exitCode}`),
    category: categoryOf(call),
    agent,
  };
}

/** The URL of the call, or else its program with the subcommand. */
function placeOf({ tool, input }: FieldSessionCall): string {
  const url = /https?:\/\/[^\s"'<>]+/.exec(input)?.[0];
  if (url !== undefined || tool !== "run_command") return url ?? input;
  const words = parseShell(input)[0]?.words ?? [];
  const [program = input, ...others] = words.filter((word) => !word.startsWith("-"));
  return [program, ...others.slice(0, 1)].join(" ");
}

function categoryOf({ tool, text }: FieldSessionCall): NonNullable<FrictionReport["category"]> {
  const result = text ?? "";
  if (/\b40[13]\b|unauthori[sz]ed|forbidden|not logged in|authentication/i.test(result)) return "auth";
  if (tool === "fetch_page" && /\b(?:404|410)\b|not found/i.test(result)) return "missing_docs";
  return "other";
}
