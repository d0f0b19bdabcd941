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

/** `viewer`: absent on a shared page, which doesn't link to the comparison. */
type Props = { site: Site; viewer?: Viewer; report: Report; result: EvalResult | null; latest: LatestResults | null };

/** What was evaluated, by whom and how often; the grade, the key finding and the score, each once. */
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
          {/* The line of the score says it too. */}
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
              {/* Without evidence, the line ends with “Goal not tested”, and this is what to do about it. */}
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

/** How well the agent finds what is known to be wrong. */
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

/** The score, and what it rests on. */
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

/** Whether the last runs before the report are from both sides of a change, so that their usual range would contradict it. */
const mixesSides = (latest: LatestResults | null, report: Report): boolean =>
  isAtOrAfterChange(latest, report) &&
  report.baseline?.kind === "window" &&
  report.baseline.score?.isUsual === true &&
  report.baseline.from < (latest?.change?.at ?? "");

/** Whether a report is of one of the latest evaluations, and the prompt's newest significant change came with that one or before it. */
function isAtOrAfterChange(latest: LatestResults | null, { run }: Report): boolean {
  if (!latest?.change || !isClear(latest.change)) return false;
  const isOfReport = ({ evalRequestId }: { evalRequestId: string }) => evalRequestId === run.evalRequestId;
  return latest.points.some(isOfReport) && latest.change.after.evaluations.some(isOfReport);
}
