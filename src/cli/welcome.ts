import { resolve } from "node:path";
import { createKey } from "../auth/keys.ts";
import { createOrg, listOrgs } from "../auth/orgs.ts";
import { setupPath } from "../auth/setup.ts";
import type { Config } from "../config/config.ts";
import type { OrgId } from "../context.ts";
import { transaction } from "../db/open.ts";
import { createPrompt } from "../prompts/prompts.ts";
import { createProvider } from "../providers/providers.ts";
import { scoreSummary } from "../reports/labels.ts";
import { getReport } from "../reports/reports.ts";
import { acceptEval } from "../runs/requests.ts";
import { getRun } from "../runs/runs.ts";
import type { Service } from "../service.ts";
import { countPlantedMistakes, describeMistakes, examplePrompt, exampleProviderName } from "../web/example.ts";
import { failureText, print, say } from "./terminal.ts";

/**
 * On the first start, creates an example organization with an API key, and runs an example prompt against the docs of a made-up product, which this
 * service serves. Prints the key to stdout, once, and everything else to stderr. `ownUrl`: where the service listens. It replaces the public URL in
 * this run, because the proxy in front of the service may not be ready yet.
 */
export async function welcome(service: Service, ownUrl: string): Promise<void> {
  const example = createExample(service, ownUrl);
  if (!example) return;
  service.ctx.signals.jobQueued.emit();
  const { ctx } = service;
  const { org, runId } = example;
  const url = ctx.baseUrl();
  say(`
Welcome to evald. This is the first start, so an example organization was created.

  Create your account   ${url}${setupPath(ctx, org)}
                        The link works once and expires in 3 days. For a new one: evald org setup-link${dataOption(ctx.config)}
  API key               printed on stdout, shown only once. To use it: export EVALD_KEY=evals_…
  Data directory        ${resolve(ctx.config.dataDir)}
  Docs                  ${url}/docs

Running an example prompt on the docs of a made-up product…
`);
  let run = getRun(ctx, org, runId);
  while (run.completedAt === null) {
    await Bun.sleep(50);
    run = getRun(ctx, org, runId);
  }
  if (!run.report) {
    say(`The example run failed: ${run.failure ? failureText(run.failure) : run.status}\nSee ${run.runUrl}`);
    return;
  }
  const report = getReport(ctx, org, run.report.slug);
  const first = report.recommendations[0];
  const mistakes = countPlantedMistakes(report, { baseUrl: url });
  say(`  Example report        ${scoreSummary(report) ?? report.nullNotice}${mistakes ? `. ${describeMistakes(mistakes)}` : ""}
  First fix             ${first?.title ?? "none"}
  Read it               ${run.report.url}
`);
}

/** The option that other commands need to find this data directory; empty if they find it without an option. */
const dataOption = ({ dataDir }: Config): string =>
  resolve(dataDir) === resolve("data") ? "" : ` --data ${resolve(dataDir)}`;

/**
 * Creates everything in one transaction, and prints the key as the last step. So the key of a stored organization has always been shown. If the
 * process ends before the commit, the printed key is invalid, and the next start counts as the first one again.
 */
function createExample({ ctx }: Service, ownUrl: string): { org: OrgId; runId: string } | null {
  return transaction(ctx.db, (tx) => {
    if (listOrgs(ctx).length > 0) return null;
    const url = ctx.baseUrl();
    const org = createOrg(ctx, "Example").id;
    const { key } = createKey(ctx, org, "first start");
    const provider = createProvider(ctx, org, { name: exampleProviderName, docsUrl: `${url}/example` });
    const prompt = createPrompt(ctx, org, { ...examplePrompt, targetProviderId: provider.id });
    const { origin } = new URL(url);
    const urlMap = origin === ownUrl ? {} : { [origin]: ownUrl };
    const { runIds } = acceptEval(ctx, tx, org, prompt.id, { urlMap, trigger: "cli" });
    print(key);
    return { org, runId: runIds[0] as string };
  });
}
