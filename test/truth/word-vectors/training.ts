import { randomOf } from "../../support/random.ts";
import type { DocsSection } from "./docs-sections.ts";

/** Vectors of words, learned from docs: `dimensions` numbers for each stem, one after the other. */
export type WordVectors = { stems: string[]; dimensions: number; numbers: Float32Array };

type TrainingOptions = { dimensions: number; maxStems: number; steps: number; seed: number };

/** A word must be in the docs of this many tools: fewer make it a name. */
const minDocs = 4;
/** Docs with many sections are asked less often than their number of sections suggests. */
const docsExponent = 0.6;
/** Pairs of a query and its section that are told apart at once; half of them come from the docs of one tool. */
const batchSize = 384;
/** Below 1, the nearest wrong sections count more (InfoNCE, van den Oord et al. 2018). */
const temperature = 0.1;
const learningRate = { first: 0.01, last: 0.0001 };
/** Adam, Kingma and Ba 2015. */
const decay = { mean: 0.9, square: 0.995 };
/** How often a query is a passage of the text, the heading, or the heading with those above it. */
const queries = { passage: 0.35, heading: 0.35 };

/** Wrong texts that get a smaller share of the probability change nothing that matters, and there are many. */
const minShare = 1e-4;

type Ids = Uint16Array;
type Example = { docs: number; name: Ids; path: Ids; body: Ids };

/** The words that most sections have, of those that the docs of several tools have, and how rare each is. */
function toVocabulary(sections: DocsSection[], maxStems: number): { stems: string[]; rarities: number[] } {
  const counts = new Map<string, number>();
  const docsOf = new Map<string, Set<string>>();
  for (const { docs, name, path, body } of sections)
    for (const stem of new Set([...name, ...path, ...body])) {
      if (!/^\p{L}{2,}~?$/u.test(stem)) continue;
      counts.set(stem, (counts.get(stem) ?? 0) + 1);
      const seen = docsOf.get(stem) ?? new Set();
      if (seen.size < minDocs) docsOf.set(stem, seen.add(docs));
    }
  const stems = [...counts]
    .filter(([stem]) => docsOf.get(stem)!.size >= minDocs)
    .sort((a, b) => b[1] - a[1] || (a[0] < b[0] ? -1 : 1))
    .slice(0, maxStems)
    .map(([stem]) => stem);
  return { stems, rarities: stems.map((stem) => Math.log(sections.length / counts.get(stem)!)) };
}

/** Learns vectors so that a heading, or a passage, is nearer to the text it belongs to than to other texts. Deterministic. */
export function trainWordVectors(
  sections: DocsSection[],
  { dimensions, maxStems, steps, seed }: TrainingOptions,
  onProgress: (step: number, loss: number) => void,
): WordVectors {
  const random = randomOf(seed);
  const { stems, rarities } = toVocabulary(sections, maxStems);
  const idOf = new Map(stems.map((stem, id) => [stem, id]));
  const toIds = (words: string[]): Ids => Uint16Array.from(new Set(words.flatMap((word) => idOf.get(word) ?? [])));
  const byDocs = [...Map.groupBy(sections, ({ docs }) => docs).values()].map((group, docs) =>
    group
      .map(({ name, path, body }): Example => ({ docs, name: toIds(name), path: toIds(path), body: toIds(body) }))
      .filter(({ name, body }) => name.length > 0 && body.length >= 5),
  );
  const model = createModel(stems.length, dimensions, rarities, random);
  const pickDocs = weightedPick(
    byDocs.map((examples) => examples.length ** docsExponent),
    random,
  );
  let averageLoss = 0;
  for (let step = 1; step <= steps; step++) {
    const pairs = pickBatch(byDocs, pickDocs, random).map((example) => toPair(example, random));
    const loss = learn(model, pairs, step, learningRate.first * (1 - step / steps) + learningRate.last);
    averageLoss = step === 1 ? loss : 0.98 * averageLoss + 0.02 * loss;
    if (step % 100 === 0) onProgress(step, averageLoss);
  }
  return { stems, dimensions, numbers: weightedVectors(model) };
}

/** Picks positions, each in proportion to its weight. */
function weightedPick(weights: number[], random: () => number): () => number {
  let sum = 0;
  const sums = weights.map((weight) => {
    sum += weight;
    return sum;
  });
  return () => {
    const target = random() * sum;
    let low = 0;
    let high = sums.length - 1;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (sums[middle]! <= target) low = middle + 1;
      else high = middle;
    }
    return low;
  };
}

function pickBatch(byDocs: Example[][], pickDocs: () => number, random: () => number): Example[] {
  const batch = new Set<Example>();
  const pick = (examples: Example[]) => batch.add(examples[Math.floor(random() * examples.length)]!);
  const same = byDocs[pickDocs()]!;
  for (let n = 0; n < batchSize / 2; n++) pick(same);
  for (let n = 0; n < batchSize / 2; n++) pick(byDocs[pickDocs()]!);
  return [...batch];
}

type Pair = { query: Ids; text: Ids };

/** A query and the text that answers it. Words of the query are mostly taken from the text, so that other words must carry the meaning. */
function toPair({ name, path, body }: Example, random: () => number): Pair {
  const kind = random();
  if (kind < queries.passage) {
    const start = Math.floor(random() * Math.max(1, body.length - 8));
    const end = start + 4 + Math.floor(random() * 6);
    return {
      query: body.subarray(start, end),
      text: Uint16Array.of(...name, ...body.subarray(0, start), ...body.subarray(end)),
    };
  }
  const query = kind < queries.passage + queries.heading ? name : Uint16Array.of(...name, ...path);
  const rest = random() < 0.4 ? body : body.filter((id) => !query.includes(id));
  const text = rest.length === 0 ? body : rest;
  return { query, text: text.length > 40 && random() < 0.5 ? text.subarray(0, 40) : text };
}

/** What is learned: a vector and the logarithm of a weight for each word; with the running means that Adam needs. */
type Model = {
  dimensions: number;
  vectors: Parameters;
  logWeights: Parameters;
};
type Parameters = { values: Float32Array; gradients: Float32Array; means: Float32Array; squares: Float32Array };

const toParameters = (values: Float32Array): Parameters => ({
  values,
  gradients: new Float32Array(values.length),
  means: new Float32Array(values.length),
  squares: new Float32Array(values.length),
});

function createModel(words: number, dimensions: number, rarities: number[], random: () => number): Model {
  // The sum of random numbers is close enough to a normal distribution.
  const normal = () => (random() + random() + random() + random() - 2) * Math.sqrt(3);
  const values = new Float32Array(words * dimensions).map(() => normal() / Math.sqrt(dimensions));
  return {
    dimensions,
    vectors: toParameters(values),
    logWeights: toParameters(Float32Array.from(rarities, (rarity) => Math.log(rarity + 0.3))),
  };
}

function weightedVectors({ dimensions, vectors, logWeights }: Model): Float32Array {
  return vectors.values.map((value, index) => value * Math.exp(logWeights.values[Math.floor(index / dimensions)]!));
}

/** Texts as unit vectors, one after the other, and the lengths before. */
type Encoded = { texts: Ids[]; units: Float32Array; lengths: Float32Array };

function encode({ dimensions, vectors, logWeights }: Model, texts: Ids[]): Encoded {
  const units = new Float32Array(texts.length * dimensions);
  const lengths = new Float32Array(texts.length);
  const { values } = vectors;
  for (const [row, ids] of texts.entries()) {
    const start = row * dimensions;
    for (let n = 0; n < ids.length; n++) {
      const weight = Math.exp(logWeights.values[ids[n]!]!);
      const from = ids[n]! * dimensions;
      for (let d = 0; d < dimensions; d++) units[start + d]! += weight * values[from + d]!;
    }
    let square = 0;
    for (let d = 0; d < dimensions; d++) square += units[start + d]! ** 2;
    lengths[row] = Math.sqrt(square) + 1e-6;
    for (let d = 0; d < dimensions; d++) units[start + d]! /= lengths[row]!;
  }
  return { texts, units, lengths };
}

/** Moves the model a step, so that each query gets nearer to its text than to the others of the batch. Returns the loss before. */
function learn(model: Model, pairs: Pair[], step: number, rate: number): number {
  const { dimensions } = model;
  const queries = encode(
    model,
    pairs.map(({ query }) => query),
  );
  const texts = encode(
    model,
    pairs.map(({ text }) => text),
  );
  const { gradients, loss } = contrast(queries.units, texts.units, pairs.length, dimensions);
  addGradients(model, queries, gradients.queries);
  addGradients(model, texts, gradients.texts);
  for (const parameters of [model.vectors, model.logWeights]) updateWithAdam(parameters, step, rate);
  return loss;
}

/** The loss of a batch by similarities of all queries with all texts, in both directions, and how it changes with their unit vectors. */
function contrast(queries: Float32Array, texts: Float32Array, count: number, dimensions: number) {
  const similarities = new Float32Array(count * count);
  const rowSums = new Float32Array(count);
  const columnSums = new Float32Array(count);
  // Similarities are at most 1, so that no exponential overflows.
  for (let i = 0; i < count; i++)
    for (let j = 0; j < count; j++) {
      let dot = 0;
      for (let d = 0, q = i * dimensions, t = j * dimensions; d < dimensions; d++)
        dot += queries[q + d]! * texts[t + d]!;
      const value = Math.exp((dot - 1) / temperature);
      similarities[i * count + j] = value;
      rowSums[i]! += value;
      columnSums[j]! += value;
    }
  const gradients = { queries: new Float32Array(queries.length), texts: new Float32Array(texts.length) };
  let loss = 0;
  for (let i = 0; i < count; i++) {
    loss -= Math.log(similarities[i * count + i]! / rowSums[i]! + 1e-9) / count;
    for (let j = 0; j < count; j++) {
      const value = similarities[i * count + j]!;
      const share = (value / rowSums[i]! + value / columnSums[j]!) / 2 - (i === j ? 1 : 0);
      if (Math.abs(share) < minShare) continue;
      const scale = share / (count * temperature);
      for (let d = 0, q = i * dimensions, t = j * dimensions; d < dimensions; d++) {
        gradients.queries[q + d]! += scale * texts[t + d]!;
        gradients.texts[t + d]! += scale * queries[q + d]!;
      }
    }
  }
  return { gradients, loss };
}

/** Adds what the change of unit vectors means for the vectors and weights of their words. */
function addGradients(
  { dimensions, vectors, logWeights }: Model,
  { texts, units, lengths }: Encoded,
  gradients: Float32Array,
) {
  const { values, gradients: vectorGradients } = vectors;
  const change = new Float32Array(dimensions);
  for (const [row, ids] of texts.entries()) {
    const start = row * dimensions;
    let along = 0;
    for (let d = 0; d < dimensions; d++) along += gradients[start + d]! * units[start + d]!;
    for (let d = 0; d < dimensions; d++)
      change[d] = (gradients[start + d]! - along * units[start + d]!) / lengths[row]!;
    for (let n = 0; n < ids.length; n++) {
      const weight = Math.exp(logWeights.values[ids[n]!]!);
      const from = ids[n]! * dimensions;
      let sum = 0;
      for (let d = 0; d < dimensions; d++) {
        vectorGradients[from + d]! += weight * change[d]!;
        sum += values[from + d]! * change[d]!;
      }
      logWeights.gradients[ids[n]!]! += weight * sum;
    }
  }
}

function updateWithAdam({ values, gradients, means, squares }: Parameters, step: number, rate: number): void {
  const meanScale = 1 / (1 - decay.mean ** step);
  const squareScale = 1 / (1 - decay.square ** step);
  for (let i = 0; i < values.length; i++) {
    const gradient = gradients[i]!;
    const mean = decay.mean * means[i]! + (1 - decay.mean) * gradient;
    const square = decay.square * squares[i]! + (1 - decay.square) * gradient * gradient;
    means[i] = mean;
    squares[i] = square;
    values[i]! -= (rate * mean * meanScale) / (Math.sqrt(square * squareScale) + 1e-8);
  }
  gradients.fill(0);
}
