import { expect, test } from "bun:test";
import { rmSync } from "node:fs";
import { join } from "node:path";
import pino from "pino";
import { readConfig } from "../../src/config/config.ts";
import { createContext } from "../../src/context.ts";
import { closeDb, openDb } from "../../src/db/open.ts";
import { deletePrompt, eraseNow, listDeletions } from "../../src/deletions/deletions.ts";
import { listReports } from "../../src/reports/lists.ts";
import { countRuns, listRuns } from "../../src/runs/runs.ts";
import { seed } from "../bench/seed.ts";
import { emptyFolder } from "../support/executable.ts";
import { isThorough } from "../support/thorough.ts";

const kills = isThorough ? 20 : 4;
const page = { limit: 100, offset: 0 };

test("a process that is killed while it erases leaves nothing half visible, and the next one goes on", async () => {
  const dataDir = emptyFolder();
  const perPrompt = isThorough ? 1500 : 400;
  const { org, promptIds } = seed(dataDir, perPrompt * 10, { withReport: perPrompt * 10 });
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
    expect([countRuns(ctx, org), listReports(ctx, org, {}, page).total]).toEqual([perPrompt, perPrompt]);
    rows.push(countRows(ctx));
    closeDb(ctx.db);
  }
  expect(rows).toEqual(rows.toSorted((a, b) => b - a));
  // Otherwise no kill was in the middle.
  expect(new Set(rows).size).toBeGreaterThan(2);
  expect(await spawn().exited).toBe(0);
  const ctx = open();
  expect(listDeletions(ctx, org, page).items.map(({ status }) => status)).toEqual(Array(9).fill("erased"));
  expect([countRows(ctx), countRuns(ctx, org)]).toEqual([perPrompt, perPrompt]);
  closeDb(ctx.db);
  rmSync(dataDir, { recursive: true });
}, 120_000);
