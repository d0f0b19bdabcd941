import type { Command } from "commander";
import { labelOfBuild, resultText, skipLabels } from "../bisects/labels.ts";
import type { Bisect } from "../bisects/schema.ts";
import { badRequest } from "../errors.ts";
import { type Api, findPromptId, toInterruptionFailure } from "./api.ts";
import { addServiceOptions, type ServiceAddress, type UseApi, withExecution } from "./connection.ts";
import { readTextFile } from "./files.ts";
import { onInterruption } from "./interruption.ts";
import { exits, parseDollars, parsePair, print, say, sayProgress, table, toJson, waitForEnd } from "./terminal.ts";

type BisectOptions = ServiceAddress & {
  good?: string;
  bad?: string;
  urlTemplate?: string;
  commits?: string;
  repository?: string;
  arg?: Record<string, string>;
  agent?: string;
  model?: string;
  budgetUsd?: number;
  resume?: string;
  cancel?: string;
  json?: boolean;
};

/** Adds `bisect`: finds the commit with which the score of a prompt changed. */
export function addBisect(program: Command, useApi: UseApi): void {
  const command = program
    .command("bisect")
    .description("Find the commit with which the score of a prompt changed, by as few runs as possible")
    .argument("[prompt]", "ID or title of the prompt")
    .option("--good <commit>", "Commit whose docs were still good")
    .option("--bad <commit>", "Commit whose docs are bad")
    .option("--url-template <url>", "Address of the docs built from a commit, with {commit} in it")
    .option("--repository <path>", "Local Git repository that lists the commits (default: the current directory)")
    .option("--commits <file>", "File with the commits in place of a repository, oldest first, one per line")
    .option("--arg <name=value>", "Value of a template variable (repeatable)", parsePair)
    .option("--agent <id>", "Agent (default: the prompt's)")
    .option("--model <id>", "Model (default: the prompt's)")
    .option("--budget-usd <n>", "Maximum total cost; runs that would exceed it are not started", parseDollars)
    .option("--resume <id>", "Follow a bisect that was requested before")
    .option("--cancel <id>", "Cancel a bisect")
    .option("--json", "Print the result as JSON");
  addServiceOptions(command)
    .addHelpText(
      "after",
      "\nExit codes: 0 found, 2 usage error, 3 not found.\n\nExamples:\n  evald bisect \"First query\" --good v1.4.0 --bad main --url-template 'https://{commit}.preview.acme.example'\n  evald bisect \"First query\" --good a1b2c3d --bad c7d8e9f --commits commits.txt --url-template 'https://preview.acme.example/{commit}/docs' --budget-usd 10\n  evald bisect --resume 0199f3a6-1c2d-7e3f-8a4b-5c6d7e8f9a0b",
    )
    .action(async (prompt: string | undefined, options: BisectOptions) => {
      process.exitCode = await runBisect(useApi, prompt, options);
    });
}

/** Does what the options ask for, and returns the exit code. */
async function runBisect(useApi: UseApi, prompt: string | undefined, options: BisectOptions): Promise<number> {
  const { resume, cancel, json, url, org } = options;
  const work = async (api: Api): Promise<number> => {
    if (cancel !== undefined) {
      const cancelled = await api.request("POST /bisects/{bisectId}/cancel", pathOf(cancel));
      print(json ? toJson(cancelled, 2) : bisectText(cancelled, new Map()));
      return exits.passed;
    }
    const { requested, subjects } =
      resume === undefined
        ? await requestBisect(api, prompt, options)
        : { requested: await api.request("GET /bisects/{bisectId}", pathOf(resume)), subjects: new Map() };
    const ended = await followBisect(api, requested, json);
    print(json ? toJson(ended, 2) : bisectText(ended, subjects));
    return ended.status === "found" ? exits.passed : exits.error;
  };
  return await useApi({ url, org }, work, withExecution);
}

const pathOf = (bisectId: string) => ({ path: { bisectId } });

/** Waits until a bisect has ended, and prints each build when its state changes. */
async function followBisect(api: Api, requested: Bisect, json: boolean | undefined): Promise<Bisect> {
  say(`Bisect ${requested.pageUrl}`);
  const path = pathOf(requested.id);
  const stopListening = onInterruption(() => toInterruptionFailure(api, "bisect", [requested.id]), {
    json,
    cancel: () => api.request("POST /bisects/{bisectId}/cancel", path),
  });
  const lastLines = new Map<string, string>();
  const ended = await waitForEnd(requested, async () => {
    const current = await api.request("GET /bisects/{bisectId}", path);
    for (const build of current.builds) {
      const line = labelOfBuild(build);
      if (lastLines.get(build.commit) !== line) sayProgress(line);
      lastLines.set(build.commit, line);
    }
    return current;
  });
  stopListening();
  return ended;
}

/** Requests the bisect that the options describe. `subjects`: the subjects of its commits, if a repository lists them. Throws bad_request. */
async function requestBisect(api: Api, prompt: string | undefined, options: BisectOptions) {
  const {
    good,
    bad,
    urlTemplate,
    commits: file,
    repository = ".",
    arg: templateArgs,
    agent,
    model,
    budgetUsd,
  } = options;
  if (prompt === undefined) throw badRequest("Name the prompt to run.");
  if (good === undefined || bad === undefined || urlTemplate === undefined)
    throw badRequest("Pass --good, --bad and --url-template.");
  if (file !== undefined && options.repository !== undefined)
    throw badRequest("Pass --commits or --repository, not both.");
  const commits = file === undefined ? readLog(repository, good, bad) : readCommits(file, good, bad);
  const subjects = file === undefined ? readSubjects(repository, commits) : new Map<string, string>();
  const promptId = await findPromptId(api, prompt);
  const body = { promptId, urlTemplate, commits, templateArgs, agent, model, budgetUsd };
  return { requested: await api.request("POST /bisects", { body }), subjects };
}

/** Runs Git, and returns what it prints. Throws bad_request. */
function git(repository: string, ...args: string[]): string {
  const { success, stdout, stderr } = Bun.spawnSync(["git", "-C", repository, ...args], { stdin: "ignore" });
  if (!success) throw badRequest(`git ${args[0]} failed in ${repository}: ${stderr.toString().trim().split("\n")[0]}`);
  return stdout.toString().trim();
}

/** The full hashes of the commits between two commits of a local repository, along first parents, oldest first. Throws bad_request. */
function readLog(repository: string, good: string, bad: string): string[] {
  const hashOf = (name: string) => git(repository, "rev-parse", "--verify", "--end-of-options", `${name}^{commit}`);
  const [first, last] = [hashOf(good), hashOf(bad)];
  const between = git(repository, "log", "--reverse", "--first-parent", "--format=%H", `${first}..${last}`);
  const commits = between === "" ? [] : between.split("\n");
  if (commits.length === 0) throw badRequest(`No commit follows ${good} on the way to ${bad}. Swap --good and --bad?`);
  return [first, ...commits];
}

/** The subject (first line of the message) of each commit of a local repository. */
function readSubjects(repository: string, commits: string[]): Map<string, string> {
  const log = git(repository, "log", "--no-walk=unsorted", "--format=%H %s", ...commits);
  const toEntry = (line: string): [commit: string, subject: string] => {
    const [commit = "", ...words] = line.split(" ");
    return [commit, words.join(" ")];
  };
  return new Map(log.split("\n").map(toEntry));
}

/** The commits that a file lists between two commits. A line may have more text after the commit, as in `git log --oneline`. Throws bad_request. */
function readCommits(file: string, good: string, bad: string): string[] {
  const lines = readTextFile(file).split("\n");
  const commits = lines.flatMap((line) => line.trim().split(/\s+/)[0] || []);
  const [from, to] = [commits.indexOf(good), commits.indexOf(bad)];
  const missing = [good, bad].find((commit) => !commits.includes(commit));
  if (missing !== undefined) throw badRequest(`${file} does not list ${missing}.`);
  if (from >= to) throw badRequest(`${file} lists ${bad} before ${good}, but the oldest commit must be first.`);
  return commits.slice(from, to + 1);
}

/** The result, with a line for each build. `subjects`: the subjects of commits, if a repository lists them. */
function bisectText(bisect: Bisect, subjects: ReadonlyMap<string, string>): string {
  const position = new Map(bisect.commits.map((commit, i) => [commit, i]));
  const builds = bisect.builds.toSorted((a, b) => (position.get(a.commit) ?? 0) - (position.get(b.commit) ?? 0));
  const rows = builds.map(({ commit, scores, changed, skipped }) => [
    commit,
    scores.map((score) => score.toFixed(1)).join(" "),
    changed === null ? `skipped: ${skipped && skipLabels[skipped]}` : `${Math.round(100 * changed)}%`,
    ...(subjects.size > 0 ? [subjects.get(commit) ?? ""] : []),
  ]);
  const header = ["COMMIT", "SCORES", "HAS THE CHANGE", ...(subjects.size > 0 ? ["SUBJECT"] : [])];
  const suspects = (bisect.result?.commits ?? []).filter((commit) => subjects.has(commit));
  const suspectLines = suspects.map((commit) => `${commit} ${subjects.get(commit)}`);
  return [resultText(bisect), ...suspectLines, "", table([header, ...rows])].join("\n");
}
