import pino from "pino";
import { compareSides } from "../../src/comparisons/compare.ts";
import { readConfig } from "../../src/config/config.ts";
import { closeDb, openDb } from "../../src/db/open.ts";
import { listEvalRequests } from "../../src/runs/evals.ts";
import { createService } from "../../src/service.ts";
import { seed } from "./seed.ts";

const rounds = 300;

/** What is computed anew from many stored reports each time that it is asked for. */
export function benchReports(row: (...cells: [string, string, string, string, string]) => void, dataDir: string): void {
  const count = 100_000;
  const { org, promptIds, evalRequestIds } = seed(dataDir, count, { withReport: count, runsPerEval: 5 });
  const db = openDb(dataDir);
  const service = createService({
    db,
    config: readConfig({}),
    log: pino({ level: "silent" }),
    agents: {},
    baseUrl: () => "http://localhost:3000",
  });
  const prompt = (i: number) => promptIds[i % promptIds.length] as string;
  const evaluation = (i: number) => evalRequestIds[(i * 7919) % evalRequestIds.length] as string;
  const work: [string, (i: number) => unknown][] = [
    [
      "Compare two evaluations of 5 runs",
      (i) => compareSides(service.ctx, org, { of: [evaluation(i)] }, { of: [evaluation(i + 1)] }),
    ],
    [
      "Compare the last ten runs of a prompt with an evaluation",
      (i) => compareSides(service.ctx, org, { of: [evaluation(i)] }, { of: [prompt(0)] }),
    ],
    [
      "Compare an evaluation with its baseline",
      (i) =>
        compareSides(
          service.ctx,
          org,
          { of: ["baseline"] },
          { of: [evaluation((i % (evalRequestIds.length - 10)) + 10)] },
        ),
    ],
    [
      "List 20 evaluations with their results",
      (i) => listEvalRequests(service.ctx, org, { promptId: prompt(i) }, { limit: 20, offset: 0 }),
    ],
  ];
  for (const [what, once] of work) {
    const times: number[] = [];
    for (let i = 0; i < rounds; i++) {
      const begun = performance.now();
      once(i);
      times.push(performance.now() - begun);
    }
    times.sort((a, b) => a - b);
    const [p50, p99] = [0.5, 0.99].map((share) => times[Math.floor(times.length * share)]?.toFixed(1));
    row(`${what}, ${count.toLocaleString("en")} reports`, `p50 ${p50}, p99 ${p99} ms`, "", "", "p99 < 100 ms");
  }
  closeDb(db);
}
