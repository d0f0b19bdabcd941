// Shares of runs that come in clusters, such as the repeats of a prompt. Pure functions, each with its source.
import { type Estimate, wilson } from "./estimates.ts";

/** k of n runs of a cluster. */
export type Cluster = { k: number; n: number };

/**
 * The share of all runs with its 95 % interval; null without runs. Runs of the same cluster resemble each other. So both counts are divided by the
 * design effect, which is the variance between clusters relative to that of independent runs: J. N. K. Rao and A. J. Scott, Biometrics 48 (1992)
 * 577–585. The design effect is at least 1, and at most as large as if runs never differed within a cluster. The interval of the divided counts is
 * Wilson's.
 */
export function clusteredWilson(clusters: Cluster[]): Estimate | null {
  const counted = clusters.filter(({ n }) => n > 0);
  const [k, n] = [sumOf(counted, "k"), sumOf(counted, "n")];
  if (n === 0) return null;
  const effect = designEffect(counted, k / n);
  return { ...wilson(k / effect, n / effect), value: k / n };
}

function designEffect(clusters: Cluster[], share: number): number {
  const n = sumOf(clusters, "n");
  const squares = clusters.reduce((sum, cluster) => sum + cluster.n ** 2, 0);
  const largest = squares / n;
  // A share of 0 or 1 shows no variance, but the repeats of a cluster may always agree.
  if (clusters.length < 2 || share === 0 || share === 1) return largest;
  const residuals = clusters.reduce((sum, cluster) => sum + (cluster.k - share * cluster.n) ** 2, 0);
  const variance = (clusters.length / (clusters.length - 1)) * (residuals / n ** 2);
  return largest === 1 ? 1 : Math.min(largest, Math.max(1, variance / ((share * (1 - share)) / n)));
}

const sumOf = (clusters: Cluster[], side: keyof Cluster): number =>
  clusters.reduce((sum, cluster) => sum + cluster[side], 0);
