import { existsSync, statSync } from "node:fs";
import { join, resolve } from "node:path";
import pino from "pino";
import type { Config } from "../config/config.ts";
import { type Context, createContext } from "../context.ts";
import { type AppliedMigration, type Db, openReader, originOf, readMigrations } from "../db/open.ts";
import { reasonOf } from "../errors.ts";
import { type Finding, notApplicable, ok, problemFound } from "./finding.ts";

/** A database that checks read, and what is wrong with it. `ctx` null: it can't be read, or has the tables of another version. */
type ExaminedDatabase = { finding: Finding; ctx: Context | null; close: () => void };

/** A database that can't be read. */
const unreadable = (finding: Finding): ExaminedDatabase => ({ finding, ctx: null, close: () => {} });

/** Opens the database of a data directory for reading and examines it. It changes nothing, and needs no lock. */
export function examineDatabase(config: Config, now: () => number): ExaminedDatabase {
  const path = resolve(config.dataDir);
  const file = join(path, "evald.db");
  if (!existsSync(file)) return unreadable(notApplicable("there is none yet", path));
  let db: Db | undefined;
  try {
    db = openReader(file);
    const finding = examine(db, path);
    const close = () => db?.$client.close();
    if (finding.state !== "ok" || isOlder(db)) return { finding, ctx: null, close };
    const ctx = createContext({ db, config, log: pino({ level: "silent" }), agents: {}, baseUrl: () => "", now });
    return { finding, ctx, close };
  } catch (error) {
    db?.$client.close();
    const code = error instanceof Error && "code" in error ? String(error.code) : "";
    // Such as SQLITE_CORRUPT_INDEX.
    const isDamaged = /NOTADB|CORRUPT/.test(code);
    return unreadable(problemFound(isDamaged ? "database_damaged" : "database_unreadable", reasonOf(error), path));
  }
}

const appliedTo = ({ $client }: Db): AppliedMigration[] =>
  $client.query<AppliedMigration, []>("select hash, created_at createdAt from __drizzle_migrations").all();

/** Whether the next start of the service upgrades the database. */
const isOlder = (db: Db): boolean => appliedTo(db).length < readMigrations().length;

function examine(db: Db, path: string): Finding {
  const check = db.$client.query<{ quick_check: string }, []>("pragma quick_check").get()?.quick_check;
  if (check !== "ok") return problemFound("database_damaged", String(check), path);
  const origin = originOf(appliedTo(db));
  if (origin === "newer") return problemFound("database_newer", "it has tables of a newer version", path);
  if (origin === "unknown") return problemFound("database_unknown", "it has tables of no released version", path);
  const [size, wal] = ["evald.db", "evald.db-wal"].map((name) =>
    toMib(statSync(join(path, name), { throwIfNoEntry: false })?.size ?? 0),
  );
  const upgrade = isOlder(db) ? "; the next start of the service upgrades it" : "";
  return ok(`intact, ${size} and a WAL of ${wal}${upgrade}`, path);
}

const toMib = (bytes: number): string => `${(bytes / 1024 ** 2).toFixed(1)} MiB`;
