import { expect, test } from "bun:test";
import { chmodSync, existsSync, mkdtempSync, readFileSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createProgram } from "../src/cli/program.ts";

const ci = await Bun.file(join(import.meta.dir, "../src/web/docs/ci.md")).text();
const sampleOf = (section: string, language: string) =>
  new RegExp(`^## ${section}$[\\s\\S]*?^\`\`\`${language}\\n([\\s\\S]*?)^\`\`\`$`, "m").exec(ci)?.[1] ?? "";

/** A documented job: its shell, as the CI system calls it, its script, and what the system sets. */
type Job = { shell: string[]; script: string; env: Record<string, string> };

/** Declarative pipelines run `sh` steps with `sh -xe`. */
function jenkins(): Job {
  const [, script = ""] = /script: '''([\s\S]*?)'''/.exec(sampleOf("Jenkins", "groovy")) ?? [];
  // Groovy joins lines that end with a backslash.
  return { shell: ["sh", "-xe"], script: script.replaceAll("\\\n", ""), env: { CHANGE_ID: "7" } };
}

function circleCi(): Job {
  type Config = { jobs: { docs: { steps: [{ run: { command: string } }] } } };
  const config = Bun.YAML.parse(sampleOf("CircleCI", "yaml")) as Config;
  const env = { CIRCLE_PULL_REQUEST: "https://github.com/acme/docs/pull/7" };
  return { shell: ["bash", "-eo", "pipefail"], script: config.jobs.docs.steps[0].run.command, env };
}

/** The agent replaces variables when it uploads the pipeline, and `$$` with `$`. */
function buildkite(): Job {
  const { steps } = Bun.YAML.parse(sampleOf("Buildkite", "yaml")) as { steps: [{ command: string }] };
  const uploaded = steps[0].command.replaceAll(/\$(\$|\w+|\{\w+\})/g, (_, name) => (name === "$" ? "$" : ""));
  return { shell: ["bash", "-e"], script: uploaded, env: { BUILDKITE_PULL_REQUEST: "7" } };
}

/** Runs a job with an evald that ends with this exit code after it has written its files, unless it has no result. */
async function runJob({ shell, script, env }: Job, code: number, hasResult = true) {
  const cwd = mkdtempSync(join(tmpdir(), "evald-ci-"));
  const program = (name: string, lines: string[]) => {
    writeFileSync(join(cwd, name), ["#!/bin/bash", ...lines, ""].join("\n"));
    chmodSync(join(cwd, name), 0o755);
  };
  const write = 'while [ $# -gt 0 ]; do case "$1" in --junit|--markdown) echo "# Result" > "$2";; esac; shift; done';
  program("evald", ['printf "%s\\n" "$@" > call; echo "$EVALD_KEY" > key', hasResult ? write : "", `exit ${code}`]);
  program("buildkite-agent", ['if [ "$1" = secret ]; then echo evals_1; else { echo "$@"; cat; } > annotation; fi']);
  const child = Bun.spawn([...shell, "-c", script], {
    cwd,
    env: { PATH: `${cwd}:${process.env.PATH}`, EVALD_URL: "https://evals.acme.example", EVALD_KEY: "evals_1", ...env },
    stdout: "ignore",
    stderr: "ignore",
  });
  const exitCode = await child.exited;
  const read = (name: string) => (existsSync(join(cwd, name)) ? readFileSync(join(cwd, name), "utf8").trim() : null);
  return { exitCode, call: read("call")?.split("\n") ?? [], key: read("key"), annotation: read("annotation") };
}

const gate = createProgram({}).commands.find((command) => command.name() === "gate");
const gateOptions = (gate?.options ?? []).map(({ long }) => long ?? "");

test.each<[string, () => Job, Record<number, number>]>([
  ["Jenkins", jenkins, { 0: 0, 1: 1, 2: 2, 3: 3 }],
  ["CircleCI", circleCi, { 0: 0, 1: 1, 2: 2, 3: 0 }],
  ["Buildkite", buildkite, { 0: 0, 1: 1, 2: 2, 3: 3 }],
])(
  "the documented job for %s runs a gate on the preview of the pull request, and ends as its verdict says",
  async (_, job, exits) => {
    for (const [code, exitCode] of Object.entries(exits)) {
      const ran = await runJob(job(), Number(code));
      expect([code, ran.exitCode]).toEqual([code, exitCode]);
      expect(ran.call.slice(0, 4)).toEqual([
        "gate",
        "First query",
        "--url-map",
        "docs.acme.example=https://pr-7.preview.acme.example",
      ]);
      expect(ran.key).toBe("evals_1");
      for (const option of ran.call.filter((word) => word.startsWith("--"))) expect(gateOptions).toContain(option);
    }
  },
);

test("the documented job for CircleCI does nothing without a pull request", async () => {
  expect(await runJob({ ...circleCi(), env: {} }, 1)).toMatchObject({ exitCode: 0, call: [] });
});

test("the documented job for Buildkite annotates the build with a result, in the style of its verdict", async () => {
  for (const [code, style] of [
    [0, "success"],
    [1, "error"],
    [3, "warning"],
  ] as const)
    expect((await runJob(buildkite(), code)).annotation).toBe(`annotate --context docs --style ${style}\n# Result`);
  expect(await runJob(buildkite(), 3, false)).toMatchObject({ exitCode: 3, annotation: null });
});
