import type { EvalResult } from "../../reports/repeats.ts";
import type { Report } from "../../reports/schema.ts";

/** `+3.2` with a true minus. */
export const signed = (change: number, words: (value: number) => string = String): string =>
  change === 0 ? "same" : `${change > 0 ? "+" : "−"}${words(Math.abs(change))}`;

/** A change, coloured by whether more is better. */
export const Change = ({
  change,
  isCost = false,
  words,
}: {
  change: number;
  isCost?: boolean;
  words?: (value: number) => string;
}) => <span class={change === 0 ? "muted" : change > 0 === isCost ? "worse" : "better"}>{signed(change, words)}</span>;

/** How far the score may be trusted: what the repeats came to, and where it lies against the baseline. */
export function Standing({ report: { baseline }, result }: { report: Report; result: EvalResult | null }) {
  return (
    <dl class="standing">
      {result && (
        <div>
          <dt>Repeats</dt>
          <dd>{resultWords(result)}</dd>
        </div>
      )}
      {baseline && (
        <div>
          <dt>{baseline.kind === "pinned" ? "Pinned baseline" : "Baseline"}</dt>
          <dd>
            {baseline.score === null ? (
              `not comparable: ${baseline.differences.join("; ")}`
            ) : (
              <>
                <Change change={baseline.score.change} /> against {baseline.score.mean}, the mean of {baseline.n} runs;{" "}
                {baseline.score.isUsual
                  ? `one more of them would lie between ${baseline.score.low} and ${baseline.score.high}, as this does`
                  : `19 of 20 more of them would lie between ${baseline.score.low} and ${baseline.score.high}, and this does not`}
              </>
            )}
          </dd>
        </div>
      )}
    </dl>
  );
}

function resultWords({ n, label, score, successRate, infraFailures, unfinished, smallestChange }: EvalResult): string {
  if (n < 2 || score === null || score.low === null)
    return `${label}: chance cannot be told from change${unfinished > 0 ? `; ${unfinished} to come` : ""}`;
  const parts = [`mean ${score.mean} (95 % from ${score.low} to ${score.high}) in ${n} runs`];
  if (successRate) parts.push(`goal reached in ${Math.round(successRate.value * successRate.of)} of ${successRate.of}`);
  if (infraFailures > 0) parts.push(`${infraFailures} could not be made`);
  if (unfinished > 0) parts.push(`${unfinished} to come`);
  if (smallestChange !== null) parts.push(`so many can show a change of ${smallestChange} points`);
  return parts.join("; ");
}
