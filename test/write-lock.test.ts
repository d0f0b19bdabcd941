import { expect, test } from "bun:test";
import { openDb } from "../src/db/open.ts";
import { withoutWaiting } from "../src/db/write-lock.ts";

test("writes block this thread only for a moment, from the first one on", () => {
  const db = openDb(":memory:");
  const timeout = () => db.$client.query<{ timeout: number }, []>("pragma busy_timeout").get()?.timeout;
  expect([1, 2].map(() => [withoutWaiting(db, timeout), timeout()])).toEqual([
    [10, 5000],
    [10, 5000],
  ]);
});
