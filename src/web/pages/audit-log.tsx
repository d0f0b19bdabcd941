import { type AuditAction, auditActions } from "../../audit/actions.ts";
import type { AuditEntry, AuditFilter, AuditLog } from "../../audit/schema.ts";
import { List } from "../components/figures.tsx";
import { Choice, Filter, PeriodFields } from "../components/filter.tsx";
import { Pager, toHref } from "../components/pager.tsx";
import { Time } from "../components/when.tsx";
import type { PageProps } from "../viewer.ts";
import { SettingsFrame } from "./settings.tsx";

const path = "/settings/audit-log";

type Props = PageProps & {
  log: AuditLog;
  /** Everyone who appears in the log, as choices for the filter. */
  actors: { id: string; name: string }[];
  filter: AuditFilter;
  /** Whether this is the first page. */
  isFirst: boolean;
};

/** Who changed what in an organization, with a form to filter it. */
export function AuditLogPage({ site, viewer, log, actors, filter, isFirst }: Props) {
  const here = site.base + path;
  const { actor, action, since, until } = filter;
  const { entries, nextBefore } = log;
  const isFiltered = [actor, action, since, until].some((each) => each !== undefined);
  return (
    <SettingsFrame {...{ site, viewer, path }}>
      <Filter action={here} clearLabel={isFiltered && "Clear filters"}>
        <Choice name="actor" label="Who" allLabel="Anyone" value={actor}>
          {actors.map(({ id, name }) => [id, name])}
        </Choice>
        <Choice name="action" label="Action" allLabel="All actions" value={action}>
          {actionChoices}
        </Choice>
        <PeriodFields {...{ since, until }} />
      </Filter>
      {entries.length === 0 ? (
        <p class="empty">No entries match these filters.</p>
      ) : (
        <List label="Audit log" isStacked labels={["Who", "What", "From", "When"]}>
          {entries.map((entry) => (
            <EntryRow key={entry.id} entry={entry} />
          ))}
        </List>
      )}
      <Pager
        links={[
          !isFirst && { rel: "prev", href: toHref(here, filter), text: "Newest" },
          nextBefore !== null && { rel: "next", href: toHref(here, { ...filter, before: nextBefore }), text: "Older" },
        ]}
      >
        Download{" "}
        {(["csv", "jsonl"] as const).map((format, i) => (
          <>
            {i > 0 && " or "}
            <a href={toHref(`${here}/export`, { ...filter, format })} download>
              {format.toUpperCase()}
            </a>
          </>
        ))}
      </Pager>
    </SettingsFrame>
  );
}

const actionChoices = Object.entries(auditActions)
  .map(([action, text]) => [action, text] as const)
  .sort(([, a], [, b]) => a.localeCompare(b));

/** The kinds of actors that the name alone doesn't show. */
const kinds: Partial<Record<AuditEntry["actor"]["kind"], string>> = {
  key: "API key",
  trust: "CI job",
  operator: "Operator",
  service: "Service",
};

function EntryRow({ entry }: { entry: AuditEntry }) {
  const { actor, action, target, changes, ipAddress, userAgent, createdAt } = entry;
  return (
    <tr data-action={action}>
      <th scope="row">
        {actor.kind === "anonymous" ? <span class="soft">Not signed in</span> : actor.name}{" "}
        {kinds[actor.kind] && <span class="pill">{kinds[actor.kind]}</span>}
      </th>
      <td class="what" data-label="What">
        {auditActions[action as AuditAction] ?? action}
        {target.name !== null && target.name !== actor.name && <span class="soft"> {target.name}</span>}
        {changes.length > 0 && (
          <details>
            <summary>{changes.map(({ field }) => toWords(field)).join(", ")}</summary>
            <Changes changes={changes} />
          </details>
        )}
      </td>
      <td data-label="From" title={userAgent ?? undefined}>
        {ipAddress ?? <span class="soft">This server</span>}
      </td>
      <td class="when" data-label="When">
        <Time at={createdAt} />
      </td>
    </tr>
  );
}

const Changes = ({ changes }: { changes: AuditEntry["changes"] }) => (
  <dl>
    {changes.map((change) => (
      <>
        <dt>{toWords(change.field)}</dt>
        <dd>
          {"after" in change ? (
            <>
              {change.before !== null && <del>{toText(change.before)}</del>} <ins>{toText(change.after)}</ins>
            </>
          ) : (
            "Changed; the value is not kept"
          )}
        </dd>
      </>
    ))}
  </dl>
);

/** `maxUsdAMonth` as "max usd a month". */
const toWords = (field: string): string => field.replace(/[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`);

/** A value as text. Text stays unchanged, and everything else becomes JSON. */
function toText(value: unknown): string {
  if (value === null) return "none";
  return typeof value === "string" ? value : JSON.stringify(value);
}
