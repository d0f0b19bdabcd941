import { isRuleBased } from "../../agents/agent.ts";
import { capitalize, withSign } from "../../grading/text.ts";
import type { Report } from "../../reports/schema.ts";
import type { EvalResult } from "../../stats/repeats.ts";
import { Fact } from "./figures.tsx";

type ChangeProps = { change: number; isCost?: boolean; format?: (value: number) => string };

/** A change, colored by whether higher is better. */
export function Change({ change, isCost = false, format }: ChangeProps) {
  const isBetter = isCost ? change < 0 : change > 0;
  const color = isBetter ? "better" : "worse";
  return <span class={change === 0 ? "muted" : color}>{withSign(change, format)}</span>;
}

type SummaryProps = { report: Report; result: EvalResult | null };

/** How reliable the score is: the results of repeated runs, and the comparison with the baseline. */
export function BaselineSummary({ report: { baseline, agent }, result }: SummaryProps) {
  // All runs of a rule-based agent on the same pages have the same result.
  const isDeterministic = isRuleBased(agent.id) && (result?.n ?? 0) < 2;
  return (
    <dl class="baseline-summary">
      {result && !isDeterministic && <Fact name="Repeats">{resultText(result)}</Fact>}
      {baseline && (
        <div data-usual={baseline.score?.isUsual}>
          <dt>{baseline.kind === "pinned" ? "Pinned baseline" : "Baseline"}</dt>
          <dd>
            {baseline.score === null ? (
              `Not comparable: ${baseline.differences.join("; ")}`
            ) : (
              <>
                <Change change={baseline.score.change} /> vs. {baseline.score.mean}, the mean of {baseline.n} runs;{" "}
                {baseline.score.isUsual ? "within" : "outside"} the usual range ({rangeText(baseline.score)})
              </>
            )}
          </dd>
        </div>
      )}
    </dl>
  );
}

const rangeText = ({ low, high }: { low: number; high: number }): string =>
  low === high ? `always ${low}` : `${low}–${high}`;

function resultText({ n, label, score, successRate, infraFailures, unfinished, smallestChange }: EvalResult): string {
  if (n < 2 || score === null || score.low === null)
    return `${capitalize(label)}. Run it 4+ times to tell a real change from noise${unfinished > 0 ? `; ${unfinished} pending` : ""}.`;
  // If all results are the same, an interval and a detectable change would be misleading.
  const isSame = score.low === score.high;
  const parts = [
    isSame ? `${score.mean} in all ${n} runs` : `mean ${score.mean} (95% CI ${score.low}–${score.high}) over ${n} runs`,
  ];
  if (successRate)
    parts.push(`goal reached in ${Math.round(successRate.value * successRate.of)} of ${successRate.of} judged runs`);
  if (infraFailures > 0) parts.push(`${infraFailures} failed`);
  if (unfinished > 0) parts.push(`${unfinished} pending`);
  if (smallestChange !== null && !isSame) parts.push(`minimum detectable change ${smallestChange} points`);
  return parts.join("; ");
}
