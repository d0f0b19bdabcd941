import { expect, test } from "bun:test";
import { findQuickLeak } from "./support/tenancy.ts";

test("what an organization deletes, keeps, and requires for signing in changes nothing of another one", async () => {
  expect(await findQuickLeak()).toBeUndefined();
});
