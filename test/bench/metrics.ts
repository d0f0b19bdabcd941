import { testApp } from "../support/app.ts";
import { seed } from "./seed.ts";

const count = 100_000;
const scrapes = 500;

type Parts = {
  start: (
    command: string[],
    env: Record<string, string>,
  ) => Promise<{ url: string; said: () => string; stop: () => Promise<void> }>;
  row: (...cells: [string, string, string, string, string]) => void;
  folder: () => string;
  env: (dataDir: string) => Record<string, string>;
  executable: string;
};

/** What a scrape of the metrics costs, with the labels of a service that was used through many routes. */
export async function benchMetrics({ start, row, folder, env, executable }: Parts): Promise<void> {
  const dataDir = folder();
  const { key } = seed(dataDir, count);
  const service = await start([executable, "serve"], { ...env(dataDir), EVALD_METRICS_ADDRESS: "127.0.0.1:0" });
  const routes = await testApp().app.loadRoutes();
  const headers = { authorization: `Bearer ${key}` };
  // Those with an ID respond at once that there is none.
  for (const path of new Set(routes.map((each) => each.path).filter((each) => each.includes(":"))))
    await (await fetch(service.url + path, { headers })).text();
  let address: string | undefined;
  while (!address) {
    address = /^metrics on (http:\S+)$/m.exec(service.said())?.[1];
    await Bun.sleep(1);
  }
  const times: number[] = [];
  let bytes = 0;
  for (let i = 0; i < scrapes; i++) {
    const begun = performance.now();
    bytes = (await (await fetch(address)).text()).length;
    times.push(performance.now() - begun);
  }
  // The first ones run before the code is compiled.
  times.splice(0, 50);
  times.sort((a, b) => a - b);
  const at = (share: number) => (times[Math.floor(times.length * share)] ?? 0).toFixed(1);
  row(
    `Scrape the metrics (${Math.round(bytes / 1024)} kB), ${count.toLocaleString("en")} runs`,
    `${at(0.5)} ms, p99 ${at(0.99)} ms`,
    "",
    "",
    "< 5 ms",
  );
  await service.stop();
}
