import type { Comparison } from "../../comparisons/compare.ts";
import type { Evidence } from "../../comparisons/evidence.ts";
import { toWhyHref } from "./change-links.ts";

type Props = {
  base: string;
  promptId: string | undefined;
  delta: Evidence["delta"];
  /** IDs of evaluations. */
  before: string[];
  after: string[];
};

/** A link to the page that explains how a prompt's score changed between evaluations. Only shown if the score changed. */
export function WhyLink({ base, promptId, delta, before, after }: Props) {
  const hasChanged = delta !== null && delta.value !== 0;
  const hasBothSides = before.length > 0 && after.length > 0;
  if (promptId === undefined || !hasChanged || !hasBothSides) return null;
  return (
    <p>
      <a class="button" href={toWhyHref(base, promptId, { before, after })}>
        See why
      </a>
    </p>
  );
}

/** A `WhyLink` for a comparison. Only shown if the comparison concerns a single prompt. */
export const SidesWhyLink = ({ base, comparison }: { base: string; comparison: Comparison }) => {
  const { base: earlier, head, evidence } = comparison;
  const [promptId, ...others] = head.promptIds;
  return (
    <WhyLink
      base={base}
      promptId={others.length === 0 ? promptId : undefined}
      delta={evidence.delta}
      before={earlier.evalRequestIds}
      after={head.evalRequestIds}
    />
  );
};
