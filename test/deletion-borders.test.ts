import { expect, test } from "bun:test";
import { findQuickLeak } from "./support/tenancy.ts";

test("what an organization deletes, requires, runs, counts and shows changes nothing of another one", async () => {
  expect(await findQuickLeak()).toBeUndefined();
});
