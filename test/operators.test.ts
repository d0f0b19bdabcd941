import { describe, expect, test } from "bun:test";
import { createKey } from "../src/auth/keys.ts";
import { setOperator } from "../src/auth/operators.ts";
import { findPerson } from "../src/auth/people.ts";
import { testApp } from "./support/app.ts";
import { signedIn } from "./support/people.ts";

const app = testApp();
const { service, a } = app;
const { ctx } = service;
const ada = await signedIn(app, { role: "owner" });
const personId = findPerson(ctx, ada.email)?.id ?? "";

const createOperatorKey = (createdBy?: string) =>
  createKey(ctx, a.org, "queue", { scopes: ["read", "operate"], createdBy }).key;

describe("the scope operate", () => {
  test("is only for keys of operators and of the command line", () => {
    expect(() => createOperatorKey(personId)).toThrow("Only operators");
    expect(() => createKey(ctx, a.org, "ci", { scopes: ["operate"], trustId: "trust" })).toThrow("Only operators");
    setOperator(ctx, ada.email.toUpperCase(), true);
    expect(createOperatorKey(personId)).toStartWith("evals_");
    expect(createOperatorKey()).toStartWith("evals_");
    setOperator(ctx, ada.email, false);
    expect(() => createOperatorKey(personId)).toThrow("Only operators");
  });

  test("is offered on the page of keys to operators only", async () => {
    const offers = async () => (await ada.get("/settings/keys")).body.includes('value="operate"');
    expect(await offers()).toBe(false);
    setOperator(ctx, ada.email, true);
    expect(await offers()).toBe(true);
    setOperator(ctx, ada.email, false);
  });

  test("nobody else becomes an operator by name", () => {
    expect(() => setOperator(ctx, "nobody@example.com", true)).toThrow("No user");
  });
});
