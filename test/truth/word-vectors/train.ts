import { join } from "node:path";
import { dimensions, maxNumber, numberOffset } from "../../../src/agents/explorer/word-vectors.ts";
import { readDocs } from "./docs-sections.ts";
import { trainWordVectors, type WordVectors } from "./training.ts";

// Learns the word vectors of the explorer: bun run truth:words FOLDER. Each folder in FOLDER has the docs of one tool, as Markdown or
// reStructuredText, and is named like its repository, such as `grafana+loki`. The same docs give the same vectors.

const output = join(import.meta.dir, "../../../src/agents/explorer/word-vectors.bin.gz");
const options = { dimensions, maxStems: 12_000, steps: 3000, seed: 2 };

const [folder] = process.argv.slice(2);
if (folder === undefined) throw new Error("Name the folder with the docs: bun run truth:words FOLDER");
const sections = [...readDocs(folder)];
console.log(`${sections.length} sections of the docs of ${new Set(sections.map(({ docs }) => docs)).size} tools`);
const vectors = trainWordVectors(sections, options, (step, loss) =>
  console.log(`step ${step}: loss ${loss.toFixed(3)}`),
);
const file = Bun.gzipSync(pack(vectors), { level: 9 });
await Bun.write(output, file);
console.log(`${vectors.stems.length} words, ${file.length} bytes`);

/** Vectors as `word-vectors.ts` reads them: the stems in one line, the scale of each as a float, then the numbers, two in a byte. */
function pack({ stems, numbers }: WordVectors): Buffer<ArrayBuffer> {
  const scales = Buffer.alloc(stems.length * Float32Array.BYTES_PER_ELEMENT);
  const pairs = Buffer.alloc((stems.length * dimensions) / 2);
  for (const position of stems.keys()) {
    const vector = numbers.subarray(position * dimensions, (position + 1) * dimensions);
    const scale = Math.max(...vector.map(Math.abs));
    scales.writeFloatLE(scale, position * Float32Array.BYTES_PER_ELEMENT);
    const stored = [...vector].map((number) => Math.round((number / scale) * maxNumber) + numberOffset);
    for (let i = 0; i < dimensions; i += 2) pairs[(position * dimensions + i) / 2] = (stored[i]! << 4) | stored[i + 1]!;
  }
  return Buffer.concat([Buffer.from(`${stems.join(" ")}\n`), scales, pairs]);
}
