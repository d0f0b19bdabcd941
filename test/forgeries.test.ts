import { describe, expect, test } from "bun:test";
import { gradeSession } from "../src/grading/score.ts";
import { toNullNotice } from "../src/reports/grade-schema.ts";
import {
  answers,
  echoes,
  type Forgery,
  heldOut,
  hosts,
  local,
  made,
  programs,
  twice,
} from "./fixtures/grading/forgeries.ts";
import { api, finishes, productSession, reads } from "./fixtures/grading/product.ts";
import { created, successes } from "./fixtures/grading/successes.ts";

const guide = `Run it with \`npx acme-cli notes create hello\`, or install it with \`npm install -g acme-cli\`, then:

\`\`\`
acme notes create hello
\`\`\`

The API creates a note with POST /v1/notes and answers with its id.`;
const home = reads("/", guide, { provenance: "given" });

/** The grade by a judge that says yes to everything. */
const graded = ([, steps, claim = made]: Forgery, product: string | null, goal = "A note exists.") =>
  gradeSession(productSession([home, ...steps, finishes("succeeded")], { met: "yes", claim, product, goal }));

const passed = (forgeries: Forgery[], product: string | null, goal?: string) =>
  forgeries.filter((forgery) => graded(forgery, product, goal).grade !== null).map(([name]) => name);

describe("no forgery gets a grade by a judge that always says yes:", () => {
  test("words of the agent's own machine", () => expect(passed(local, api)).toEqual([]));
  test("words of the agent's own machine, without a product URL", () => expect(passed(local, null)).toEqual([]));
  test("programs", () => expect(passed(programs, api)).toEqual([]));
  test("programs, without a product URL", () => expect(passed(programs, null)).toEqual([]));
  test("what the product repeats", () => expect(passed(echoes, api)).toEqual([]));
  test("answers that are none", () => expect(passed(answers, api)).toEqual([]));
  test("what was tried after the rules were written", () => expect(passed(heldOut, api)).toEqual([]));
  test("hosts that may not be the product", () => expect(passed(hosts, null)).toEqual([]));
  test("one quote for two parts", () => expect(passed(twice, api, "A note exists. It has a tag.")).toEqual([]));
});

test.each(successes)("%s proves what it did: %s", (_, evidence, steps, claim = created, product = api) => {
  const grade = graded(["", steps, claim], product);
  const proof = grade.judge?.parts.map((part) => [part.met, part.evidence]);
  expect({ scope: grade.scope, evidence: grade.evidence, proof }).toEqual({
    ...{ scope: "goal", evidence, proof: [["yes", evidence]] },
  });
  expect(grade.score).toBeGreaterThanOrEqual(60);
});

test("a claim that only the judge makes has no grade, and says that a success check is missing", () => {
  const grade = graded(["", [], "Done"], api);
  expect(grade).toMatchObject({ outcome: "not_judged", scope: "conduct_only", grade: null, evidence: "judged" });
  expect(toNullNotice(grade)).toContain("success check");
});
