import { afterAll, beforeAll, test } from "bun:test";
import fc from "fast-check";
import { allActions, endAccounts, play, startAccounts } from "./support/accounts.ts";
import { isThorough } from "./support/thorough.ts";

beforeAll(startAccounts);
afterAll(endAccounts);

test("no order of actions grants access to another person's organization", async () => {
  const steps = fc.array(fc.constantFrom(...allActions), { minLength: 3, maxLength: 14 });
  await fc.assert(fc.asyncProperty(steps, play), { numRuns: isThorough ? 25 : 8, seed: 20261122 });
});
