import { eq } from "drizzle-orm";
import { tx } from "../db/open.ts";
import { orgs } from "../db/tables.ts";
import type { Deps, OrgId } from "../deps.ts";
import { badRequest, conflict, notFound } from "../errors.ts";
import { toName } from "../schema.ts";

/** An organisation as it is sent. */
export type Org = { id: OrgId; name: string; timeZone: string; createdAt: string };

export function createOrgs({ db, now, newId }: Pick<Deps, "db" | "now" | "newId">) {
  const toOrg = (row: typeof orgs.$inferSelect): Org => ({
    id: row.id as OrgId,
    name: row.name,
    timeZone: row.timeZone,
    createdAt: new Date(row.createdAt).toISOString(),
  });

  return {
    /** Throws bad_request for a blank or long name or an unknown time zone, conflict for a name that is taken. */
    createOrg(name: string, timeZone = "UTC"): Org {
      const trimmed = toName(name);
      if (!isTimeZone(timeZone)) throw badRequest(`${timeZone} is no time zone; use a name like Europe/Berlin`);
      return tx(db, (t) => {
        if (t.select().from(orgs).where(eq(orgs.name, trimmed)).get())
          throw conflict(`an organisation named ${JSON.stringify(trimmed)} exists already`);
        const createdAt = now();
        const row = { id: newId(createdAt), name: trimmed, timeZone, createdAt };
        t.insert(orgs).values(row).run();
        return toOrg(row);
      });
    },
    getOrg(id: OrgId): Org {
      const row = db.select().from(orgs).where(eq(orgs.id, id)).get();
      if (!row) throw notFound("no such organisation");
      return toOrg(row);
    },
    /** For the command line, whose user owns the machine. */
    getOrgByName(name: string): Org {
      const row = db.select().from(orgs).where(eq(orgs.name, name.trim())).get();
      if (!row) throw notFound(`no organisation is named ${JSON.stringify(name)}; evald org list shows them`);
      return toOrg(row);
    },
    listOrgs: (): Org[] => db.select().from(orgs).orderBy(orgs.name).all().map(toOrg),
  };
}

function isTimeZone(name: string): boolean {
  try {
    return new Intl.DateTimeFormat("en", { timeZone: name }) !== null;
  } catch {
    return false;
  }
}
