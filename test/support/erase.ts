/** Erases what is due in a data directory, forgets who is due, and ends: `bun test/support/erase.ts FOLDER`. */
import pino from "pino";
import { readConfig } from "../../src/config/config.ts";
import { createContext } from "../../src/context.ts";
import { closeDb, openDb } from "../../src/db/open.ts";
import { eraseDue } from "../../src/deletions/erasure.ts";
import { forgetFormerMembers } from "../../src/deletions/forgetting.ts";

const db = openDb(process.argv[2] ?? "");
const log = pino({ level: "silent" });
const ctx = createContext({ db, config: readConfig({}), log, agents: {}, baseUrl: () => "http://localhost:3000" });
process.stdout.write("started\n");
await forgetFormerMembers(ctx, ctx.stopping);
await eraseDue(ctx, ctx.stopping);
closeDb(db);
