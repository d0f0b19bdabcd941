import type { EventOf } from "./events.ts";
import type { UncheckedSamples } from "./grade.ts";
import { oneLine } from "./text.ts";

/** How many samples of a session weren't checked because their language can't be parsed, by language, most first. */
export function uncheckedSamplesOf(results: EventOf<"tool_result">[]): UncheckedSamples[] {
  const byPage = new Map<string, [string, number][]>();
  for (const { tool, output } of results)
    if (tool === "check_samples" && typeof output?.url === "string")
      byPage.set(output.url, Object.entries(output.notChecked ?? {}).filter(isCount));
  const counts = new Map<string, number>();
  for (const [label, samples] of [...byPage.values()].flat()) {
    const language = oneLine(label, 40);
    counts.set(language, (counts.get(language) ?? 0) + samples);
  }
  return [...counts]
    .map(([language, samples]) => ({ language, samples }))
    .sort((a, b) => b.samples - a.samples || (a.language < b.language ? -1 : 1));
}

const isCount = (entry: [string, unknown]): entry is [string, number] =>
  Number.isInteger(entry[1]) && Number(entry[1]) > 0;
