import { parseArgs } from "node:util";
import { type SiteHost, siteHosts } from "../../src/agents/site/host-rules.ts";
import { packSite } from "../../src/cli/site-folder.ts";
import type { Report } from "../../src/reports/schema.ts";
import { testApp } from "../support/app.ts";
import { networkedExplorer } from "../support/networked-explorer.ts";
import { at, type Build, makeBuilds } from "./builds.ts";
import { serveByNginx } from "./nginx.ts";

// Compares the findings of built docs in a folder with those of the same docs on a server with the rules of each host:
// bun run bench:sites, or some of them: bun run bench:sites vitepress "eleventy-pino cloudflare"

/** Without it, a comparison fails. */
const minEqual = 0.95;

const agent = networkedExplorer("bench");

type Finding = Pick<Report["frictionPoints"][number], "fingerprint" | "severity" | "title" | "quote" | "url">;
type Comparison = { build: string; host: SiteHost; folder: Report; server: Report };

/** The report of a run that reads a build in a folder, or on a server. */
async function evaluate({ folder, goal }: Build, host: SiteHost, server: string | null): Promise<Report> {
  const app = testApp({ agent, env: server ? { EVALD_ALLOW_PRIVATE: new URL(server).host } : {} });
  const prompt = (await app.send("POST", "/api/v1/prompts", { body: { text: `${goal}. ${at}`, endGoal: goal } })).body;
  const packed = await packSite(folder, { at, host });
  const archive = (await app.send("POST", "/api/v1/archives?kind=site", { body: packed.data })).body;
  const body =
    server === null
      ? { urlMap: {}, sites: { [at]: { archiveId: archive.id, host } } }
      : { urlMap: { [new URL(at).host]: server } };
  const { runId } = (await app.send("POST", `/api/v1/prompts/${prompt.id}/run`, { body })).body;
  await app.runJobs();
  const run = (await app.send("GET", `/api/v1/runs/${runId}`)).body;
  if (run.report === null) throw new Error(`The run failed: ${run.failureReason}`);
  return (await app.send("GET", `/api/v1/reports/${run.report.slug}`)).body;
}

async function compare(build: Build, host: SiteHost): Promise<Comparison> {
  const server = await serveByNginx(build.folder, host, new URL(at).pathname);
  try {
    return {
      build: build.name,
      host,
      folder: await evaluate(build, host, null),
      server: await evaluate(build, host, server.url),
    };
  } finally {
    await server.stop();
  }
}

const findingsOf = ({ frictionPoints }: Report): Finding[] =>
  frictionPoints.map(({ fingerprint, severity, title, quote, url }) => ({ fingerprint, severity, title, quote, url }));

/** Findings of both sides together, and those that one side lacks or has with other words. */
function differencesOf({ folder, server }: Comparison) {
  const [ofFolder, ofServer] = [findingsOf(folder), findingsOf(server)];
  const fingerprints = [...new Set([...ofFolder, ...ofServer].map(({ fingerprint }) => fingerprint))];
  const pairs = fingerprints.map((fingerprint) => {
    const isIt = (finding: Finding) => finding.fingerprint === fingerprint;
    return { folder: ofFolder.find(isIt) ?? null, server: ofServer.find(isIt) ?? null };
  });
  return {
    total: pairs.length,
    sameFingerprints: pairs.filter((pair) => pair.folder && pair.server).length,
    differences: pairs.filter((pair) => !Bun.deepEquals(pair.folder, pair.server)),
  };
}

/** The measured values that make the scores differ. null: a side has no such part, as a folder has no response times. */
function differentPartsOf({ folder, server }: Comparison) {
  const valuesOf = ({ dimensions }: Report) =>
    new Map(dimensions.flatMap(({ parts }) => parts.map(({ name, value }) => [name, value] as const)));
  const [ofFolder, ofServer] = [valuesOf(folder), valuesOf(server)];
  return [...new Set([...ofFolder.keys(), ...ofServer.keys()])]
    .map((part) => ({ part, folder: ofFolder.get(part) ?? null, server: ofServer.get(part) ?? null }))
    .filter((each) => each.folder !== each.server);
}

const { positionals } = parseArgs({ allowPositionals: true });
const sums = { findings: 0, equal: 0, sameFingerprints: 0, equalScores: 0, comparisons: 0 };
for (const build of await makeBuilds()) {
  for (const host of siteHosts) {
    const name = `${build.name} ${host}`;
    if (positionals.length > 0 && !positionals.some((part) => name.includes(part))) continue;
    const comparison = await compare(build, host);
    const { total, sameFingerprints, differences } = differencesOf(comparison);
    const { folder, server } = comparison;
    sums.comparisons++;
    sums.findings += total;
    sums.equal += total - differences.length;
    sums.sameFingerprints += sameFingerprints;
    sums.equalScores += Number(folder.score === server.score);
    console.log(
      `${name}: ${total - differences.length} of ${total} findings equal; score ${folder.score} in a folder, ${server.score} on a server`,
    );
    for (const each of differences) console.log(`  ${JSON.stringify(each)}`);
    for (const each of differentPartsOf(comparison)) console.log(`  ${JSON.stringify(each)}`);
  }
}
console.log(sums);
const isEqual = sums.equal >= minEqual * sums.findings && sums.sameFingerprints >= minEqual * sums.findings;
process.exit(isEqual ? 0 : 1);
