import { isClear } from "../../comparisons/changes.ts";
import type { LatestResults } from "../../comparisons/latest.ts";
import { count } from "../../grading/text.ts";
import { calibrationText } from "../../reports/calibration.ts";
import {
  agentLabel,
  describeEdits,
  describeEvidence,
  describeSources,
  notMeasured,
  outcomeLabels,
  scopeHints,
  scopeLabels,
  titleOf,
  whyNotMeasured,
} from "../../reports/labels.ts";
import type { Report } from "../../reports/schema.ts";
import { docsVariantOf } from "../../runs/lists.ts";
import type { EvalResult } from "../../stats/repeats.ts";
import { countPlantedMistakes, describeMistakes } from "../example.ts";
import type { Site } from "../site.ts";
import { may, type Viewer } from "../viewer.ts";
import { BaselineSummary } from "./baseline.tsx";
import { Sparkline } from "./charts.tsx";
import { GradeMark } from "./figures.tsx";
import { foreignText } from "./layout.tsx";
import { DocsMark } from "./run-table.tsx";
import { LatestChange } from "./score.tsx";

/** `viewer`: undefined on a shared page, which doesn't link to the comparison. */
type Props = { site: Site; viewer?: Viewer; report: Report; result: EvalResult | null; latest: LatestResults | null };

/** What was evaluated, by which agent and how often. Then the grade, the key finding and the score. Each is shown only once. */
export function ReportHead({ site, viewer, report, result, latest }: Props) {
  const evidenceText = describeEvidence(report);
  const notes = [describeSources(report), describeEdits(report)].filter((note) => note !== null);
  const { score, scope, grade, outcome, status, keyFinding, product, agent, run } = report;
  const place = [product.name, product.host].filter((word) => word !== null).join(" · ");
  const notice = whyNotMeasured(report);
  const runs = result?.n ?? 0;
  const mistakes = countPlantedMistakes(report, site);
  return (
    <header class={grade === null ? "head" : "head graded"}>
      {grade !== null && <GradeMark grade={grade} big />}
      <div>
        <p class="pills">
          {/* If they are the same, the line with the score already says it. */}
          {outcomeLabels[outcome] !== evidenceText && (
            <span class={`pill outcome-${outcome}`}>{outcomeLabels[outcome]}</span>
          )}
          {place && <span class="pill product">{place}</span>}
          {mistakes && <span class="pill planted">{describeMistakes(mistakes)}</span>}
          <span class="pill" {...foreignText}>
            {titleOf(report.task)}
          </span>
          <span class="pill">{agentLabel(agent)}</span>
          {runs > 0 && <span class="pill">{count(runs, "run")}</span>}
          <DocsMark variant={docsVariantOf(run)} />
          {status !== "published" && <span class="pill">{status}</span>}
        </p>
        <h1>{keyFinding}</h1>
        <p class="score-line">
          <ScoreLine report={report} />
          {score !== null && scope !== "goal" && may(viewer, "write") && (
            <>
              {/* Without evidence, the line ends with “Goal not tested”, followed by what to do about that. */}
              {report.evidence === null ? ": " : " · "}
              <a href={`${site.base}/prompts/${report.prompt.id}/edit#checks`}>add a success check</a>
            </>
          )}
          {viewer && isAtOrAfterChange(latest, report) && (
            <>
              {" · "}
              <LatestChange latest={latest} base={site.base} promptId={report.prompt.id} />
            </>
          )}
          <Sparkline scores={(latest?.points ?? []).map((point) => point.score)} subject="the latest evaluations" />
        </p>
        {notes.map((note) => (
          <p key={note} class="notice">
            {note}
          </p>
        ))}
        {score !== null && (
          <BaselineSummary
            report={mixesSides(latest, report) ? { ...report, baseline: null } : report}
            result={result}
          />
        )}
        {(viewer || report.calibration) && <Calibration {...{ site, viewer, report }} />}
        {notice !== null && <p class="notice">{notice}</p>}
      </div>
    </header>
  );
}

/** How well the agent finds known problems. */
const Calibration = ({ site, viewer, report }: { site: Site; viewer?: Viewer; report: Report }) => {
  const { text, command } = calibrationText(report);
  return (
    <p class="muted calibration">
      {viewer ? <a href={`${site.base}/calibration`}>Calibration</a> : "Calibration"}: {text}
      {command !== null && viewer && (
        <>
          {" "}
          (<code>{command}</code>)
        </>
      )}
      .
    </p>
  );
};

/** The score and its basis. */
export const ScoreLine = ({ report }: { report: Report }) => {
  const { score, scope } = report;
  const evidence = describeEvidence(report);
  return (
    <>
      {score === null ? (
        notMeasured
      ) : (
        <>
          {scope !== "goal" && <span title={scopeHints[scope]}>{scopeLabels[scope]} </span>}
          <strong>{score}</strong> of 100
        </>
      )}
      {evidence !== null && ` · ${evidence}`}
    </>
  );
};

/** Whether the last runs before the report are from both sides of a change. Their usual range would then contradict the change. */
const mixesSides = (latest: LatestResults | null, report: Report): boolean =>
  isAtOrAfterChange(latest, report) &&
  report.baseline?.kind === "window" &&
  report.baseline.score?.isUsual === true &&
  report.baseline.from < (latest?.change?.at ?? "");

/**
 * Whether a report belongs to one of the latest evaluations, and the newest significant change of the prompt happened in that evaluation or an
 * earlier one.
 */
function isAtOrAfterChange(latest: LatestResults | null, { run }: Report): boolean {
  if (!latest?.change || !isClear(latest.change)) return false;
  const isOfReport = ({ evalRequestId }: { evalRequestId: string }) => evalRequestId === run.evalRequestId;
  return latest.points.some(isOfReport) && latest.change.after.evaluations.some(isOfReport);
}
