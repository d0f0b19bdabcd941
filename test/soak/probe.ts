// Asks /healthz of a service twenty times a second, in a process of its own, and prints the latencies in ms of each second as a JSON line.
const [url = ""] = process.argv.slice(2);
const everyMs = 50;

let latencies: number[] = [];
setInterval(() => {
  process.stdout.write(`${JSON.stringify(latencies)}\n`);
  latencies = [];
}, 1000);
for (;;) {
  const startedAt = performance.now();
  const answer = await fetch(`${url}/healthz`);
  await answer.text();
  if (answer.status !== 200) throw new Error(`/healthz answered ${answer.status}`);
  latencies.push(Number((performance.now() - startedAt).toFixed(2)));
  await Bun.sleep(Math.max(0, everyMs - (performance.now() - startedAt)));
}
