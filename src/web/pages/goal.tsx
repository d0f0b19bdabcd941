import type { Report } from "../../reports/schema.ts";
import { judgeWords, metWords } from "../words.ts";
import { Proof } from "./figures.tsx";

type Props = { report: Report; session: string | null };

/** The end goal part by part, with what proves each, and who says so. `session`: the address of the page with its events, if they are there. */
export function Goal({ report: { judge }, session }: Props) {
  if (judge === null) return null;
  return (
    <section>
      <h2 id="goal">End goal</h2>
      {judge.parts.length > 0 && (
        <ol class="frictions">
          {judge.parts.map(({ text, met, events, quote, why }, i) => (
            <li key={text} id={`G${i + 1}`} class={`met-${met}`}>
              <h3>
                <span class="name">G{i + 1}</span> {text}
              </h3>
              <p class="meta">
                <span class="pill">{metWords[met]}</span>
                {events.length > 0 && <Proof events={events} session={session} />}
              </p>
              {quote && <blockquote>{quote}</blockquote>}
              {why && <p>{why}</p>}
            </li>
          ))}
        </ol>
      )}
      {judge.dropped.length > 0 && (
        <details>
          <summary>
            {judge.dropped.length} {judge.dropped.length === 1 ? "claim" : "claims"} of the judge left out: no event
            proves {judge.dropped.length === 1 ? "it" : "them"}
          </summary>
          <ul>
            {judge.dropped.map((claim) => (
              <li key={claim}>{claim}</li>
            ))}
          </ul>
        </details>
      )}
      {judge.notice && <p class="notice">{judge.notice}</p>}
      <p class="muted">{judgeWords(judge)}</p>
    </section>
  );
}
