import { asc, eq, sql } from "drizzle-orm";
import { changesOf, recordAudit } from "../audit/entries.ts";
import type { Context } from "../context.ts";
import { transaction } from "../db/open.ts";
import { statement } from "../db/prepared.ts";
import { people } from "../db/tables/people.ts";
import { AppError, notFound } from "../errors.ts";
import { callerOf, checkScope, isCommandLine, requesterOf } from "../http/caller.ts";
import { type Person, toEmail } from "./person.ts";

const personColumns = { id: people.id, name: people.name, email: people.email };

const operatorById = statement((db) =>
  db
    .select({ isOperator: people.isOperator })
    .from(people)
    .where(eq(people.id, sql.placeholder("id"))),
);

/** Whether a person operates the whole service. */
export const isOperator = (ctx: Context, personId: string): boolean =>
  operatorById(ctx.db).get({ id: personId })?.isOperator === true;

/** The operators by name. */
export const listOperators = ({ db }: Context): Person[] =>
  db.select(personColumns).from(people).where(eq(people.isOperator, true)).orderBy(asc(people.name)).all();

/** Makes a person an operator, or withdraws the role. Only for the command line, whose user has full access to the machine. Throws not_found. */
export const setOperator = (ctx: Context, email: string, isOperator: boolean): Person =>
  transaction(ctx.db, (tx) => {
    const [person] = tx
      .update(people)
      .set({ isOperator })
      .where(eq(people.email, toEmail(email)))
      .returning(personColumns)
      .all();
    if (!person) throw notFound(`No user has the email address ${JSON.stringify(email)}.`);
    recordAudit(ctx, null, "operator.changed", person, changesOf({}, { isOperator }));
    return person;
  });

/** The name of the sender of a request, to show to other operators. */
export const operatorOf = (ctx: Context, request: Request): string =>
  isCommandLine(callerOf(request)) ? (ctx.operator ?? "the command line") : requesterOf(request);

/**
 * Throws forbidden unless a request may concern all organizations. It may if the command line on the machine sent it, or if its key has the scope
 * `operate` and the creator of the key is still an operator. For a key that the command line created, there is no such person to check.
 */
export function checkOperator(ctx: Context, request: Request): void {
  const caller = callerOf(request);
  if (isCommandLine(caller)) return;
  checkScope(caller, "operate");
  const { createdBy, trustId, name } = caller;
  if (trustId !== null || (createdBy !== null && !isOperator(ctx, createdBy)))
    throw new AppError(
      "forbidden",
      `The API key ${JSON.stringify(name)} was not created by an operator of this server.`,
    );
}
