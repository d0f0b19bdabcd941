import { goalPartLabels } from "../../reports/labels.ts";
import type { Report } from "../../reports/schema.ts";
import { Proof } from "./figures.tsx";

type Props = { report: Report; session: string | null };

/** The parts of the end goal with the judge's evidence. `session`: URL of the session page; null if the events cannot be read. */
export function Goal({ report: { judge }, session }: Props) {
  if (judge === null) return null;
  return (
    <>
      <ol class="goal-parts">
        {judge.parts.map(({ text, met, events, quote, why }, i) => (
          <li key={text} id={`G${i + 1}`} class={`met-${met}`}>
            <details>
              <summary>
                <span class="name">G{i + 1}</span> {text} <strong>{goalPartLabels[met]}</strong>
              </summary>
              {why && <p>{why}</p>}
              {quote && <blockquote>{quote}</blockquote>}
            </details>
            {events.length > 0 && <Proof events={events} session={session} />}
          </li>
        ))}
      </ol>
      {judge.dropped.length > 0 && (
        <details>
          <summary>
            {judge.dropped.length} judge {judge.dropped.length === 1 ? "claim" : "claims"} dropped: no supporting event
          </summary>
          <ul>
            {judge.dropped.map((claim) => (
              <li key={claim}>{claim}</li>
            ))}
          </ul>
        </details>
      )}
      {judge.notice && <p class="notice">{judge.notice}</p>}
    </>
  );
}
