import { and, eq, isNull, lt, sql } from "drizzle-orm";
import type { Context } from "../context.ts";
import { type Db, transaction } from "../db/open.ts";
import { deletedPeople, retention } from "../db/tables/deletions.ts";
import { formerMembers, invitations, people } from "../db/tables/people.ts";
import { takeTurn, truncateLog } from "./erasure.ts";

const dayMs = 24 * 3600_000;
/** Rows that one step reads. */
const rowsPerStep = 1_000;

/** A person whose name and address are removed. */
type ForgottenPerson = {
  personId: string;
  /** The organization that forgets them; null: all in which they were a member, and the service itself. */
  orgId: string | null;
  /** The names and addresses that they have and had. */
  words: string[];
  /** What stands in the place of the name. The database accepts only these in its audit log. */
  placeholder: "deleted person" | "former member";
};

/** Forgets a person in a part of a table. Returns the last row of the part; null: nothing is left. */
type Forget = (db: Db, person: ForgottenPerson, after: number) => number | null;

/** Columns that hold the name or email address of whoever did something. `before`: the text before it, as in `by Ada`. */
const nameColumns: readonly [table: string, column: string, before?: string][] = [
  ["dismissals", "dismissed_by"],
  ["dismissals", "withdrawn_by"],
  ["fixes", "done_by"],
  ["field_friction", "changed_by"],
  ["inbox_marks", "marked_by"],
  ["inbox_marks", "assignee"],
  ["deletions", "deleted_by"],
  ["runs", "failure_detail", "by "],
  ["jobs", "last_error", "cancelled: by "],
];

/**
 * Removes the names and addresses of people whose accounts were deleted from what others see, in short turns. A process that is killed goes on at
 * its next start.
 */
export async function forgetDeletedPeople({ db }: Context, stop: AbortSignal): Promise<void> {
  const all = db.select().from(deletedPeople).all();
  for (const { personId, name, email } of all) {
    const words = wordsOf(db, personId, [name, email]);
    if (!(await forget(db, { personId, orgId: null, words, placeholder: "deleted person" }, stop))) return;
    transaction(db, (tx) => {
      tx.delete(formerMembers).where(eq(formerMembers.personId, personId)).run();
      tx.delete(deletedPeople).where(eq(deletedPeople.personId, personId)).run();
    });
  }
  // If a reader holds it back, the write-ahead log keeps copies of the pages until the next truncation.
  if (all.length > 0) truncateLog(db);
}

/**
 * Removes former members of an organization from what it stores, by name and address, in short turns. A member is forgotten after they have been gone
 * for as many days as the organization keeps them, by a clock that can't be wrong. While a valid invitation lets them come back, they are kept.
 */
export async function forgetFormerMembers(ctx: Context, stop: AbortSignal): Promise<void> {
  const { db } = ctx;
  const now = ctx.provenTime.now();
  // Triggers add the rows, and have no clock that can be trusted.
  if (db.select().from(formerMembers).where(isNull(formerMembers.leftAt)).limit(1).get())
    transaction(db, (tx) => tx.update(formerMembers).set({ leftAt: now }).where(isNull(formerMembers.leftAt)).run());
  const due = db
    .select({ orgId: formerMembers.orgId, personId: people.id, name: people.name, email: people.email })
    .from(formerMembers)
    .innerJoin(retention, and(eq(retention.orgId, formerMembers.orgId), eq(retention.kind, "people")))
    .innerJoin(people, eq(people.id, formerMembers.personId))
    .where(
      and(
        isNull(formerMembers.forgottenAt),
        lt(formerMembers.leftAt, sql`${now} - ${retention.days} * ${dayMs}`),
        sql`not exists (select 1 from ${invitations} where ${invitations.orgId} = ${formerMembers.orgId} and
          ${invitations.email} = ${people.email} and ${invitations.status} = 'pending' and ${invitations.expiresAt} > ${ctx.now()})`,
      ),
    )
    .all();
  for (const { orgId, personId, name, email } of due) {
    const words = wordsOf(db, personId, [name, email]);
    if (!(await forget(db, { personId, orgId, words, placeholder: "former member" }, stop))) return;
    transaction(db, (tx) => {
      const ofOrg = eq(invitations.orgId, orgId);
      tx.delete(invitations)
        .where(and(ofOrg, eq(invitations.email, email)))
        .run();
      tx.delete(invitations)
        .where(and(ofOrg, eq(invitations.inviterId, personId)))
        .run();
      tx.update(formerMembers)
        .set({ forgottenAt: now })
        .where(and(eq(formerMembers.orgId, orgId), eq(formerMembers.personId, personId)))
        .run();
    });
  }
  if (due.length > 0) truncateLog(db);
}

/** All names and addresses that a person has and had, as the audit log knows them. */
function wordsOf({ $client }: Db, personId: string, current: string[]): string[] {
  const earlier = $client
    .query<{ word: string | null }, { $person: string }>(
      `select distinct actor_name word from audit_entries
      where org_id in (select org_id from former_members where person_id = $person) and actor_kind = 'person' and actor_id = $person
      union select json_extract(change.value, '$.before') from audit_entries, json_each(changes) change
      where org_id in (select org_id from former_members where person_id = $person) and target_id = $person
      and action in ('account.renamed', 'account.email_changed')`,
    )
    .all({ $person: personId });
  return [...new Set([...current, ...earlier.flatMap(({ word }) => word ?? [])])].filter(
    (word) => word !== "deleted person" && word !== "former member",
  );
}

/** Forgets a person everywhere. False: it was stopped. */
async function forget(db: Db, person: ForgottenPerson, stop: AbortSignal): Promise<boolean> {
  for (const forgetPart of forgetting) {
    let after = 0;
    const step = () => {
      const last = forgetPart(db, person, after);
      after = last ?? after;
      return last !== null;
    };
    do {
      if (stop.aborted) return false;
    } while (await takeTurn(db, step));
  }
  return true;
}

/** The part of a table that one step reads. */
const part = "rowid > $after and rowid <= $after + $rows";
/** Whether a row belongs to an organization that forgets the person: in others, somebody else may have the same name. */
const isOfOrg = `org_id in (
  select org_id from former_members where person_id = $person and ($org is null or org_id = $org))`;
/** Whether an entry of the audit log is of the organization that forgets the person; if the account was deleted, every entry is. */
const isInScope = "($org is null or org_id = $org)";
/** Whether a column has one of the names or addresses, after the text `$before`. */
const isWord = (column: string) => `${column} in (select $before || value from json_each($words))`;

/** `before`: the text before the name in the column. */
const parametersOf = ({ personId, orgId, words, placeholder }: ForgottenPerson, after: number, before = "") => ({
  $after: after,
  $rows: rowsPerStep,
  $person: personId,
  $org: orgId,
  $words: JSON.stringify(words),
  $placeholder: placeholder,
  $before: before,
});

/** The last row of the part of a table after a row; null: the table has no more rows. */
function endOfPart({ $client }: Db, table: string, after: number): number | null {
  const last = $client.query<{ last: number | null }, []>(`select max(rowid) last from ${table}`).get()?.last ?? 0;
  return after >= last ? null : after + rowsPerStep;
}

/** Replaces the name or address of a person in a column. */
const forgetInColumn =
  ([table, column, before = ""]: (typeof nameColumns)[number]): Forget =>
  (db, person, after) => {
    db.$client
      .query(
        `update ${table} set ${column} = $before || $placeholder where ${part} and ${isWord(column)} and ${isOfOrg}`,
      )
      .run(parametersOf(person, after, before));
    return endOfPart(db, table, after);
  };

/** Operators pause runs of organizations without being members, so the audit log says who it was. */
const forgetInPauses: Forget = (db, person, after) => {
  db.$client
    .query(
      `update pauses set paused_by = $placeholder where ${part} and ${isWord("paused_by")} and exists (
        select 1 from audit_entries where org_id is iif(kind = 'organization', subject, null) and ${isInScope}
        and action = 'queue.paused' and actor_kind = 'person' and actor_id = $person and target_id = subject)`,
    )
    .run(parametersOf(person, after));
  return endOfPart(db, "pauses", after);
};

/** Operators request backups of the whole service, which the audit log says as well. */
const forgetInBackups: Forget = (db, person, after) => {
  db.$client
    .query(
      `update backups set requested_by = $placeholder where ${part} and $org is null and ${isWord("requested_by")} and exists (
        select 1 from audit_entries where org_id is null and action = 'backup.created' and actor_kind = 'person'
        and actor_id = $person and target_id = backups.id)`,
    )
    .run(parametersOf(person, after));
  return endOfPart(db, "backups", after);
};

/** Who cancelled a run, in the message about it. */
const forgetInNotifications: Forget = (db, person, after) => {
  db.$client
    .query(
      `update notifications set data = json_set(data, '$.failure.detail', 'By ' || $placeholder || '.')
      where ${part} and ${isOfOrg} and data ->> '$.failure.code' = 'cancelled'
      and data ->> '$.failure.detail' in (select 'By ' || value || '.' from json_each($words))`,
    )
    .run(parametersOf(person, after));
  return endOfPart(db, "notifications", after);
};

const forgetRecipient: Forget = (db, person, after) => {
  const { $client } = db;
  const rows = $client
    .query<{ id: string; recipients: string }, Record<string, string | number | null>>(
      `select id, recipients from destinations where ${part} and ${isOfOrg}
      and exists (select 1 from json_each($words) where instr(recipients, json_quote(value)) > 0)`,
    )
    .all(parametersOf(person, after));
  for (const { id, recipients } of rows) {
    const others = (JSON.parse(recipients) as string[]).filter((each) => !person.words.includes(each));
    $client
      .query("update destinations set recipients = ? where id = ?")
      .run(others.length > 0 ? JSON.stringify(others) : null, id);
  }
  return endOfPart(db, "destinations", after);
};

const forgetInAuditLog: Forget = (db, person, after) => {
  const { $client } = db;
  const parameters = parametersOf(person, after);
  $client
    .query(
      `update audit_entries set actor_name = $placeholder, ip_address = null, user_agent = null
      where ${part} and ${isInScope} and actor_kind = 'person' and actor_id = $person`,
    )
    .run(parameters);
  // What an entry is about: the person, an invitation of them, or something whose name is theirs or that mentions their address.
  $client
    .query(
      `update audit_entries set target_name = iif(target_name is null, null, $placeholder), changes = null
      where ${part} and ${isInScope} and (target_id = $person or (action like 'invitation.%' and ${isWord("target_name")})
        or (${isOfOrg} and (${isWord("target_name")} or exists (select 1 from json_each($words)
          where instr(value, '@') > 0 and (instr(changes, value) > 0 or instr(target_name, value) > 0)))))`,
    )
    .run(parameters);
  return endOfPart(db, "audit_entries", after);
};

const forgetting: readonly Forget[] = [
  ...nameColumns.map(forgetInColumn),
  forgetInPauses,
  forgetInBackups,
  forgetInNotifications,
  forgetRecipient,
  forgetInAuditLog,
];
