import { type Deletion, Retention, RetentionPatch } from "../../deletions/schema.ts";
import { capitalize, count } from "../../grading/text.ts";
import { List } from "../components/figures.tsx";
import { ButtonForm, DangerButton, Submit } from "../components/form-parts.tsx";
import { SchemaField, SchemaForm } from "../components/schema-form.tsx";
import { Time } from "../components/when.tsx";
import { toFields } from "../form-values.ts";
import { SettingsFrame, type SettingsProps } from "./settings.tsx";

type Props = SettingsProps & {
  retention: Retention;
  /** How many days the server keeps sessions and deliveries; null: forever. */
  defaultDays: number | null;
  deletions: Deletion[];
  mayDelete: boolean;
};

const statusLabels: Record<Deletion["status"], string> = {
  pending: "Can be restored",
  erasing: "Being erased",
  erased: "Erased",
  restored: "Restored",
};

/** How long data is kept, what was deleted, and the deletion of the organization. */
export function DataPage({ retention, defaultDays, deletions, mayDelete, ...frame }: Props) {
  const {
    site: { base },
    viewer,
    mayChange,
    typedValues,
    formError,
  } = frame;
  const byDefault = defaultDays === null ? "Forever" : `Server default (${defaultDays})`;
  return (
    <SettingsFrame {...frame} path="/settings/data">
      <SchemaForm
        schema={RetentionPatch}
        values={typedValues ?? toFields(Retention, retention)}
        {...{ formError, mayChange }}
        action={`${base}/settings/data`}
      >
        <fieldset>
          <legend>Retention</legend>
          <p class="muted">In days. Older data is erased and can’t be restored.</p>
          <SchemaField name="sessions" label="Sessions" placeholder={byDefault} />
          <SchemaField name="artifacts" label="Screenshots and files" placeholder="As long as sessions" />
          <SchemaField name="reports" label="Runs and reports" placeholder="Forever" />
          <SchemaField name="deliveries" label="Notifications" placeholder={byDefault} />
          <SchemaField name="people" label="Names of people who left" placeholder="As long as their account" />
        </fieldset>
        {mayChange ? <Submit>Save retention</Submit> : <p class="muted">Only owners can change these settings.</p>}
      </SchemaForm>
      <section aria-labelledby="deleted">
        <h2 id="deleted">Deleted items</h2>
        {deletions.length === 0 ? (
          <p class="muted">Nothing was deleted.</p>
        ) : (
          <List
            label="Deleted items"
            isStacked
            labels={["Item", "Contains", "Deleted", "Status", "Erased"]}
            numbers={mayDelete ? ["Actions"] : []}
          >
            {deletions.map((each) => (
              <tr key={each.id}>
                <th scope="row">
                  {each.title ?? "Erased"}
                  <span class="aside block">{capitalize(each.kind)}</span>
                </th>
                <td data-label="Contains">{describeCounts(each)}</td>
                <td class="when" data-label="Deleted">
                  <Time at={each.createdAt} />
                </td>
                <td data-label="Status">{statusLabels[each.status]}</td>
                <td class="when" data-label="Erased">
                  {each.status === "restored" ? "Never" : <Time at={each.completedAt ?? each.erasesAt} />}
                </td>
                {mayDelete && (
                  <td class="number">
                    {each.status === "pending" && (
                      <span class="toolbar">
                        <ButtonForm action={`${base}/deletions/${each.id}/restore`} label={`Restore ${each.title}`}>
                          Restore
                        </ButtonForm>
                        <DangerButton action={`${base}/deletions/${each.id}/erase`} label={`Erase ${each.title} now`}>
                          Delete now
                        </DangerButton>
                      </span>
                    )}
                  </td>
                )}
              </tr>
            ))}
          </List>
        )}
      </section>
      {mayChange && (
        <section aria-labelledby="danger">
          <h2 id="danger">Delete organization</h2>
          <p>
            Deletes {viewer.orgName} with everything in it.{" "}
            <a href={`${base}/settings/data/export`} download>
              Export it first
            </a>
            .
          </p>
          <DangerButton action={`${base}/settings/data/delete`}>Delete organization</DangerButton>
        </section>
      )}
    </SettingsFrame>
  );
}

/** What a deletion contains, in words. */
function describeCounts({ kind, counts }: Deletion): string {
  const parts = [
    ...(kind === "organization" ? [count(counts.prompts, "prompt")] : []),
    count(counts.runs, "run"),
    count(counts.reports, "report"),
  ];
  return capitalize(parts.join(", "));
}
