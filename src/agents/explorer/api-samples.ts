import type { Check } from "../agent.ts";
import { type CodeSample, lineOfSample } from "../page.ts";
import { type ApiDescription, findProblems } from "./api-contract.ts";
import type { Problem } from "./api-schema.ts";
import type { HttpCall } from "./http-call.ts";
import { callsOf } from "./http-calls.ts";
import { unknownPart } from "./literals.ts";
import { cut, type ReadPage, type Session, type Steps, toCheck, useTool } from "./session.ts";

/** A call of a described API, with how it violates the description, if it does. */
type DescribedCall = { call: HttpCall; sample: CodeSample; problems: Problem[]; descriptionUrl: string };

/** Checks the API calls in samples against the API descriptions of the docs. */
export async function* checkApiSamples(session: Session, pages: ReadPage[], descriptions: ApiDescription[]): Steps {
  if (descriptions.length === 0) return;
  const checkedPages = pages.filter((page) => page.problem === null && !isAboutVersions(page));
  for (const page of checkedPages) {
    const calls: DescribedCall[] = [];
    for (const sample of page.samples)
      for (const call of await callsOf(sample)) calls.push(...findDescribedCall(descriptions, sample, call));
    if (calls.length === 0) continue;
    yield* useTool(session, "check_api_samples", { url: page.url }, async () => {
      const bad = calls.filter(({ problems }) => problems.length > 0);
      const good = calls.length - bad.length;
      const checks = bad.map((each) => failureOf(page, each));
      if (good > 0) checks.push(passOf(page, good));
      return {
        ok: true,
        output: { url: page.url, calls: calls.length, contradictions: bad.length },
        checks,
        value: undefined,
      };
    });
  }
}

/** `Releases`, `What's new in 2.0`, `Migration guide`, `Upgrading to v3`. */
const titlesAboutVersions = [
  /^(changes|releases|history)\b/i,
  /\b(changelog|release (notes|history)|version history|breaking changes|what.s new)\b/i,
  // The name of the site may follow.
  /\b(upgrad|migrat)\w*( guide)?\s*($|[|·•–—:]|- )/i,
  /\b(upgrad|migrat)\w*\b.*\b(version|v?\d)/i,
];

/** Whether a page says how versions differ. Its samples also show what is no longer right. */
export const isAboutVersions = ({ title }: ReadPage): boolean =>
  titlesAboutVersions.some((aboutVersions) => aboutVersions.test(title));

const passOf = (page: ReadPage, count: number): Check =>
  toCheck({
    id: "sample-matches-api",
    group: "sample",
    status: "pass",
    weight: count,
    subject: page.url,
    message: `${count} ${count === 1 ? "call" : "calls"} on this page match the API description`,
  });

const failureOf = (page: ReadPage, { call, sample, problems, descriptionUrl }: DescribedCall): Check =>
  toCheck({
    id: "sample-matches-api",
    group: "sample",
    status: "fail",
    url: page.url,
    line: lineOfSample(sample, lineOf(sample, call, problems[0]!)),
    subject: `${page.url}#${call.method} ${shownPath(call.url)}`,
    message: `${call.method} ${shownPath(call.url)}: ${problems.map(({ message }) => message).join("; ")} (${descriptionUrl})`,
    fix: "Fix the sample or the API description, whichever is wrong.",
    quote: cut(sample.code.trim(), 300),
  });

/** The line of a sample, from 1, with the first thing that is wrong with a call in it. */
function lineOf({ code }: CodeSample, { line }: HttpCall, { about }: Problem): number {
  const lines = code.split("\n");
  const word = new RegExp(`(?<![\\w-])${RegExp.escape(about)}(?![\\w-])`, "i");
  const at = about === "" ? -1 : lines.findIndex((text, index) => index >= line && word.test(text));
  return (at < 0 ? line : at) + 1;
}

const shownPath = ({ pathname }: URL) => pathname.replaceAll(encodeURIComponent(unknownPart), "…");

/** A call with the description that it matches or, if it matches none, the first one that it violates. Empty if the call belongs to another API. */
function findDescribedCall(descriptions: ApiDescription[], sample: CodeSample, call: HttpCall): DescribedCall[] {
  const candidates = descriptions.flatMap((description) => {
    const problems = findProblems(description, call);
    return problems === null ? [] : [{ call, sample, problems, descriptionUrl: description.url }];
  });
  const match = candidates.find(({ problems }) => problems.length === 0);
  return match ? [match] : candidates.slice(0, 1);
}
