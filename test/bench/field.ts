import { createWriteStream, readFileSync } from "node:fs";
import { join } from "node:path";
import { randomOf } from "../support/random.ts";
import { median } from "./load.ts";

const lines = 1_000_000;
const repeats = 5;
const userAgents = [
  "Claude-User (claude-code/2.1.283; +https://support.anthropic.com/)",
  "Mozilla/5.0 AppleWebKit/537.36 (KHTML, like Gecko); compatible; ChatGPT-User/1.0; +https://openai.com/bot",
  "Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)",
  "curl/8.7.1",
  "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/143.0.0.0 Safari/537.36",
];

type Parts = {
  row: (...cells: [string, string, string, string, string]) => void;
  folder: () => string;
  env: (dataDir: string) => Record<string, string>;
  executable: string;
};

/** What counting an access log costs, with the start of the process. The floor splits the same lines and counts paths. */
export async function benchField({ row, folder, env, executable }: Parts): Promise<void> {
  const dataDir = folder();
  const log = join(dataDir, "access.log");
  const bytes = await writeLog(log);
  const docs = "https://docs.acme.example/docs/";
  const commands = {
    ours: [executable, "field", "import", log, "--docs", docs, "--dry-run"],
    floor: [process.execPath, join(import.meta.dir, "log-floor.ts"), log],
  };
  const times = { ours: [] as number[], floor: [] as number[] };
  const memory = { ours: 0, floor: 0 };
  for (let i = 0; i < repeats; i++)
    for (const side of ["ours", "floor"] as const) {
      const begun = performance.now();
      const child = Bun.spawn(commands[side], {
        env: { ...process.env, ...env(dataDir) },
        stdout: "ignore",
        stderr: "ignore",
      });
      // The usage that the system reports starts with the memory of this process.
      const timer = setInterval(() => {
        memory[side] = Math.max(memory[side], peakMb(child.pid));
      }, 20);
      const code = await child.exited;
      clearInterval(timer);
      if (code !== 0) throw new Error(`${commands[side].join(" ")} failed`);
      times[side].push((performance.now() - begun) / 1000);
    }
  const rateOf = (seconds: number) => `${Math.round(lines / seconds).toLocaleString("en")} lines/s`;
  const cellOf = (side: "ours" | "floor") => `${rateOf(median(times[side]))}, ${Math.round(memory[side])} MB`;
  const ratio = median(times.ours.map((time, i) => (times.floor[i] as number) / time));
  row(
    `Count an access log, ${lines.toLocaleString("en")} lines (${Math.round(bytes / 1e6)} MB)`,
    cellOf("ours"),
    cellOf("floor"),
    `${Math.round(ratio * 100)}%`,
    "≥ 400,000 lines/s, < 128 MB",
  );
}

/** The most memory that a process has had, in MB; 0 after its end. */
function peakMb(pid: number): number {
  try {
    return Number(/VmHWM:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1] ?? 0) / 1024;
  } catch {
    return 0;
  }
}

/** Writes a log of requests for 2,000 pages in two months. Returns its size in bytes. */
async function writeLog(path: string): Promise<number> {
  const random = randomOf(11);
  const pick = <T>(items: readonly T[]) => items[Math.floor(random() * items.length)] as T;
  const stream = createWriteStream(path);
  for (let i = 0; i < lines; i++) {
    const line = `203.0.113.7 - - [01/${pick(["Oct", "Nov"])}/2026:10:00:00 +0000] "GET /docs/p${Math.floor(random() * 2000)}${pick(["", "/", ".md", "?q=1"])} HTTP/1.1" ${pick([200, 200, 304, 404])} 1234 "-" "${pick(userAgents)}"\n`;
    if (!stream.write(line)) await new Promise((drained) => stream.once("drain", drained));
  }
  await new Promise<void>((done) => stream.end(done));
  return stream.bytesWritten;
}
