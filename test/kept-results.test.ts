import { Database } from "bun:sqlite";
import { expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createPrompt } from "../src/prompts/prompts.ts";
import { createProvider } from "../src/providers/providers.ts";
import { testApp } from "./support/app.ts";
import { evaluation, niceGrade } from "./support/reports.ts";

test("trends, friction and docs maps are recomputed after each change, even by another process", async () => {
  const dataDir = mkdtempSync(join(tmpdir(), "evald-kept-"));
  let at = Date.UTC(2026, 10, 30, 23, 59);
  const app = testApp({ dataDir, now: () => at });
  const { id: targetProviderId } = createProvider(app.service.ctx, app.a.org, { name: "Acme" });
  const { id } = createPrompt(app.service.ctx, app.a.org, { text: "Upload a file.", targetProviderId });
  const read = async () => {
    const got = async (path: string) => (await app.send("GET", path)).body;
    const { points } = await got(`/api/v1/trends?promptId=${id}`);
    const [thing] = await got(`/api/v1/friction?promptId=${id}`);
    const { pages } = await got(`/api/v1/providers/${targetProviderId}/docs-map`);
    return [points.at(-1)?.n, thing?.seenIn.runs, pages[0]?.runs];
  };
  expect(await read()).toEqual([undefined, undefined, undefined]);
  evaluation(app, id, [niceGrade]);
  expect([await read(), await read()]).toEqual([
    [1, 1, 1],
    [1, 1, 1],
  ]);
  evaluation(app, id, [niceGrade, niceGrade]);
  expect(await read()).toEqual([3, 3, 3]);

  const other = new Database(join(dataDir, "evald.db"));
  other.run("update friction_lifecycles set met = 9");
  other.run("update page_months set runs = 9");
  other.close();
  expect(await read()).toEqual([3, 9, 9]);

  // Another day, week and month begin without a change.
  const months = async () => (await app.send("GET", `/api/v1/providers/${targetProviderId}/docs-map`)).body.until;
  const before = await months();
  at += 120_000;
  expect([before, await months()]).toEqual(["2026-12-01T00:00:00.000Z", "2027-01-01T00:00:00.000Z"]);
  at += 200 * 24 * 3600_000;
  expect((await app.send("GET", `/api/v1/trends?promptId=${id}`)).body.points).toEqual([]);
  rmSync(dataDir, { recursive: true });
});
