import { expect, test } from "bun:test";
import { prompts } from "../../src/db/tables/prompts.ts";
import { createPrompt, getPromptRow } from "../../src/prompts/prompts.ts";
import { testApp } from "../support/app.ts";

test("a tag of 10,000 prompts is filtered, refused by gates, and scheduled between other requests", async () => {
  const { send, service, a, db } = testApp();
  const text = "Upload. https://docs.example.com";
  const { id } = createPrompt(service.ctx, a.org, { text, tags: ["nightly"] });
  const row = getPromptRow(service.ctx, a.org, id);
  db.transaction((tx) => {
    for (let i = 1; i < 10_000; i++)
      tx.insert(prompts)
        .values({ ...row, id: service.ctx.newId(row.createdAt + i) })
        .run();
  });
  const { body, headers } = await send("GET", "/api/v1/prompts?tag=nightly&limit=5");
  expect([body.length, headers.get("x-total-count")]).toEqual([5, "10000"]);
  expect((await send("GET", "/api/v1/trends?tag=nightly")).body.points).toEqual([]);
  const gate = await send("POST", "/api/v1/gates", { body: { tag: "nightly", urlMap: {} } });
  expect([gate.status, gate.body.detail]).toEqual([400, expect.stringContaining("10000")]);
  let answered = 0;
  let isDone = false;
  const scheduled = send("POST", "/api/v1/prompts/schedule", { body: { tag: "nightly", frequency: "daily" } }).finally(
    () => (isDone = true),
  );
  while (!isDone) {
    expect((await send("GET", "/api/v1/prompts?limit=1")).status).toBe(200);
    answered++;
    await new Promise((resolve) => setImmediate(resolve));
  }
  expect((await scheduled).body).toEqual({ scheduled: 10_000, skipped: 0, problems: [] });
  // It takes 200 transactions, and requests have their turn between them.
  expect(answered).toBeGreaterThan(100);
}, 300_000);
