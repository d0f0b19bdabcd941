import { expect, test } from "bun:test";
import { join } from "node:path";
import { type RulesetDefinition, Spectral } from "@stoplight/spectral-core";
import { oas } from "@stoplight/spectral-rulesets";
import { openApiFile } from "../support/openapi.ts";

// Both also check the examples against their schemas.

test("Redocly finds no problem in openapi.json", async () => {
  const redocly = join(import.meta.dir, "..", "..", "node_modules", ".bin", "redocly");
  const linter = Bun.spawn([redocly, "lint", "--format=json", openApiFile], {
    env: { PATH: process.env.PATH, REDOCLY_TELEMETRY: "off", REDOCLY_SUPPRESS_UPDATE_NOTICE: "true" },
    stdout: "pipe",
    stderr: "pipe",
  });
  const [output, errors, code] = await Promise.all([
    new Response(linter.stdout).text(),
    new Response(linter.stderr).text(),
    linter.exited,
  ]);
  expect({ code, output: code === 0 ? "" : output + errors }).toEqual({ code: 0, output: "" });
  expect(JSON.parse(output).totals).toEqual({ errors: 0, warnings: 0, ignored: 0 });
});

test("Spectral finds no problem in openapi.json", async () => {
  const spectral = new Spectral();
  spectral.setRuleset({ extends: oas as RulesetDefinition });
  expect(await spectral.run(await Bun.file(openApiFile).text())).toEqual([]);
});
