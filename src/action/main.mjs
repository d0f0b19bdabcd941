/**
 * The script of the GitHub Action: runs prompts, comments on the pull request, sets a commit status and writes the summary. It needs Node.js
 * 18 and no packages. Exit codes are those of `evald gate`: 0 passed, 1 failed, 2 usage error, 3 no verdict.
 */
import { randomUUID } from "node:crypto";
import { appendFileSync, readFileSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { readContext } from "./context.mjs";
import { createGitHub, fitComment } from "./github.mjs";
import { createService, getKey, UsageError } from "./service.mjs";
import { listSiteFiles, packSiteFiles } from "./site.mjs";
import { exitCodes, isUnder, ofFailure, ofGate, ofRun, oneLine, overall, toMarkdown } from "./summary.mjs";

const env = process.env;
const pollMs = Number(env.EVALD_POLL_MS ?? 5000);
const scopes = ["goal", "conduct_only", "docs_only"];
/** Commit statuses have no neutral state. Success doesn't block, and the description says that there is no verdict. */
const states = { passed: "success", failed: "failure", not_judged: "success", inconclusive: "success" };
const maxDescription = 140;
const maxSummary = 1024 * 1024;

/** @param {string | undefined} value */
const linesOf = (value) =>
  (value ?? "")
    .split("\n")
    .map((line) => line.trim())
    .filter(Boolean);

/** @param {string} name @param {string} message */
function say(name, message) {
  const line = message.replaceAll("%", "%25").replaceAll("\r", "%0D").replaceAll("\n", "%0A");
  console.log(`::${name}::${line}`);
}

/** A line of the log that isn't a command of the workflow. @param {string} text */
const log = (text) => console.log(oneLine(text).replace(/^\s*(?=::|##\[)/, "\u200b"));

/** @param {string} input @param {string | undefined} value @param {{ min: number, max: number, isInteger?: boolean }} bounds */
function numberOf(input, value, { min, max, isInteger = false }) {
  if (!value) return undefined;
  const number = /^\d+(\.\d+)?$/.test(value) ? Number(value) : Number.NaN;
  if (!(number >= min && number <= max) || (isInteger && !Number.isInteger(number)))
    throw new UsageError(`${input} must be ${isInteger ? "an integer" : "a number"} from ${min} to ${max}.`);
  return number;
}

/** @param {string} input @param {string[]} lines */
function pairsOf(input, lines) {
  return Object.fromEntries(
    lines.map((line) => {
      const at = line.indexOf("=");
      if (at < 1)
        throw new UsageError(`${input} must have lines of the form NAME=VALUE; ${JSON.stringify(line)} is none.`);
      return [line.slice(0, at), line.slice(at + 1)];
    }),
  );
}

/** The preview and the URL map of the runs. @param {import("./context.mjs").Context} context */
function toUrlMap(context) {
  const values = { number: context.number, sha: context.sha, branch: context.branch.replace(/[^\w.-]+/g, "-") };
  const fill = (template) =>
    template.replaceAll(/\{(number|sha|branch)\}/g, (_, name) => {
      if (values[name] === null || values[name] === "")
        throw new Error(`there is no ${name} for the preview URL: no open pull request was found`);
      return String(values[name]);
    });
  const previewUrl = env.EVALD_PREVIEW_URL ? fill(env.EVALD_PREVIEW_URL) : context.deploymentUrl;
  const map = pairsOf("url-map", linesOf(env.EVALD_URL_MAP));
  const urlMap = Object.fromEntries(Object.entries(map).map(([host, url]) => [host, fill(url)]));
  if (env.EVALD_DOCS_HOST && !previewUrl && !env.EVALD_DOCS_DIR)
    throw new UsageError(
      "docs-host is set, but there is no preview: pass preview-url or docs-dir, or trigger the workflow on deployment_status.",
    );
  if (previewUrl && env.EVALD_DOCS_HOST && !env.EVALD_DOCS_DIR) urlMap[env.EVALD_DOCS_HOST] = previewUrl;
  for (const url of Object.values(urlMap))
    if (!/^https?:\/\//.test(url) || !URL.canParse(url))
      throw new UsageError(`${JSON.stringify(url)} is not an http or https URL.`);
  return { urlMap, previewUrl: env.EVALD_DOCS_DIR ? null : (previewUrl ?? null) };
}

/** Uploads the docs in the folder of the job. Returns the site of the runs; {} without a folder. */
async function uploadDocs(service) {
  const folder = env.EVALD_DOCS_DIR;
  if (!folder) return {};
  const at = env.EVALD_DOCS_URL || (env.EVALD_DOCS_HOST ? `https://${env.EVALD_DOCS_HOST}/` : "");
  if (!/^https?:\/\//.test(at) || !URL.canParse(at))
    throw new UsageError("docs-dir needs docs-url: the URL that the docs are published at.");
  let files;
  try {
    files = listSiteFiles(folder);
  } catch (error) {
    throw new UsageError(`docs-dir can't be read: ${error.message}`);
  }
  if (!files.some((path) => /\.(html?|mdx?)$/i.test(path)))
    throw new UsageError(`docs-dir has no HTML or Markdown files: ${folder}. Build the docs in a step before.`);
  log(`Docs: ${files.length} files of ${folder} as ${at}`);
  return { [at]: { archiveId: await service.uploadSite(packSiteFiles(folder, files)) } };
}

function readOptions() {
  const prompts = linesOf(env.EVALD_PROMPTS);
  const scope = env.EVALD_SCOPE || "goal";
  const mode = env.EVALD_MODE || "gate";
  if (!scopes.includes(scope)) throw new UsageError(`scope must be one of ${scopes.join(", ")}.`);
  if (!["gate", "run"].includes(mode)) throw new UsageError("mode must be gate or run.");
  const minScore = numberOf("min-score", env.EVALD_MIN_SCORE, { min: 0, max: 100 }) ?? null;
  if (env.EVALD_RESULT_FILE)
    return { mode, scope, minScore, prompts, runs: undefined, budgetUsd: undefined, timeoutMs: 0, templateArgs: {} };
  if (!/^https?:\/\//.test(env.EVALD_URL ?? "")) throw new UsageError("url must be the URL of your evald server.");
  if ((prompts.length === 0) === !env.EVALD_TAG) throw new UsageError("Pass either prompts or tag.");
  if (mode === "run" && prompts.length === 0) throw new UsageError("Pass prompts: tag needs mode gate.");
  return {
    ...{ mode, scope, minScore, prompts },
    runs: numberOf("runs", env.EVALD_RUNS, { min: 1, max: 50, isInteger: true }),
    budgetUsd: numberOf("budget-usd", env.EVALD_BUDGET_USD, { min: 0, max: 1e6 }),
    timeoutMs: (numberOf("timeout-minutes", env.EVALD_TIMEOUT_MINUTES, { min: 1, max: 1440 }) ?? 60) * 60_000,
    templateArgs: pairsOf("template-args", linesOf(env.EVALD_TEMPLATE_ARGS)),
  };
}

/** Starts everything, then follows it to its end or until the time is up. Returns gates or runs as the API does. */
async function work(options, urlMap) {
  const { mode, prompts, scope, minScore, runs, budgetUsd, timeoutMs, templateArgs } = options;
  const service = createService({ url: env.EVALD_URL ?? "", key: () => getKey(env), pauseMs: Math.min(pollMs, 2000) });
  const sites = await uploadDocs(service);
  const ids = [];
  for (const name of prompts) ids.push(await service.findPrompt(name));
  const adaptive = env.EVALD_ADAPTIVE === "true";
  const gate = { urlMap, sites, templateArgs, runs, adaptive, minScore, scope, budgetUsd };
  const targets = env.EVALD_TAG ? [{ tag: env.EVALD_TAG }] : ids.map((promptId) => ({ promptId }));
  const started = [];
  for (const target of targets) {
    if (mode === "gate") started.push(await service.requestGate({ ...target, ...gate }));
    else {
      const accepted = await service.runPrompt(target.promptId, { urlMap, sites, templateArgs, supersede: true });
      for (const { runId } of accepted.runs ?? [accepted]) started.push(await service.getRun(runId));
    }
  }
  const until = Date.now() + timeoutMs;
  const isOver = (each) => (mode === "gate" ? each.status !== "running" : each.completedAt !== null);
  for (let i = 0; i < started.length; i++) {
    log(`${mode === "gate" ? "Gate" : "Run"}: ${started[i].pageUrl ?? started[i].runUrl}`);
    while (!isOver(started[i]) && Date.now() < until) {
      await new Promise((resolve) => setTimeout(resolve, pollMs));
      started[i] = mode === "gate" ? await service.getGate(started[i].id) : await service.getRun(started[i].runId);
    }
  }
  return started;
}

/** The gates, runs or errors in a file of another job, which may be one of a fork. */
function readResults(path) {
  try {
    const found = JSON.parse(readFileSync(path, "utf8"));
    // `evald run` prints an object with its runs; the field of the same name of a gate is a number.
    const all = Array.isArray(found) ? found : Array.isArray(found.runs) ? found.runs : [found];
    if (all.length > 0 && all.every((each) => each !== null && typeof each === "object")) return all.slice(0, 100);
  } catch {
    // Reported below.
  }
  throw new UsageError(`${path} has no gates or runs as JSON.`);
}

/** Sets outputs for later steps. @param {Record<string, string>} outputs */
function output(outputs) {
  if (!env.GITHUB_OUTPUT) return;
  for (const [name, value] of Object.entries(outputs)) {
    const end = randomUUID();
    appendFileSync(env.GITHUB_OUTPUT, `${name}<<${end}\n${value}\n${end}\n`);
  }
}

/** Uses GitHub. A failure there is a warning: it doesn't change the verdict. */
async function tell(what, use) {
  try {
    return await use();
  } catch (error) {
    const remedy = [401, 403, 404].includes(error.status) ? " Check the permissions of the job." : "";
    say("warning", `Could not ${what}. ${error.message}${remedy}`);
    return "";
  }
}

async function main() {
  const name = env.EVALD_NAME || "evald";
  const github = createGitHub(env);
  const options = readOptions();
  const find = (look) => tell("find the pull request", look).then((number) => number || null);
  const context = await readContext(env, {
    ...github,
    findPull: (...head) => find(() => github.findPull(...head)),
    findPullOf: (sha) => find(() => github.findPullOf(sha)),
  });
  /** @type {import("./summary.mjs").Result[]} */
  let results;
  let raw = [];
  let previewUrl = null;
  try {
    if (env.EVALD_RESULT_FILE) raw = readResults(env.EVALD_RESULT_FILE);
    else {
      const mapped = toUrlMap(context);
      previewUrl = mapped.previewUrl;
      raw = await work(options, mapped.urlMap);
    }
    results = raw.map((each) =>
      each.runId !== undefined ? ofRun(each, options) : each.error !== undefined ? ofFailure(each) : ofGate(each),
    );
  } catch (error) {
    if (error instanceof UsageError) throw error;
    // Not judged by anyone: the pull request hears why.
    const reason = `the result is unknown: ${error.message}`;
    const title = env.EVALD_TAG || options.prompts.join(", ");
    results = [{ title, verdict: "inconclusive", reason, url: null, base: null, head: null, friction: [] }];
  }
  const verdict = overall(results);
  const markdown = toMarkdown(results, { name, trusted: env.EVALD_URL ?? "", previewUrl });
  if (env.GITHUB_STEP_SUMMARY) appendFileSync(env.GITHUB_STEP_SUMMARY, `${fitComment(markdown, "", maxSummary / 4)}\n`);
  const resultPath = join(env.RUNNER_TEMP ?? tmpdir(), `evald-result-${randomUUID()}.json`);
  writeFileSync(resultPath, JSON.stringify(raw));
  const [first] = results.filter((each) => each.verdict === verdict);
  const link = first?.url && isUnder(first.url, env.EVALD_URL ?? "") ? first.url : undefined;
  const jobUrl = `${env.GITHUB_SERVER_URL}/${env.GITHUB_REPOSITORY}/actions/runs/${env.GITHUB_RUN_ID}`;
  let commentUrl = "";
  if (env.EVALD_COMMENT !== "false" && context.number !== null) {
    const text = fitComment(markdown, `[See the summary of the job](${jobUrl}) for the rest.`);
    const marker = `<!-- evald:${encodeURIComponent(name)} -->`;
    commentUrl = await tell("comment on the pull request", () => github.upsertComment(context.number, marker, text));
  }
  if (env.EVALD_STATUS !== "false") {
    const about = oneLine(exitCodes[verdict] === 3 ? `No verdict: ${first?.reason}` : (first?.reason ?? ""));
    const description = about.length > maxDescription ? `${about.slice(0, maxDescription - 1)}…` : about;
    const status = { state: states[verdict], context: name, description, target_url: link ?? jobUrl };
    await tell("set the commit status", () => github.setStatus(context.sha, status));
  }
  output({
    verdict,
    "exit-code": String(exitCodes[verdict]),
    "results-json": JSON.stringify(results),
    "result-path": resultPath,
    "comment-url": commentUrl,
  });
  for (const each of results) {
    const line = `${oneLine(each.title)}: ${each.reason}`;
    if (each.verdict === "passed") log(line);
    else say(each.verdict === "failed" ? "error" : "warning", line);
  }
  return exitCodes[verdict];
}

try {
  process.exitCode = await main();
} catch (error) {
  say("error", error.message);
  process.exitCode = error instanceof UsageError ? 2 : 3;
  output({
    verdict: "inconclusive",
    "exit-code": String(process.exitCode),
    "results-json": "[]",
    "result-path": "",
    "comment-url": "",
  });
}
