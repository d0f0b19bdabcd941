import { percent } from "../../grading/words.ts";
import type { Grading } from "../../reports/schema.ts";
import { outcomeWords, timeWords } from "../words.ts";
import { GradeMark, Wide } from "./figures.tsx";

/** `path`: the address of the report. `mayPin`: whoever looks decides which grading it shows. */
type Props = { gradings: Grading[]; path: string; mayPin: boolean };

/** Every grade of a session side by side, oldest first; nothing where there is one. */
export function Gradings({ gradings, path, mayPin }: Props) {
  if (gradings.length < 2) return null;
  return (
    <section>
      <h2 id="gradings">
        Gradings <small>{gradings.length}</small>
      </h2>
      <p class="muted">The same session, graded more than once. The report shows the newest, unless one is pinned.</p>
      {mayPin && gradings.some(({ isPinned }) => isPinned) && (
        <form method="post" action={`${path}/grading`} class="inline">
          <button type="submit" name="grading" value="">
            Show the newest again
          </button>
        </form>
      )}
      <Wide label="Gradings">
        <table class="list">
          <thead>
            <tr>
              <th scope="col">Methodology</th>
              <th scope="col">Judge</th>
              <th scope="col">Grade</th>
              <th scope="col" class="number">
                Score
              </th>
              <th scope="col">Outcome</th>
              <th scope="col" class="number">
                Measured
              </th>
              <th scope="col">Made</th>
              <th scope="col">Shown</th>
            </tr>
          </thead>
          <tbody>
            {gradings.map(({ id, repeat, isShown, isPinned, createdAt, methodology, judge, ...graded }) => (
              <tr key={id}>
                <th scope="row">
                  {methodology.id} <code>{methodology.hash.slice(0, 8)}</code>
                  {repeat > 1 && <small> repeat {repeat}</small>}
                </th>
                <td>{judge?.model ?? "none"}</td>
                <td>
                  <GradeMark grade={graded.grade} />
                </td>
                <td class="number">{graded.score?.toFixed(1) ?? "–"}</td>
                <td>{outcomeWords[graded.outcome]}</td>
                <td class="number">{percent(graded.coverage)}</td>
                <td class="when">{timeWords(createdAt)}</td>
                <td>
                  {isPinned ? (
                    "pinned"
                  ) : mayPin ? (
                    <form method="post" action={`${path}/grading`}>
                      {isShown && "yes "}
                      <button
                        type="submit"
                        name="grading"
                        value={id}
                        aria-label={`Pin the grading of ${timeWords(createdAt)}`}
                      >
                        Pin
                      </button>
                    </form>
                  ) : isShown ? (
                    "yes"
                  ) : (
                    "–"
                  )}
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </Wide>
    </section>
  );
}
