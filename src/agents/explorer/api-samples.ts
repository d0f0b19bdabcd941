import type { Check } from "../agent.ts";
import type { CodeSample } from "../page.ts";
import { type ApiDescription, judgeCall } from "./api-contract.ts";
import type { HttpCall } from "./http-call.ts";
import { callsOf } from "./http-calls.ts";
import { gap } from "./literals.ts";
import { cut, type ReadPage, type Session, type Steps, toCheck, useTool } from "./session.ts";

/** A call of a described API. `message` says how it violates the description, "" if it doesn't. */
type Judged = { call: HttpCall; sample: CodeSample; message: string; contract: string };

/** Checks the API calls in samples against the API descriptions of the docs. */
export async function* checkApiSamples(session: Session, pages: ReadPage[], contracts: ApiDescription[]): Steps {
  if (contracts.length === 0) return;
  for (const page of pages.filter(({ problem, samples }) => problem === null && samples.length > 0)) {
    const judged: Judged[] = [];
    for (const sample of page.samples)
      for (const call of await callsOf(sample)) judged.push(...judge(contracts, sample, call));
    if (judged.length === 0) continue;
    yield* useTool(session, "check_api_samples", { url: page.url }, async () => {
      const bad = judged.filter(({ message }) => message !== "");
      const good = judged.length - bad.length;
      const checks = bad.map((each) => failureOf(page, each));
      if (good > 0) checks.push(passOf(page, good));
      return {
        ok: true,
        output: { url: page.url, calls: judged.length, contradictions: bad.length },
        checks,
        value: undefined,
      };
    });
  }
}

const passOf = (page: ReadPage, count: number): Check =>
  toCheck({
    id: "sample-matches-api",
    group: "sample",
    status: "pass",
    weight: count,
    subject: page.url,
    message: `${count} ${count === 1 ? "call" : "calls"} on this page match the API description`,
  });

const failureOf = (page: ReadPage, { call: { method, url, line }, sample, message, contract }: Judged): Check =>
  toCheck({
    id: "sample-matches-api",
    group: "sample",
    status: "fail",
    url: page.url,
    line: sample.line + 1 + line,
    subject: `${page.url}#${method} ${shownPath(url)}`,
    message: `${method} ${shownPath(url)}: ${message} (${contract})`,
    fix: "Fix the sample or the API description, whichever is wrong.",
    quote: cut(sample.code.trim(), 300),
  });

const shownPath = ({ pathname }: URL) => pathname.replaceAll(encodeURIComponent(gap), "…");

/** What the descriptions say of a call: one that it matches, else the first that it violates, else nothing. */
function judge(contracts: ApiDescription[], sample: CodeSample, call: HttpCall): Judged[] {
  const verdicts = contracts.flatMap((description) => {
    const message = judgeCall(description, call);
    return message === null ? [] : [{ call, sample, message, contract: description.url }];
  });
  const verdict = verdicts.find(({ message }) => message === "") ?? verdicts[0];
  return verdict ? [verdict] : [];
}
