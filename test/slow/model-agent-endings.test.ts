import { afterAll, expect, test } from "bun:test";
import { serveFakeModel } from "../support/fake-model.ts";
import { call, finish, modelKey, modelRuns } from "../support/model-runs.ts";

const usage = { input: 100, output: 20 };
const page = call("fetch_page", { url: "https://notes.test/long.md" });
const unreadable = { fail: { status: 400, body: '{"detail": "The maximum context length is 10 tokens."}' } };
const fake = serveFakeModel({
  key: modelKey,
  scenarios: {
    refuses: { turns: [{ text: "I cannot help with that.", stop: "refusal", usage }] },
    "too-long": { turns: [{ text: "Once upon a time", stop: "length", usage }] },
    overflows: { turns: [page, { ...finish("succeeded", "Read it."), before: [unreadable] }] },
    "always-overflows": { turns: [page, unreadable] },
  },
});
afterAll(() => fake.stop());
const { runOf } = modelRuns(fake);

const callsOf = (name: string) => fake.requests.filter(({ model }) => model === name).length;

test.each([
  ["refuses", "refused", 1],
  ["too-long", "output_limit", 1],
  ["overflows", "finished", 3],
  ["always-overflows", "context_overflow", 3],
])(
  "a model that %s ends its session as %s, after %d calls",
  async (name, ending, calls) => {
    const { run, report, events } = await runOf(name);
    expect(run.failureReason).toBeNull();
    expect(events.findLast(({ type }: { type: string }) => type === "end")?.ending).toBe(ending);
    if (ending !== "finished") expect(report.outcome).toBe("goal_not_met");
    if (ending === "context_overflow") expect(JSON.stringify(events.at(-1))).toContain("maximum context length");
    expect(callsOf(name)).toBe(calls);
  },
  120_000,
);
