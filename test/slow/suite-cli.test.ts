import { expect, test } from "bun:test";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { remoteCommands } from "../support/remote-commands.ts";
import { until } from "../support/until.ts";

const { cwd, run, runJson, urlOf } = remoteCommands("read,run,write");

test("the prompts of a suite are created, run and compared by their commands", async () => {
  expect(await runJson("suite", "list")).toMatchObject([{ id: "baseline", version: 1 }]);
  const { id: providerId } = await runJson("provider", "create", "--name", "Acme", "--docs-url", `${urlOf()}/docs`);
  const core = [{ file: "note.txt", contains: "stored" }];
  writeFileSync(join(cwd, "checks.json"), JSON.stringify({ core }));
  writeFileSync(join(cwd, "list.json"), "[]");
  const values = ["--value", "product=Acme", "--value", "primaryTask=store a note=now"];
  const create = ["suite", "create", "baseline", ...values];
  for (const refused of [
    [...create, "--provider", "Nobody"],
    [...create, "--provider", "Acme", "--checks", "list.json"],
    [...create.slice(0, -2), "--provider", "Acme"],
  ])
    expect([refused, (await run(...refused)).code]).toEqual([refused, 2]);
  expect(await runJson("prompt", "list")).toEqual([]);

  const prompts = (await run(...create, "--provider", "Acme", "--checks", "checks.json")).out.split("\n");
  expect(prompts).toHaveLength(5);
  const prompt = await runJson("prompt", "show", prompts[2] ?? "");
  expect(prompt).toMatchObject({ suite: { slot: "core" }, declaredChecks: core });
  expect(prompt.templateDefaults).toMatchObject({ primaryTask: "store a note=now" });

  const started = await runJson("suite", "run", "baseline", "--provider", "Acme", "--runs", "2");
  expect([started.runs, started.evalRequestIds.length]).toEqual([10, 5]);
  await until("all runs to be compared", async () => {
    const { products } = await runJson("suite", "compare", "baseline");
    return products.length === 1 && !products[0].slots.some(({ state }: { state: string }) => state === "no_runs");
  });
  const [product] = (await runJson("suite", "compare", "baseline")).products;
  expect(product).toMatchObject({ product: "Acme", providerId });
  expect(product.slots.map(({ slot }: { slot: string }) => slot)).toEqual([
    "discover",
    "onboard",
    "core",
    "errors",
    "cleanup",
  ]);
  const [head, row] = (await run("suite", "compare", "baseline")).out.split("\n");
  expect([head?.startsWith("PRODUCT"), row?.startsWith("Acme"), row?.includes("not judged")]).toEqual([
    true,
    true,
    true,
  ]);
  expect((await run("suite", "compare", "nothing")).code).toBe(2);
}, 120_000);
