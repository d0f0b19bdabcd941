// The floor of counting an access log: its lines are split and the requests of each path counted, without agents, months, forms of a page or limits.
// Run with a file.
import { createReadStream } from "node:fs";

const counts = new Map<string, number>();
const decoder = new TextDecoder();
let rest = "";
for await (const piece of createReadStream(process.argv[2] as string, { highWaterMark: 128 * 1024 })) {
  const lines = (rest + decoder.decode(piece as Uint8Array, { stream: true })).split("\n");
  rest = lines.pop() as string;
  for (const line of lines) {
    const path = line.split(" ")[6] as string;
    counts.set(path, (counts.get(path) ?? 0) + 1);
  }
}
process.stdout.write(`${counts.size}\n`);
