import { percent } from "../../grading/text.ts";
import { describeSpread } from "../../reports/labels.ts";
import type { Report } from "../../reports/schema.ts";
import { Fold, List } from "./figures.tsx";
import { Outside } from "./layout.tsx";

/** What each wording of the goal finds in the docs. */
export function Wordings({ wordings }: Pick<Report, "wordings">) {
  if (wordings === null) return null;
  return (
    <Fold id="wordings" title="Wordings of the goal" count={wordings.results.length}>
      <p class="muted">{describeSpread(wordings)}</p>
      <List
        label="Wordings of the goal"
        labels={["Wording", "Answer", { label: "Match", isNumber: true }, "Nearest page"]}
      >
        {wordings.results.map(({ text, state, fit, url }) => (
          <tr key={text}>
            <td>{text}</td>
            <td>{state}</td>
            <td class="number">{percent(fit)}</td>
            <td>{url && <Outside url={url} />}</td>
          </tr>
        ))}
      </List>
    </Fold>
  );
}
