import { percent } from "../../grading/text.ts";
import { outcomeLabels, scoreText } from "../../reports/labels.ts";
import type { Grading } from "../../reports/schema.ts";
import { GradeMark, List } from "./figures.tsx";
import { Time, useTime } from "./when.tsx";

/** `path`: URL of the report. `mayPin`: whether the viewer may choose which grading the report shows. */
type Props = { gradings: Grading[]; path: string; mayPin: boolean };

/** All gradings of a session, oldest first. Hidden if there is only one. */
export function Gradings({ gradings, path, mayPin }: Props) {
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
        {gradings.map((grading) => (
          <tr key={grading.id}>
            <th scope="row">
              {grading.methodology.id} <code>{grading.methodology.hash.slice(0, 8)}</code>
              {grading.repeat > 1 && <small> repeat {grading.repeat}</small>}
            </th>
            <td>{grading.judge?.model ?? "None"}</td>
            <td>
              <GradeMark grade={grading.grade} />
            </td>
            <td class="number">{scoreText(grading)}</td>
            <td>{outcomeLabels[grading.outcome]}</td>
            <td class="number">{percent(grading.coverage)}</td>
            <td class="when">
              <Time at={grading.createdAt} />
            </td>
            <td>
              <InUse {...{ grading, path, mayPin }} />
            </td>
          </tr>
        ))}
      </List>
    </section>
  );
}

type InUseProps = Omit<Props, "gradings"> & { grading: Grading };

/** Whether the report shows a grading. If not, a button lets it show this grading. */
function InUse({ grading: { id, isShown, isPinned, createdAt }, path, mayPin }: InUseProps) {
  const toTime = useTime();
  if (isPinned) return <>Pinned</>;
  if (!mayPin) return <>{isShown ? "Yes" : "–"}</>;
  return (
    <form method="post" action={`${path}/grading`}>
      {isShown && "Yes "}
      <button type="submit" name="grading" value={id} aria-label={`Pin the grading of ${toTime(createdAt)}`}>
        Pin
      </button>
    </form>
  );
}
