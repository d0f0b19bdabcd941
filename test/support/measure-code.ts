// Measures the code of this checkout, or of another folder: `bun run measure-code [FOLDER]`.
import { join, resolve } from "node:path";
import { measureFile } from "./code-metrics.ts";

const root = resolve(process.argv[2] ?? join(import.meta.dir, "..", ".."));
const paths = [...new Bun.Glob("src/**/*.{ts,tsx}").scanSync(root)].sort();
const files = await Promise.all(
  paths.map(async (path) => ({ path, ...measureFile(path, await Bun.file(join(root, path)).text()) })),
);

const sum = (values: number[]) => values.reduce((total, value) => total + value, 0);
const quantiles = (values: number[]) => {
  const sorted = values.toSorted((a, b) => a - b);
  const at = (share: number) => sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? 0;
  return `${at(0.5)} / ${at(0.9)} / ${at(1)}`;
};
const named = files.flatMap(({ path, functions }) =>
  functions.filter(({ name }) => name !== "").map((each) => ({ path, ...each })),
);
const crowded = named.filter(({ inner }) => inner.length > 5);

console.table({
  files: files.length,
  "lines of src": sum(files.map(({ lines }) => lines)),
  "lines of a file: median / p90 / max": quantiles(files.map(({ lines }) => lines)),
  "files under 20 lines": files.filter(({ lines }) => lines < 20).length,
  "named functions": named.length,
  "lines of a function: median / p90 / max": quantiles(named.map(({ lines }) => lines)),
  "functions with more than five named functions inside": crowded.length,
  "exported createX": sum(files.map(({ factories }) => factories.length)),
  "types called Parts or Options": sum(files.map(({ partTypes }) => partTypes)),
  "Pick<": sum(files.map(({ picks }) => picks)),
  "exports with a docstring": `${Math.round((100 * sum(files.map((f) => f.documented))) / sum(files.map((f) => f.exports)))} %`,
});
for (const { path, line, name, inner } of crowded) console.log(`${path}:${line} ${name}: ${inner.length}`);
