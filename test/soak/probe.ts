// Asks /healthz of a service and of an idle server in turn, twenty times a second each, in a process of its own. Prints the latencies of each
// second in ms as a JSON line.
const [service = "", idle = ""] = process.argv.slice(2);
const everyMs = 50;

async function ask(url: string): Promise<number> {
  const startedAt = performance.now();
  const answer = await fetch(`${url}/healthz`);
  await answer.text();
  if (answer.status !== 200) throw new Error(`/healthz answered ${answer.status}`);
  return Number((performance.now() - startedAt).toFixed(2));
}

let latencies: { service: number[]; idle: number[] } = { service: [], idle: [] };
setInterval(() => {
  process.stdout.write(`${JSON.stringify(latencies)}\n`);
  latencies = { service: [], idle: [] };
}, 1000);
for (;;) {
  const startedAt = performance.now();
  latencies.idle.push(await ask(idle));
  latencies.service.push(await ask(service));
  await Bun.sleep(Math.max(0, everyMs - (performance.now() - startedAt)));
}
