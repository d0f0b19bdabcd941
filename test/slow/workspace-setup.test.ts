import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createArchive } from "../../src/archives/archives.ts";
import { serveFakeModel } from "../support/fake-model.ts";
import { serveGit } from "../support/git-server.ts";
import { call, finish, modelRuns } from "../support/model-runs.ts";

const done = finish("goal_not_met", "That was all.");
const command = (text: string) => call("run_command", { command: text, seconds: 60 });
const secret = "AKIAIOSFODNN7EXAMPLE";

let fake: ReturnType<typeof serveFakeModel>;
let git: ReturnType<typeof serveGit>;
let commit: string;

beforeAll(() => {
  fake = serveFakeModel({
    scenarios: {
      looks: {
        turns: [
          command("find . -type f -not -path './.[gh]*' | sort; cat src/app.js; echo $REGION; cat AGENTS.md"),
          done,
        ],
      },
      edits: {
        turns: [
          command(`echo changed >> src/app.js; echo ${secret} > new.txt; mkdir node_modules; touch node_modules/x`),
          done,
        ],
      },
      rests: { turns: [done] },
    },
  });
  const root = mkdtempSync(join(tmpdir(), "git-"));
  const sh = (script: string) => {
    const { exitCode, stdout, stderr } = Bun.spawnSync(["sh", "-ec", script], { cwd: root });
    if (exitCode !== 0) throw new Error(String(stderr));
    return String(stdout).trim();
  };
  sh(
    "git init -q -b main work; cd work; git config user.email a@b.c; git config user.name A; mkdir src; echo from-git > src/app.js; git add .; git commit -qm one; git tag v1",
  );
  commit = sh("git -C work rev-parse HEAD");
  sh("git clone -q --bare work repo.git");
  git = serveGit(root);
});
afterAll(async () => {
  await git.stop();
  await fake.stop();
});

const files = { "src/app.js": "from-archive\n", "README.md": "# Starter\n" };
type App = Parameters<NonNullable<Parameters<ReturnType<typeof modelRuns>["runOf"]>[1]>["before"] & object>[0];

/** A run of a prompt with a workspace; `archive` uploads one first. */
async function runWith(
  name: string,
  workspace: Record<string, unknown>,
  { archive }: { archive?: Record<string, string> } = {},
) {
  const setup: Record<string, unknown> = { ...workspace };
  const data = archive && (await new Bun.Archive(archive, { compress: "gzip" }).bytes());
  const before = (app: App) => {
    if (data) setup.archive = createArchive(app.service.ctx, app.a.org, { data, files: 2 }).id;
  };
  return modelRuns(fake).runOf(name, { before, prompt: { workspace: setup } });
}

type Event = {
  type: string;
  name?: string;
  tool?: string;
  detail: Record<string, unknown>;
  output: { stdout: string };
};
const outputOf = (events: Event[]) =>
  events.find(({ type, tool }) => type === "tool_result" && tool === "run_command")?.output.stdout ?? "";
const milestone = (events: Event[], name: string) => events.find((event) => event.name === name)?.detail;

test("an agent finds the files of an archive, AGENTS.md, its variables and the results of the setup command", async () => {
  const setup = "echo $REGION > made.txt";
  const { events } = await runWith(
    "looks",
    { setup, env: { REGION: "eu-1" }, instructions: "Be brief." },
    { archive: files },
  );
  expect(outputOf(events).split("\n")).toEqual([
    "./AGENTS.md",
    "./README.md",
    "./made.txt",
    "./src/app.js",
    "from-archive",
    "eu-1",
    "Be brief.",
  ]);
  expect(milestone(events, "workspace_prepared")).toMatchObject({
    archive: expect.any(String),
    repository: null,
    setup: { command: setup, exitCode: 0 },
    instructionChars: 9,
    env: ["REGION"],
  });
  const asked = JSON.stringify(fake.requests.at(-1)?.body);
  expect(asked).toContain("Be brief.");
});

test("an agent finds the files of a repository at a ref, and the session says which commit it was", async () => {
  const repository = { url: `${git.url}/repo.git`, ref: "v1" };
  const { events } = await runWith("looks", { repository });
  expect(outputOf(events)).toContain("from-git");
  expect(milestone(events, "workspace_prepared")?.repository).toEqual({ ...repository, commit });
});

test("the context of a run is the commit, the instructions and the names of variables", async () => {
  const repository = { url: `${git.url}/repo.git`, ref: "v1" };
  const contextOf = async (workspace: Record<string, unknown>) =>
    (await runWith("rests", workspace)).report.agent.contextDigest;
  const digest = await contextOf({ repository, env: { REGION: "eu-1" } });
  expect(digest).toMatch(/^[0-9a-f]{16}$/);
  expect(await contextOf({ repository: { ...repository, ref: commit }, env: { REGION: "us-1" } })).toBe(digest);
  expect(await contextOf({ repository, env: { REGION: "eu-1" }, instructions: "Be brief." })).not.toBe(digest);
});

test("what an agent changed is kept as a diff, without secrets and what tools installed", async () => {
  const { events, report, app } = await runWith("edits", {}, { archive: files });
  expect(milestone(events, "workspace_changed")).toEqual({ files: 2, isCut: false });
  const answer = await app.send("GET", `/api/v1/reports/${report.slug}/artifacts/workspace.diff`);
  expect(answer.headers.get("content-type")).toBe("text/plain; charset=utf-8");
  expect(answer.body).toContain("+changed");
  expect(answer.body).toContain("new.txt");
  expect(answer.body).not.toContain(secret);
  expect(answer.body).not.toContain("node_modules");
});

test("an agent that changed nothing leaves no diff", async () => {
  const { events } = await runWith("rests", {}, { archive: files });
  expect(milestone(events, "workspace_changed")).toBeUndefined();
});

describe("a run fails before the agent starts, with the reason, because of", () => {
  test.each<[string, Record<string, unknown>, RegExp]>([
    [
      "a setup command that fails",
      { setup: "echo no disk >&2; exit 3" },
      /^infrastructure: the setup command failed: exit code 3: no disk$/,
    ],
    [
      "a repository that doesn't exist",
      { repository: { url: "GIT/none.git", ref: "main" } },
      /^infrastructure: checking out main of .*none\.git failed/,
    ],
    [
      "a ref that doesn't exist",
      { repository: { url: "GIT/repo.git", ref: "v9" } },
      /^infrastructure: checking out v9 of .* failed: .*v9/,
    ],
    [
      "a setup command that fills the disk",
      { setup: "head -c 2000000000 /dev/zero > big; sleep 5" },
      /^infrastructure: the setup command failed/,
    ],
  ])(
    "%s",
    async (_, workspace, reason) => {
      const asked = fake.requests.length;
      const text = JSON.stringify(workspace).replace("GIT", git.url);
      const { run } = await runWith("rests", JSON.parse(text));
      expect([run.status, run.failureReason]).toEqual(["failed", expect.stringMatching(reason)]);
      expect(fake.requests.length).toBe(asked);
    },
    300_000,
  );
});
