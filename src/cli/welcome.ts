import { tx } from "../db/open.ts";
import type { OrgId } from "../deps.ts";
import type { Service } from "../service.ts";
import { print, say } from "./terminal.ts";

/**
 * On the first start: an example organisation with a key, and a prompt about this service's own documentation that is run at once. The key goes
 * to stdout, once; the grade and where to read it to stderr. `ownUrl` is where the service listens, which stands in for its public address in
 * this run: a proxy before it may not be there yet.
 */
export async function welcome(service: Service, ownUrl: string): Promise<void> {
  const example = makeExample(service, ownUrl);
  if (!example) return;
  service.requests.onQueued();
  const { runs, reports, people, deps } = service;
  const { org, runId } = example;
  const url = deps.baseUrl();
  say(`
This is a first start: an example organisation was made, and its prompt is being run on this service's own documentation.

  Set up your account   ${url}${people.setupPath(org)}
                        (good once, for three days; evald org setup-link Example makes another)
  API key (shown once)  the line evals_… on stdout; keep it with: export EVALD_KEY=evals_…
  See the runs          curl -H "Authorization: Bearer $EVALD_KEY" ${url}/api/v1/runs
  Read the docs         ${url}/docs
`);
  let run = runs.getRun(org, runId);
  while (run.completedAt === null) {
    await Bun.sleep(50);
    run = runs.getRun(org, runId);
  }
  if (!run.report) {
    say(`The example run failed: ${run.failureReason}. Its page: ${run.runUrl}`);
    return;
  }
  const { recommendations } = reports.getReport(org, run.report.slug);
  const first = recommendations[0];
  say(`  Example report        ${run.report.grade} (${run.report.score}): ${run.report.keyFinding}${first ? `\n  First advice          ${first.title}` : ""}
  Read it               ${run.report.url}
`);
}

/**
 * Makes everything in one transaction and prints the key as the last act in it: where an organisation was made, its key was shown. A process
 * that ends between the two has shown a key that is not kept; then the next start is a first start again and prints one that is.
 */
function makeExample(
  { orgs, keys, providers, prompts, requests, deps }: Service,
  ownUrl: string,
): { org: OrgId; runId: string } | null {
  return tx(deps.db, (t) => {
    if (orgs.listOrgs().length > 0) return null;
    const url = deps.baseUrl();
    const org = orgs.createOrg("Example").id;
    const { key } = keys.createKey(org, "first start");
    const provider = providers.createProvider(org, { name: "evald", docsUrl: `${url}/docs`, productUrl: url });
    const prompt = prompts.createPrompt(org, {
      title: "First report over REST",
      text: "With curl and an API key, trigger a run of a prompt of this service and wait for its report.",
      endGoal:
        "A run was triggered with a POST request, its statusUrl was polled until completed, and the report was read.",
      targetProviderId: provider.id,
      // An example spends no money.
      agent: "explorer",
    });
    const { origin } = new URL(url);
    const urlMap = origin === ownUrl ? {} : { [origin]: ownUrl };
    const { runIds } = requests.accept(t, org, prompt.id, { urlMap, trigger: "cli" });
    print(key);
    return { org, runId: runIds[0] as string };
  });
}
