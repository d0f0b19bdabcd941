import {
  changesText,
  falseAlarmsText,
  meanText,
  ratioText,
  reasonText,
  scoreText,
  shareText,
  statusLabels,
  stopLabels,
  successText,
  unmetText,
  usedText,
  verdictLabels,
} from "../../experiments/labels.ts";
import type { Experiment, ExperimentSummary } from "../../experiments/schema.ts";
import { count, dollars } from "../../grading/text.ts";
import { formatNumber } from "../../reports/labels.ts";
import { Fact, List, TimeFacts } from "../components/figures.tsx";
import { ForestPlot, type ForestRow } from "../components/forest-plot.tsx";
import { ButtonForm } from "../components/form-parts.tsx";
import { foreignText, Layout } from "../components/layout.tsx";
import { type ListRange, offsetLinks, Pager, toHref } from "../components/pager.tsx";
import { TriggeringTable } from "../components/triggering.tsx";
import { When } from "../components/when.tsx";
import { may, type PageProps } from "../viewer.ts";

const tones = { running: "running", completed: "completed", stopped: "superseded" } as const;

const Status = ({ status }: { status: keyof typeof tones }) => (
  <span class={`status-mark run-${tones[status]}`} data-status={status}>
    {statusLabels[status]}
  </span>
);

type ListProps = PageProps & ListRange & { experiments: ExperimentSummary[]; now: number };

/** Experiments of the organization, newest first. */
export function ExperimentsPage({ site, viewer, experiments, total, offset, perPage, now }: ListProps) {
  const here = `${site.base}/experiments`;
  return (
    <Layout {...{ site, viewer }} path="/experiments" title="Experiments">
      <div class="toolbar">
        <h1>Experiments</h1>
        <span class="muted">{formatNumber(total)}</span>
        {may(viewer, "run") && (
          <span class="end">
            <a class="button main" href={`${here}/new`}>
              New experiment
            </a>
          </span>
        )}
      </div>
      {experiments.length === 0 ? (
        <div class="empty">
          <h2>No experiments yet</h2>
          <p>
            An experiment runs the same prompts in several arms, such as with and without your MCP server, and says what
            helps agents and by how much. <a href={`${site.base}/docs/experiments`}>How experiments work</a>
          </p>
        </div>
      ) : (
        <List label="Experiments" isStacked labels={["Status", "Experiment", "Result"]} numbers={["Runs", "Created"]}>
          {experiments.map((experiment) => (
            <tr key={experiment.id}>
              <td>
                <Status status={experiment.status} />
              </td>
              <td class="title">
                <a class="plain" href={`${here}/${experiment.id}`} {...foreignText}>
                  {experiment.title}
                </a>
              </td>
              <td class="soft" data-label="Result">
                {experiment.status === "running"
                  ? `${count(experiment.progress.ended, "run")} ended`
                  : experiment.verdicts
                      .map(({ arm, verdict }) => `${arm}: ${verdictLabels[verdict].toLowerCase()}`)
                      .join(", ")}
              </td>
              <td class="number" data-label="Runs">
                {experiment.progress.of}
              </td>
              <td class="number soft" data-label="Created">
                <When at={experiment.createdAt} now={now} />
              </td>
            </tr>
          ))}
        </List>
      )}
      <Pager links={offsetLinks({ offset, perPage, total, toPage: (offset) => toHref(here, { offset }) })} />
    </Layout>
  );
}

type Props = PageProps & { experiment: Experiment; now: number };

/** An experiment: its arms, how each arm differs from the base, and the evidence for each difference. */
export function ExperimentPage({ site, site: { base }, viewer, experiment, now }: Props) {
  const { id, title, status, stopReason, progress, analysis, prompts } = experiment;
  const falseAlarms = falseAlarmsText(experiment);
  const titles = new Map(prompts.map((prompt) => [prompt.id, prompt.title ?? "Deleted prompt"]));
  return (
    <Layout
      {...{ site, viewer }}
      path={`/experiments/${id}`}
      title={`Experiment: ${title}`}
      refreshSeconds={status === "running" ? 10 : undefined}
      crumbs={[{ name: "Experiments", path: "/experiments" }, { name: title }]}
    >
      <header class="toolbar">
        <h1 {...foreignText}>{title}</h1>
        <Status status={status} />
        {status === "running" && may(viewer, "run") && (
          <ButtonForm action={`${base}/experiments/${id}/cancel`}>Cancel experiment</ButtonForm>
        )}
      </header>
      {status !== "completed" && (
        <p class="notice">
          {progress.ended} of {count(progress.of, "run")} finished. {stopReason && stopLabels[stopReason]}
        </p>
      )}
      {falseAlarms && <p class="notice">{falseAlarms}</p>}
      {experiment.everyWeeks !== null && (
        <div class="notice">
          It is repeated every {experiment.everyWeeks === 1 ? "week" : `${experiment.everyWeeks} weeks`}.{" "}
          {status !== "running" && may(viewer, "run") && (
            <ButtonForm action={`${base}/experiments/${id}/cancel`}>Stop repeating</ButtonForm>
          )}
        </div>
      )}
      <Arms experiment={experiment} />
      <TriggeringTable experiment={experiment} base={base} />
      {analysis.contrasts.map((contrast) => (
        <ContrastSection key={contrast.arm} {...{ analysis, contrast, titles, base }} />
      ))}
      {analysis.uninformative.length > 0 && (
        <p class="notice">
          All runs of all arms had the same outcome on these prompts, so they don’t show which arm succeeds more often:{" "}
          {analysis.uninformative.map((promptId) => titles.get(promptId) ?? promptId).join(", ")}.
        </p>
      )}
      <ArmFriction experiment={experiment} base={base} />
      <Details experiment={experiment} now={now} base={base} />
    </Layout>
  );
}

type ContrastProps = {
  contrast: Experiment["analysis"]["contrasts"][number];
  /** By the ID of the prompt. */
  titles: Map<string, string>;
  base: string;
};

/** How an arm differs from the base. */
function ContrastSection({ analysis, contrast, titles, base }: ContrastProps & { analysis: Experiment["analysis"] }) {
  const { arm, verdict, overall, prompts, usedOnly } = contrast;
  const unmet = unmetText(analysis, arm);
  const promptRows = prompts.flatMap(({ promptId, contrast: { score } }): ForestRow[] =>
    score ? [{ label: titles.get(promptId) ?? promptId, ...score, isTotal: false }] : [],
  );
  const rows = [
    ...(prompts.length > 1 ? promptRows : []),
    ...(overall.score ? [{ label: "All prompts", ...overall.score, isTotal: true }] : []),
  ];
  return (
    <section class="contrast" data-verdict={verdict}>
      <h2 {...foreignText}>
        {arm} <small>against {analysis.arms[0]?.arm}</small>
      </h2>
      <p>
        <strong>{verdictLabels[verdict]}.</strong> {scoreText(contrast.overall)}.{" "}
        {overall.success && `Goal reached in ${successText(contrast.overall)}. `}
        {reasonText(contrast)}
      </p>
      {unmet && <p class="notice">{unmet}</p>}
      {rows.length > 0 && (
        <ForestPlot rows={rows} title={`Change of the score by ${arm}: ${scoreText(contrast.overall)}`} />
      )}
      {prompts.length > 1 && <PromptContrasts {...{ contrast, titles, base }} />}
      {usedOnly && (
        <p class="muted">
          Among runs that used the treatment: {usedOnly.delta.toFixed(1)} points ({count(usedOnly.n, "pair")} of runs).
          These runs may be the easier ones, so this is not an effect.
        </p>
      )}
    </section>
  );
}

/** One line for each arm, with its runs, its results and its verdict. */
const Arms = ({ experiment: { arms, analysis } }: { experiment: Experiment }) => {
  const hasUse = analysis.arms.some(({ used }) => used !== null);
  const hasContamination = analysis.arms.some(({ contaminated }) => contaminated > 0);
  return (
    <List
      label="Arms"
      isStacked
      labels={["Arm", "Verdict"]}
      numbers={[
        ...["Runs", "Mean score (95% CI)", "Goal reached", "Cost", "Time"],
        ...(hasUse ? ["Used"] : []),
        ...(hasContamination ? ["Contaminated"] : []),
      ]}
    >
      {analysis.arms.map((arm, i) => {
        const contrast = analysis.contrasts.find((each) => each.arm === arm.arm);
        return (
          <tr key={arm.arm}>
            <th scope="row" {...foreignText}>
              {arm.arm} <small>{i === 0 ? "Base" : changesText(arms[i] ?? {})}</small>
            </th>
            <td data-label="Verdict">{contrast ? verdictLabels[contrast.verdict] : "–"}</td>
            <td class="number" data-label="Runs">
              {arm.n}
              {arm.failed > 0 && <small> {arm.failed} failed</small>}
            </td>
            <td class="number" data-label="Mean score (95% CI)">
              {meanText(arm)}
            </td>
            <td class="number" data-label="Goal reached">
              {shareText(arm)}
            </td>
            <td class="number" data-label="Cost">
              {contrast ? ratioText(contrast.overall.cost) : "–"}
            </td>
            <td class="number" data-label="Time">
              {contrast ? ratioText(contrast.overall.seconds) : "–"}
            </td>
            {hasUse && (
              <td class="number" data-label="Used">
                {usedText(arm)}
              </td>
            )}
            {hasContamination && (
              <td class="number" data-label="Contaminated">
                {arm.contaminated}
              </td>
            )}
          </tr>
        );
      })}
    </List>
  );
};

const PromptContrasts = ({ contrast, titles, base }: ContrastProps) => (
  <List label={`Prompts with ${contrast.arm}`} isStacked labels={["Prompt"]} numbers={["Score", "Goal reached"]}>
    {contrast.prompts.map(({ promptId, contrast: overall }) => (
      <tr key={promptId}>
        <th scope="row" {...foreignText}>
          <a href={`${base}/prompts/${promptId}`}>{titles.get(promptId) ?? promptId}</a>
        </th>
        <td class="number" data-label="Score">
          {scoreText(overall)}
        </td>
        <td class="number" data-label="Goal reached">
          {successText(overall)}
        </td>
      </tr>
    ))}
  </List>
);

/** Friction points that some arms hit more often than others. */
const ArmFriction = ({ experiment: { friction, arms, analysis }, base }: { experiment: Experiment; base: string }) => {
  const differing = friction.filter(({ runs }) => Math.max(...runs) > Math.min(...runs));
  const runsOfArms = analysis.arms.map(({ n, contaminated }) => n + contaminated);
  if (differing.length === 0) return null;
  return (
    <>
      <h2>Friction by arm</h2>
      <List label="Friction by arm" isStacked labels={["Friction point"]} numbers={arms.map(({ name }) => name)}>
        {differing.map(({ fingerprint, title, runs }) => (
          <tr key={fingerprint}>
            <th scope="row">
              <a class="plain" href={`${base}/friction/${fingerprint}`} {...foreignText}>
                {title}
              </a>
            </th>
            {runs.map((n, i) => (
              <td key={arms[i]?.name} class="number" data-label={arms[i]?.name}>
                {n} of {runsOfArms[i] ?? 0}
              </td>
            ))}
          </tr>
        ))}
      </List>
    </>
  );
};

const Details = ({ experiment, now, base }: { experiment: Experiment; now: number; base: string }) => (
  <>
    <h2>Details</h2>
    <dl class="facts">
      <TimeFacts createdAt={experiment.createdAt} completedAt={experiment.completedAt} now={now} />
      <Fact name="Prompts">{experiment.prompts.length}</Fact>
      <Fact name="Runs per prompt and arm">{experiment.repeats}</Fact>
      <Fact name="Cost">{experiment.spentUsd === null ? "Unknown" : dollars(experiment.spentUsd)}</Fact>
      {experiment.budgetUsd !== null && <Fact name="Budget">{dollars(experiment.budgetUsd)}</Fact>}
      <Fact name="Random seed">{experiment.seed}</Fact>
    </dl>
    <p class="muted">
      Ranges are 95% confidence intervals. Every run counts for its arm, whether or not it used the treatment.{" "}
      <a href={`${base}/docs/experiments`}>How experiments work</a> ·{" "}
      <a href={`${base}/experiments/${experiment.id}/runs.csv`}>Download the runs (CSV)</a>
    </p>
  </>
);
