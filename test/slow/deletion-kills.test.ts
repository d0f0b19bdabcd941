import { expect, test } from "bun:test";
import { rmSync } from "node:fs";
import { join } from "node:path";
import pino from "pino";
import { readConfig } from "../../src/config/config.ts";
import { type Context, createContext, type OrgId } from "../../src/context.ts";
import { closeDb, openDb } from "../../src/db/open.ts";
import { deleteOrg, deletePrompt, deleteRun, eraseNow, listDeletions } from "../../src/deletions/deletions.ts";
import { listReports } from "../../src/reports/lists.ts";
import { countRuns, listRuns } from "../../src/runs/runs.ts";
import { seed } from "../bench/seed.ts";
import { emptyFolder } from "../support/executable.ts";
import { isThorough } from "../support/thorough.ts";

const kills = isThorough ? 20 : 4;
const deletedRuns = 10;
const [leaver, leaverName] = ["0199f3a4-0000-7000-8000-00000000ada1", "Ada Lovelace"];

/** A person who left an organization a year ago, which forgets them after a day, with 20,000 entries in its audit log. */
function addFormerMember({ db: { $client } }: Context, org: OrgId): void {
  const at = Date.now() - 365 * 24 * 3600_000;
  $client.run(
    "insert into people (id, name, email, email_verified, created_at, updated_at) values (?, ?, 'ada@example.com', 1, 0, 0)",
    [leaver, leaverName],
  );
  $client.run("insert into former_members (org_id, person_id, left_at) values (?, ?, ?)", [org, leaver, at]);
  $client.run("insert into retention (org_id, kind, days) values (?, 'people', 1)", [org]);
  const insert = $client.prepare(
    "insert into audit_entries (id, org_id, created_at, actor_kind, actor_id, actor_name, ip_address, action) values (?, ?, ?, 'person', ?, ?, '192.0.2.1', 'prompt.updated')",
  );
  $client.transaction(() => {
    for (let i = 0; i < 20_000; i++) insert.run(Bun.randomUUIDv7("hex", at + i), org, at + i, leaver, leaverName);
  })();
}

const page = { limit: 100, offset: 0 };

test("a process that is killed while it erases and forgets leaves nothing half visible, and the next one goes on", async () => {
  const dataDir = emptyFolder();
  const perPrompt = isThorough ? 1500 : 400;
  const { org, promptIds, runIds } = seed(dataDir, perPrompt * 10, { withReport: perPrompt * 10 });
  // An organization with as many runs as five prompts.
  const other = seed(dataDir, perPrompt * 5, { withReport: perPrompt * 5, name: "Other" }).org;
  const open = () => {
    const db = openDb(dataDir);
    const log = pino({ level: "silent" });
    return createContext({ db, config: readConfig({}), log, agents: {}, baseUrl: () => "http://localhost:3000" });
  };
  const first = open();
  for (const id of promptIds.slice(1)) {
    const deletion = await deletePrompt(first, org, id, "a test");
    await eraseNow(first, org, deletion.id);
  }
  // Every tenth run is of the first prompt, which stays.
  const ofFirst = runIds.filter((_, i) => i % 10 === 0).slice(0, deletedRuns);
  for (const id of ofFirst) {
    const deletion = await deleteRun(first, org, id, "a test");
    await eraseNow(first, org, deletion.id);
  }
  const left = perPrompt - deletedRuns;
  const ofOther = await deleteOrg(first, other, "a test");
  await eraseNow(first, other, ofOther.id);
  addFormerMember(first, org);
  const countRows = (ctx: typeof first) =>
    ctx.db.$client.query<{ n: number }, []>("select count(*) n from runs").get()?.n ?? 0;
  const rows = [countRows(first)];
  closeDb(first.db);
  const spawn = () =>
    Bun.spawn([process.execPath, join(import.meta.dir, "../support/erase.ts"), dataDir], { stdout: "pipe" });

  for (let i = 0; i < kills; i++) {
    const child = spawn();
    // Its first line says that it has begun.
    await child.stdout.getReader().read();
    await Bun.sleep(150 + 130 * (i % 4));
    child.kill("SIGKILL");
    await child.exited;
    const ctx = open();
    expect(ctx.db.$client.query("pragma foreign_key_check").all()).toEqual([]);
    expect(ctx.db.$client.query("pragma integrity_check").values()).toEqual([["ok"]]);
    expect(listRuns(ctx, org, {}, page).items.every(({ prompt }) => prompt.id === promptIds[0])).toBe(true);
    expect([countRuns(ctx, org), listReports(ctx, org, {}, page).total]).toEqual([left, left]);
    expect([countRuns(ctx, other), listRuns(ctx, other, {}, page).items]).toEqual([0, []]);
    // One step changes all columns of an entry.
    const half =
      "actor_name = 'former member' and ip_address is not null or actor_name != 'former member' and ip_address is null";
    expect(
      ctx.db.$client.query(`select count(*) from audit_entries where actor_id = ? and (${half})`).values(leaver),
    ).toEqual([[0]]);
    rows.push(countRows(ctx));
    closeDb(ctx.db);
  }
  expect(rows).toEqual(rows.toSorted((a, b) => b - a));
  // Otherwise no kill was in the middle.
  expect(new Set(rows).size).toBeGreaterThan(2);
  expect(await spawn().exited).toBe(0);
  const ctx = open();
  const statuses = [org, other].flatMap((id) => listDeletions(ctx, id, page).items.map(({ status }) => status));
  expect(statuses).toEqual(Array(9 + deletedRuns + 1).fill("erased"));
  expect([countRows(ctx), countRuns(ctx, org)]).toEqual([left, left]);
  const named = "select count(*) from audit_entries where actor_name = ? or ip_address is not null";
  expect(ctx.db.$client.query(named).values(leaverName)).toEqual([[0]]);
  closeDb(ctx.db);
  rmSync(dataDir, { recursive: true });
}, 120_000);
