import { backupStatusLabel, deletedSinceText } from "../../backups/labels.ts";
import type { Backup } from "../../backups/schema.ts";
import { capitalize, toSize } from "../../grading/text.ts";
import { toIso } from "../../schema.ts";
import { List } from "../components/figures.tsx";
import { ButtonForm } from "../components/form-parts.tsx";
import { Time, When } from "../components/when.tsx";
import type { Site } from "../site.ts";
import { SettingsFrame, type SettingsProps } from "./settings.tsx";

export type BackupsPartProps = {
  site: Site;
  backups: Backup[];
  /** Where scheduled backups are stored, and when the next one is due, in epoch milliseconds; null: there are no scheduled backups. */
  schedule: { location: string; dueAt: number } | null;
  /** The problem with the backups, as a sentence; null: none. */
  warning: string | null;
  now: number;
};

type Props = Omit<SettingsProps, "mayChange"> & BackupsPartProps;

/** The backups of the service, for operators. Updates live. */
export function BackupsPage({ backups, schedule, warning, now, ...frame }: Props) {
  const { site, viewer } = frame;
  return (
    <SettingsFrame {...frame} path="/settings/backups">
      <div hx-sse:connect={`${site.base}/settings/backups/live?org=${viewer.org}`} hx-swap="innerMorph">
        <BackupsPart {...{ site, backups, schedule, warning, now }} />
      </div>
    </SettingsFrame>
  );
}

/** The part of the page that updates live. */
export const BackupsPart = ({ site: { base }, backups, schedule, warning, now }: BackupsPartProps) => (
  <>
    {warning !== null && <p class="notice bad">{capitalize(warning)}.</p>}
    {schedule === null ? (
      <p>
        The service makes no backups. <a href={`${base}/docs/operations#schedule-backups`}>Schedule backups</a>
      </p>
    ) : (
      <>
        <p>
          The service backs itself up to <code>{schedule.location}</code>.{" "}
          {schedule.dueAt > now && (
            <>
              The next backup is due <When at={toIso(schedule.dueAt)} now={now} />.
            </>
          )}
        </p>
        <p class="muted">
          A checked backup was restored and compared. What was deleted later is still in it, until the file is deleted.
        </p>
        <ButtonForm action={`${base}/settings/backups`}>Back up now</ButtonForm>
      </>
    )}
    <Backups backups={backups} />
  </>
);

const Backups = ({ backups }: { backups: Backup[] }) =>
  backups.length === 0 ? (
    <p class="muted">No backup was made yet.</p>
  ) : (
    <List label="Backups" isStacked labels={["Time", "Status", "Deleted since", "Where"]} numbers={["Size", "Runs"]}>
      {backups.map((backup) => (
        <tr key={backup.id} data-status={backup.status}>
          <th scope="row">
            <Time at={backup.startedAt ?? backup.createdAt} />
            {backup.requestedBy !== null && <span class="aside block">Requested by {backup.requestedBy}</span>}
          </th>
          <td data-label="Status">{backupStatusLabel(backup)}</td>
          <td data-label="Deleted since">{deletedSinceText(backup) || "–"}</td>
          <td data-label="Where">
            {backup.failure ?? (backup.location === null ? "–" : <code>{backup.location}</code>)}
          </td>
          <td class="number" data-label="Size">
            {backup.bytes === null ? "–" : toSize(backup.bytes)}
          </td>
          <td class="number" data-label="Runs">
            {backup.runs ?? "–"}
          </td>
        </tr>
      ))}
    </List>
  );
