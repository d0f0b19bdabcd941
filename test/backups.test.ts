import { expect, test } from "bun:test";
import { setOperator } from "../src/auth/operators.ts";
import { listExpired } from "../src/backups/retention.ts";
import { createPrompt } from "../src/prompts/prompts.ts";
import { testApp } from "./support/app.ts";
import { signedIn } from "./support/people.ts";

const minuteMs = 60_000;
const start = Date.UTC(2026, 10, 2, 12);

test("the newest of each day and week is kept", () => {
  const all = Array.from({ length: 60 * 4 }, (_, i) => ({ startedAt: start + i * 6 * 60 * minuteMs }));
  const expired = new Set(listExpired(all, { keepDaily: 3, keepWeekly: 4 }));
  const kept = all.filter((each) => !expired.has(each)).map(({ startedAt }) => new Date(startedAt).toISOString());
  expect(kept).toEqual([
    // Sundays.
    "2026-12-13T18:00:00.000Z",
    "2026-12-20T18:00:00.000Z",
    "2026-12-27T18:00:00.000Z",
    "2026-12-30T18:00:00.000Z",
    "2026-12-31T18:00:00.000Z",
    "2027-01-01T06:00:00.000Z",
  ]);
});

test("failing backups are in the inbox and on the page of an organization with an operator, and of no other", async () => {
  const app = testApp({ env: { EVALD_BACKUP_TO: "/mnt/backups" }, now: () => start });
  const { ctx } = app.service;
  app.db.$client.run(
    "insert into backups (id, status, created_at, started_at, completed_at, failure) values ('1', 'failed', ?, ?, ?, ?)",
    [start, start, start, "The directory /mnt/backups does not exist."],
  );
  const olga = await signedIn(app, { role: "owner" });
  const kindsOf = async (key: string) => {
    const { body } = await app.send("GET", "/api/v1/inbox", { headers: { authorization: `Bearer ${key}` } });
    return body.problems.map(({ kind }: { kind: string }) => kind);
  };
  expect([await kindsOf(app.a.key), await kindsOf(app.b.key)]).toEqual([[], []]);
  setOperator(ctx, olga.email, true);
  expect([await kindsOf(app.a.key), await kindsOf(app.b.key)]).toEqual([["backup_failing"], []]);
  createPrompt(ctx, app.a.org, { text: "See https://docs.example.com/" });
  const { body } = await olga.get("/");
  expect(body).toContain('data-kind="backup_failing"');
  expect(body).toContain("/mnt/backups");
});
