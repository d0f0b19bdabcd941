import type { Comparison } from "../../comparisons/compare.ts";
import { capitalize, count } from "../../grading/text.ts";
import { humanize } from "../../reports/labels.ts";

/** Friction that appeared on the later side of a comparison, or disappeared from it. */
export const ComparedFriction = ({ comparison: { friction }, base }: { comparison: Comparison; base: string }) => (
  <>
    <FrictionChanges name="New friction" points={friction.new} side="after" base={base} />
    <FrictionChanges name="Resolved friction" points={friction.gone} side="before" base={base} />
  </>
);

type ChangesProps = { name: string; points: Comparison["friction"]["new"]; side: "before" | "after"; base: string };

/** Friction that is on only one side. */
const FrictionChanges = ({ name, points, side, base }: ChangesProps) =>
  points.length === 0 ? null : (
    <section data-friction={side}>
      <h2>
        {name} <small>{points.length}</small>
      </h2>
      <ul class="brief">
        {points.map(({ fingerprint, severity, category, title, [side]: share }) => (
          <li key={fingerprint}>
            <a class="plain" href={`${base}/friction/${fingerprint}`}>
              {title}
            </a>
            <span class="soft">
              <span class={`severity-${severity}`}>{capitalize(severity)}</span> · {humanize(category)} · in{" "}
              {share.runs} of {count(share.of, "run")}
            </span>
          </li>
        ))}
      </ul>
    </section>
  );
