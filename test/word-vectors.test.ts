import { afterAll, expect, test } from "bun:test";
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type DocsSection, readDocs } from "./truth/word-vectors/docs-sections.ts";
import { trainWordVectors } from "./truth/word-vectors/training.ts";

const folder = mkdtempSync(join(tmpdir(), "evald-docs-"));
afterAll(() => rmSync(folder, { recursive: true }));

test("reads the sections of Markdown and reStructuredText, and no docs on which the explorer is measured", async () => {
  const sentence = "Uploads go to a bucket, and every bucket belongs to exactly one account of the organization.";
  const files = {
    "grafana+loki/upload.md": `---\ntitle: Storage\n---\n## Upload \`files\`\n\n${sentence} See [limits](https://x.test/a).\n\n\`\`\`sh\nsecret-sample\n\`\`\`\n`,
    "dask+dask/upload.rst": `Storage\n=======\n\nUpload files\n------------\n\n${sentence} See :ref:\`limits <x>\`.\n\n.. code-block:: sh\n\n   secret-sample\n`,
    "helm+helm-www/upload.md": `# Upload\n\n${sentence}\n`,
  };
  for (const [path, text] of Object.entries(files)) {
    mkdirSync(join(folder, path, ".."));
    await Bun.write(join(folder, path), text);
  }
  const sections = [...readDocs(folder)];
  expect(sections.map(({ docs, name, path }) => ({ docs, name, path }))).toEqual(
    ["dask+dask", "grafana+loki"].map((docs) => ({ docs, name: ["upload", "file"], path: ["storag"] })),
  );
  for (const { body } of sections) expect(body.slice(-2)).toEqual(["see", "limit"]);
});

/** Sections of several docs, in which a heading about pictures stands above words about images, and one about money above prices. */
const sections: DocsSection[] = ["a", "b", "c", "d"].flatMap((docs) =>
  Array.from({ length: 12 }, (_, n): DocsSection[] => [
    {
      docs,
      name: ["picture"],
      path: ["guide"],
      body: ["image", "pixel", "width", "height", "the", n % 2 ? "jpeg" : "png"],
    },
    {
      docs,
      name: ["money"],
      path: ["guide"],
      body: ["price", "invoice", "currency", "tax", "the", n % 2 ? "euro" : "dollar"],
    },
  ]).flat(),
);

test("learns the same vectors from the same docs, near each other for words that belong together", () => {
  const options = { dimensions: 8, maxStems: 100, steps: 60, seed: 1 };
  const vectors = trainWordVectors(sections, options, () => {});
  expect(trainWordVectors(sections, options, () => {})).toEqual(vectors);
  const vectorOf = (stem: string) => {
    const start = vectors.stems.indexOf(stem) * vectors.dimensions;
    return [...vectors.numbers.slice(start, start + vectors.dimensions)];
  };
  const dot = (a: number[], b: number[]) => a.reduce((sum, number, i) => sum + number * b[i]!, 0);
  const cosine = (a: string, b: string) => {
    const [x, y] = [vectorOf(a), vectorOf(b)];
    return dot(x, y) / Math.sqrt(dot(x, x) * dot(y, y));
  };
  expect(cosine("picture", "image")).toBeGreaterThan(cosine("picture", "price") + 0.5);
  expect(cosine("money", "invoice")).toBeGreaterThan(cosine("money", "pixel") + 0.5);
});
