import { duration } from "../../grading/text.ts";
import { formatBytes } from "../../reports/labels.ts";
import type { PagesVisited, Step, StepKind } from "../../reports/pages-visited.ts";
import { Fold, toEventHref } from "./figures.tsx";
import { foreignText } from "./layout.tsx";
import { pathOf } from "./page-list.tsx";

const kindLabels: Record<StepKind, string> = {
  goal: "answers the goal",
  read: "read",
  "dead-end": "dead end",
  missed: "failed to load",
};

const provenanceLabels: Record<Step["provenance"], string> = {
  given: "start URL",
  "llms.txt": "in llms.txt",
  sitemap: "in the sitemap",
  link: "linked",
  search: "search result",
  guessed: "guessed URL",
};

const maxDepth = 6;
/** In SVG units. 16 units are one rem. `corner`: radius of the bend in an edge. */
const [rowHeight, indent, dotRadius, corner] = [32, 16, 5, 8];
const column = (depth: number) => 10 + Math.min(depth, maxDepth) * indent;

type Props = { pagesVisited: PagesVisited; session: string | null };

/**
 * The docs as the agent visited them. Pages are in the order of the visits, and each is under the page that led to it. `session`: the page with the
 * events of the session.
 */
export function VisitedPages({ pagesVisited: { steps, unlisted }, session }: Props) {
  if (steps.length === 0) return null;
  const stepsByKind = Map.groupBy(steps, ({ kind }) => kind);
  const width = column(Math.max(...steps.map(({ depth }) => depth))) + 10;
  return (
    <Fold id="pages-visited" title="Pages visited" count={steps.length + unlisted}>
      <ul class="legend">
        {(["goal", "read", "dead-end", "missed"] as const).map((kind) => (
          <li key={kind} class={`step-${kind}`}>
            <i class="dot" /> {stepsByKind.get(kind)?.length ?? 0} {kindLabels[kind]}
          </li>
        ))}
      </ul>
      <div class="visit-rows">
        <svg
          viewBox={`0 0 ${width} ${steps.length * rowHeight}`}
          width={`${width / 16}rem`}
          height={`${(steps.length * rowHeight) / 16}rem`}
          aria-hidden="true"
        >
          {steps.map((step, i) => (
            <Edge key={step.seq} steps={steps} index={i} />
          ))}
          {steps.map(({ seq, kind, depth }, i) => (
            <circle key={seq} class={`step-${kind}`} cx={column(depth)} cy={middle(i)} r={dotRadius} />
          ))}
        </svg>
        <ol>
          {steps.map((step) => (
            <StepRow key={step.seq} step={step} session={session} />
          ))}
        </ol>
      </div>
      {unlisted > 0 && <p class="muted">{unlisted} more pages in the session</p>}
    </Fold>
  );
}

const middle = (index: number) => index * rowHeight + rowHeight / 2;

/** The edge to a step from the page that linked to it. The last sibling draws the vertical line for all siblings. */
function Edge({ steps, index }: { steps: Step[]; index: number }) {
  const { parent, depth } = steps[index] as Step;
  if (parent === null) return null;
  const isLast = steps.findLastIndex((step) => step.parent === parent) === index;
  const x = column((steps[parent] as Step).depth);
  const y = middle(index);
  return (
    <>
      {isLast && <path d={`M${x} ${middle(parent) + dotRadius + 1}V${y - corner}`} />}
      <path d={`M${x} ${y - corner}Q${x} ${y} ${x + corner} ${y}H${column(depth) - dotRadius}`} />
    </>
  );
}

function StepRow({ step, session }: { step: Step; session: string | null }) {
  const { url, title, kind, seq, status, ms, bytes, visits, provenance } = step;
  return (
    <li class={`step-${kind}`}>
      <span class="page" title={url} {...foreignText}>
        {title ?? pathOf(url)}
        {title !== null && <small>{pathOf(url)}</small>}
      </span>
      <span class="how">{provenanceLabels[provenance]}</span>
      <span class="what">
        {kind === "missed" ? (status ?? "no response") : kindLabels[kind]}
        {visits > 1 && `, ${visits} times`}
      </span>
      <span class="size">
        {duration(ms / 1000)}
        {bytes > 0 && ` · ${formatBytes(bytes)}`}
      </span>
      {session === null ? <span>event {seq}</span> : <a href={toEventHref(session, seq)}>event {seq}</a>}
    </li>
  );
}

/** "/docs/upload 404 (guessed)" */
function describeStep({ title, url, kind, status, provenance }: Step): string {
  const name = title ?? URL.parse(url)?.pathname ?? url;
  const failure = kind === "missed" ? ` ${status ?? "no response"}` : "";
  return `${name}${failure}${provenance === "guessed" ? " (guessed)" : ""}`;
}

const maxPathSteps = 8;

/** The pages that the agent opened, in one line. */
export function PathTaken({ pagesVisited: { steps }, session }: Props) {
  if (steps.length === 0) return null;
  return (
    <p class="path-taken">
      {steps.slice(0, maxPathSteps).map((step, i) => (
        <span key={step.seq} class={`step-${step.kind}`}>
          {i > 0 && " → "}
          {session === null ? describeStep(step) : <a href={toEventHref(session, step.seq)}>{describeStep(step)}</a>}
        </span>
      ))}
      {steps.length > maxPathSteps && (
        <>
          {" "}
          → <a href="#pages-visited">{steps.length - maxPathSteps} more</a>
        </>
      )}
    </p>
  );
}
