import { capitalize, contextRows } from "../../reports/labels.ts";
import type { Report } from "../../reports/schema.ts";
import { Fold, List } from "./figures.tsx";

/** What the agent received in addition to the task. */
export function RunContext({ context }: Pick<Report, "context">) {
  const rows = context ? contextRows(context) : [];
  if (context === null || rows.length + context.env.length === 0) return null;
  return (
    <Fold id="context" title="Context" count={rows.length + context.env.length}>
      <p class="muted">What the agent received in addition to the task, and what it used.</p>
      {rows.length > 0 && (
        <List label="Context" labels={["Type", "Name", "Received by the model", "Used"]}>
          {rows.map(({ kind, name, isOffered, uses }) => (
            <tr key={`${kind} ${name}`}>
              <td>{kind}</td>
              <td>{name}</td>
              <td>{capitalize(isOffered)}</td>
              <td>{capitalize(uses)}</td>
            </tr>
          ))}
        </List>
      )}
      {context.env.length > 0 && <p>Environment variables: {context.env.join(", ")}</p>}
    </Fold>
  );
}
