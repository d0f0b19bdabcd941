import type { Part } from "./dimensions.ts";
import type { Facts, Failure } from "./facts.ts";
import { fallingLine, table } from "./methodology.ts";
import { count } from "./words.ts";

/** What became of each error: the next call of the same tool that worked, with or without a look in the docs before it. */
export function recovery(facts: Facts): Part[] {
  const { fromMessage, afterDocs, notAtAll } = table.recovery;
  const part = { name: "Recovery", weight: 1 };
  const fates = facts.failures.map((failure) => fateOf(failure, facts));
  if (fates.length === 0) return [{ ...part, score: null, text: "" }];
  const alone = fates.filter((fate) => fate === fromMessage).length;
  const withDocs = fates.filter((fate) => fate === afterDocs).length;
  const text = `of ${count(fates.length, "error")}, ${alone} recovered from the message alone (${fromMessage} each), ${withDocs} after a look in the docs (${afterDocs}), ${fates.length - alone - withDocs} not (${notAtAll}); 100 if all at once, 0 if none`;
  return [{ ...part, score: fates.reduce((sum, fate) => sum + fate, 0) / fates.length, text }];
}

function fateOf(failure: Failure, facts: Facts): number {
  const at = failure.seqs[0]!;
  const tool = facts.calls.find((call) => call.id === failure.id)?.tool ?? failure.tool;
  const mended = facts.results.find((result) => result.seq > at && result.ok && result.tool === tool);
  if (mended === undefined) return table.recovery.notAtAll;
  const call = facts.calls.find((each) => each.id === mended.id)?.seq ?? mended.seq;
  const looked = facts.pages.some((page) => page.seq > at && page.seq < call);
  return looked ? table.recovery.afterDocs : table.recovery.fromMessage;
}

export function autonomy(facts: Facts): Part[] {
  const zeroAt = table.autonomy.zeroAtInterruptions;
  const times = facts.interruptions.length;
  const text = `a person was needed ${count(times, "time")} (100 at none, 0 at ${zeroAt} or more)`;
  return [
    { name: "Interruptions", weight: 1, score: facts.calls.length === 0 ? null : fallingLine(times, zeroAt), text },
  ];
}
