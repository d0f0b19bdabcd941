import { percent } from "../../grading/text.ts";
import { outcomeLabels, scoreText } from "../../reports/labels.ts";
import type { Grading } from "../../reports/schema.ts";
import { GradeMark, List } from "./figures.tsx";
import { Time, useTime } from "./when.tsx";

/** `path`: URL of the report. `mayPin`: the viewer may choose which grading the report shows. */
type Props = { gradings: Grading[]; path: string; mayPin: boolean };

/** All gradings of a session, oldest first. Hidden if there is only one. */
export function Gradings({ gradings, path, mayPin }: Props) {
  const toTime = useTime();
  if (gradings.length < 2) return null;
  return (
    <section id="gradings">
      <h3>
        Gradings <small>{gradings.length}</small>
      </h3>
      <p class="muted">
        This session was graded more than once. The report shows the latest grading unless one is pinned.
      </p>
      {mayPin && gradings.some(({ isPinned }) => isPinned) && (
        <form method="post" action={`${path}/grading`} class="inline">
          <button type="submit" name="grading" value="">
            Use latest grading
          </button>
        </form>
      )}
      <List
        label="Gradings"
        labels={[
          "Methodology",
          "Judge",
          "Grade",
          { label: "Score", isNumber: true },
          "Outcome",
          { label: "Coverage", isNumber: true },
          "Graded",
          "In use",
        ]}
      >
        {gradings.map(({ id, repeat, isShown, isPinned, createdAt, methodology, judge, ...result }) => (
          <tr key={id}>
            <th scope="row">
              {methodology.id} <code>{methodology.hash.slice(0, 8)}</code>
              {repeat > 1 && <small> repeat {repeat}</small>}
            </th>
            <td>{judge?.model ?? "None"}</td>
            <td>
              <GradeMark grade={result.grade} />
            </td>
            <td class="number">{scoreText(result)}</td>
            <td>{outcomeLabels[result.outcome]}</td>
            <td class="number">{percent(result.coverage)}</td>
            <td class="when">
              <Time at={createdAt} />
            </td>
            <td>
              {isPinned && "Pinned"}
              {!isPinned && mayPin && (
                <form method="post" action={`${path}/grading`}>
                  {isShown && "Yes "}
                  <button
                    type="submit"
                    name="grading"
                    value={id}
                    aria-label={`Pin the grading of ${toTime(createdAt)}`}
                  >
                    Pin
                  </button>
                </form>
              )}
              {!isPinned && !mayPin && (isShown ? "Yes" : "–")}
            </td>
          </tr>
        ))}
      </List>
    </section>
  );
}
