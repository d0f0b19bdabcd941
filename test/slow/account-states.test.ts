import { afterAll, beforeAll, test } from "bun:test";
import fc from "fast-check";
import { type Action, allActions, endAccounts, play, startAccounts } from "../support/accounts.ts";

beforeAll(startAccounts);
afterAll(endAccounts);

/** Steps that bring an account into each state. */
const states = {
  none: [],
  "invited by Eve": ["Eve invites Cy"],
  "created by Eve": ["Eve invites Cy", "Eve opens her invitations"],
  "with a password of Cy": ["Eve invites Cy, who sets a password"],
  "with a reset link": ["Eve invites Cy, who sets a password", "Eve makes a reset link"],
  "reset by Eve": ["Eve invites Cy, who sets a password", "Eve makes a reset link", "Eve opens her reset links"],
  "created by Eve and linked": [
    "Eve invites Cy",
    "Eve opens her invitations",
    "Cy signs in with the identity provider",
  ],
  "linked and reset by Eve": [
    "Cy signs in with the identity provider",
    "Ada removes Cy",
    "Eve invites Cy, who sets a password",
    "Eve makes a reset link",
    "Eve opens her reset links",
  ],
  removed: ["Eve invites Cy", "Eve opens her invitations", "Eve makes a reset link", "Eve removes Cy"],
  "invited again": ["Eve invites Cy", "Eve opens her invitations", "Eve removes Cy", "Eve invites Cy"],
  "in two organizations": [
    "Eve invites Cy, who sets a password",
    "Eve makes a reset link",
    "Cy resets the password by email",
    "Ada invites Cy",
  ],
  "in two organizations, one by a link of before": [
    "Eve invites Cy, who sets a password",
    "Eve makes a reset link",
    "Ada invites Cy",
  ],
} satisfies Record<string, Action[]>;

test.each(Object.entries(states))(
  "no action grants an account that is %s access to another person's organization",
  async (_, steps) => {
    for (const action of allActions) await play([...steps, action]);
  },
);

test("no order of actions grants access to another person's organization", async () => {
  const steps = fc.array(fc.constantFrom(...allActions), { minLength: 3, maxLength: 14 });
  await fc.assert(fc.asyncProperty(steps, play), { numRuns: 25, seed: 20261122 });
});
