import { duration } from "../../grading/text.ts";
import { formatNumber } from "../../reports/labels.ts";
import type { Timeline } from "../../reports/timeline.ts";
import { toEventHref } from "./figures.tsx";

const [width, height, baseline] = [1200, 72, 62];

type Props = {
  timeline: Timeline;
  /** Friction points, each with its label, its title and its first supporting event. */
  marks: { name: string; title: string; seq: number }[];
  /** The first and the last event on the page. */
  firstAndLast: [number, number] | null;
};

/**
 * Overview of the whole session: activity, failures, friction, and the part that the page shows. Hidden from screen readers, because the text below
 * and the filter contain the same information.
 */
export function SessionStrip({ timeline, marks, firstAndLast }: Props) {
  const { slices, durationMs, tMsOf, events, failures } = timeline;
  const step = width / slices.length;
  const maxEvents = Math.max(1, ...slices.map((slice) => slice?.events ?? 0));
  // The scale is logarithmic, so that even a single event is visible.
  const heightOf = (n: number) => (n === 0 ? 0 : 4 + (Math.log1p(n) / Math.log1p(maxEvents)) * (baseline - 18));
  const toX = (seq: number) => (tMsOf(seq) / Math.max(1, durationMs)) * width;
  return (
    <figure class="strip">
      <svg viewBox={`0 0 ${width} ${height}`} preserveAspectRatio="none" aria-hidden="true">
        {firstAndLast && (
          <rect
            class="shown"
            x={toX(firstAndLast[0])}
            width={Math.max(4, toX(firstAndLast[1]) - toX(firstAndLast[0]))}
            y="0"
            height={height}
          />
        )}
        {slices.map((slice, i) => {
          if (slice === null) return null;
          const [allHeight, failureHeight] = [heightOf(slice.events), heightOf(slice.failures)];
          return (
            <a key={slice.fromSeq} href={toEventHref("", slice.fromSeq)} tabindex={-1}>
              <title>{`${slice.events} events, ${slice.failures} failed`}</title>
              <rect class="hit" x={i * step} width={step} y="0" height={height} />
              <rect class="some" x={i * step + 1} width={step - 2} y={baseline - allHeight} height={allHeight} />
              {failureHeight > 0 && (
                <rect
                  class="bad"
                  x={i * step + 1}
                  width={step - 2}
                  y={baseline - failureHeight}
                  height={failureHeight}
                />
              )}
            </a>
          );
        })}
        {marks.map(({ name, title, seq }) => (
          <a key={name} href={toEventHref("", seq)} tabindex={-1}>
            <title>{`${name}: ${title}`}</title>
            <rect class="mark" x={Math.min(width - 6, toX(seq))} width="6" y={baseline + 2} height="8" />
          </a>
        ))}
      </svg>
      <figcaption>
        <span>0 s</span>
        <span>
          {formatNumber(events)} events in {duration(durationMs / 1000)} · <i class="key bad" />{" "}
          {formatNumber(failures.length)} {failures.length === 1 ? "failure" : "failures"} · <i class="key mark" />{" "}
          friction
        </span>
        <span>{duration(durationMs / 1000)}</span>
      </figcaption>
    </figure>
  );
}
