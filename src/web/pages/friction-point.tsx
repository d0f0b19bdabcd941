import type { FrictionDetail } from "../../friction/schema.ts";
import { count, oneLine } from "../../grading/text.ts";
import { humanize, titleOf } from "../../reports/labels.ts";
import { Fact, List } from "../components/figures.tsx";
import type { PromptName } from "../components/filter.tsx";
import { ExternalLink, foreignText, Layout } from "../components/layout.tsx";
import { Time, useTime } from "../components/when.tsx";
import type { PageProps } from "../viewer.ts";
import { costText, State, toScopeQuery } from "./friction.tsx";

type Scope = { promptId?: string; providerId?: string };

/** The title of a prompt. The list contains only the newest prompts, so other prompts have a general name. */
function nameOf(prompts: PromptName[], id: string): string {
  const prompt = prompts.find((each) => each.id === id);
  return prompt ? oneLine(titleOf(prompt), 100) : "Another prompt";
}

type Props = PageProps & { friction: FrictionDetail; scope: Scope; prompts: PromptName[] };

const stateDescriptions: Record<FrictionDetail["state"], string> = {
  new: "First seen in the latest evaluation.",
  open: "Seen in more than one evaluation and still occurring.",
  fixed: "Recent runs reached the same page without hitting this issue.",
  regressed: "Fixed before, now back.",
};

/** A friction point with its history in each prompt. */
export function FrictionPointPage({ site, site: { base }, viewer, friction, scope, prompts }: Props) {
  const { fingerprint, title, severity, category, phase, state, description, quote, url, seenIn, slug } = friction;
  return (
    <Layout
      {...{ site, viewer }}
      path={`/friction/${fingerprint}`}
      title={`Friction: ${oneLine(title, 100)}`}
      crumbs={[{ name: "Friction", path: `/friction?${toScopeQuery(scope)}` }, { name: oneLine(friction.title, 60) }]}
    >
      <header class={`head severity-${severity}`}>
        <p class="pills">
          <State state={state} />
          <span class="pill severity">{severity}</span>
          <span class="pill">{humanize(category)}</span>
          <span class="pill">{phase}</span>
          {friction.isPreview && (
            <span class="pill" data-preview="true">
              preview only
            </span>
          )}
        </p>
        <h1>{title}</h1>
        <p class="lead">{stateDescriptions[state]}</p>
      </header>
      <dl class="facts">
        <Fact name="Occurrences">
          {seenIn.runs} of {count(seenIn.of, "run")} that reached this page
        </Fact>
        <Fact name="Cost per run">{costText(friction.cost, friction.seenIn)}</Fact>
        <Fact name="First seen">
          <Time at={friction.firstSeenAt} />
        </Fact>
        <Fact name="Last seen">
          <Time at={friction.lastSeenAt} />
        </Fact>
        {friction.fixedAt && (
          <Fact name="Fixed">
            <Time at={friction.fixedAt} />
          </Fact>
        )}
        <Fact name="Latest report">
          <a href={`${base}/reports/${slug}#friction`}>
            Report of <Time at={friction.lastSeenAt} />
          </a>
        </Fact>
        {url && (
          <Fact name="URL">
            <ExternalLink url={url} />
          </Fact>
        )}
      </dl>
      <p>{description}</p>
      {quote && (
        <blockquote class="quote" {...foreignText}>
          {quote}
        </blockquote>
      )}
      {friction.field.length > 0 && <FieldReports base={base} reports={friction.field} />}
      {friction.prompts.map(({ promptId, state, since, evaluations }) => (
        <PromptHistory key={promptId} {...{ state, since, evaluations }} name={nameOf(prompts, promptId)} />
      ))}
    </Layout>
  );
}

const FieldReports = ({ base, reports }: { base: string; reports: FrictionDetail["field"] }) => (
  <section>
    <h2>
      Reported from the field <span class="pill">unverified</span>
    </h2>
    <ul>
      {reports.map(({ id, title, reports: total, lastReportedAt }) => (
        <li key={id}>
          <a href={`${base}/friction/field/${id}`}>{title}</a>{" "}
          <span class="muted">
            {count(total, "report")}, last <Time at={lastReportedAt} />
          </span>
        </li>
      ))}
    </ul>
  </section>
);

type HistoryProps = Omit<FrictionDetail["prompts"][number], "promptId"> & { name: string };

/** The evaluations of a prompt in which the friction point occurred. `name`: the name of the prompt. */
const PromptHistory = ({ name, state, since, evaluations }: HistoryProps) => (
  <section>
    <h2>
      {name} <State state={state} />
    </h2>
    <p class="muted">
      Seen in {since.met} of {since.of} runs since it first appeared
      {since.missed > 0 && `; not in the last ${since.missed}`}.
    </p>
    <OccurrenceChart evaluations={evaluations} />
    <List
      label="Evaluations"
      isStacked
      labels={["Evaluation"]}
      numbers={["Runs that reached this page", "Occurrences"]}
    >
      {evaluations.toReversed().map(({ evalRequestId, at, met, of }) => (
        <tr key={evalRequestId}>
          <th scope="row" class="when">
            <Time at={at} />
          </th>
          <td class="number" data-label="Runs that reached this page">
            {of}
          </td>
          <td class="number" data-label="Occurrences">
            {met}
          </td>
        </tr>
      ))}
    </List>
  </section>
);

type Evaluation = FrictionDetail["prompts"][number]["evaluations"][number];

/** `share`: null if no run reached the page. */
function barClass(share: number | null): string {
  if (share === null) return "none";
  return share === 0 ? "gone" : "rest";
}

/** One bar for each evaluation, oldest first. It shows the share of runs with this friction among the runs that reached the page. */
function OccurrenceChart({ evaluations }: { evaluations: Evaluation[] }) {
  // In SVG units. `edge`: the space above and below the bars.
  const [step, gap, height, edge] = [18, 4, 44, 2];
  const [barWidth, barHeight] = [step - gap, height - 2 * edge];
  const width = Math.max(1, evaluations.length) * step;
  const shares = evaluations.map(({ met, of }) => (of === 0 ? null : met / of));
  const shareTexts = shares.map((share) => (share === null ? "page not reached" : `${Math.round(share * 100)}%`));
  const label = `Share of runs with this issue by evaluation, oldest first: ${shareTexts.join(", ")}`;
  const toTime = useTime();
  const dayOf = (evaluation: Evaluation | undefined) => evaluation && toTime(evaluation.at).slice(0, 10);
  const [first, last] = [dayOf(evaluations[0]), dayOf(evaluations.at(-1))];
  return (
    <figure class="occurrences">
      <svg viewBox={`0 0 ${width} ${height}`} width={width} height={height} role="img">
        <title>{label}</title>
        {shares.map((share, i) => (
          <g key={evaluations[i]?.evalRequestId}>
            <rect class={barClass(share)} x={i * step} y={edge} width={barWidth} height={barHeight} rx="2" />
            {share !== null && share > 0 && (
              <rect
                class="met"
                x={i * step}
                y={edge + barHeight * (1 - share)}
                width={barWidth}
                height={barHeight * share}
                rx="2"
              />
            )}
          </g>
        ))}
      </svg>
      <figcaption>
        Share of runs with this issue (0 to 100%), {first === last ? first : `${first} to ${last}`}
      </figcaption>
    </figure>
  );
}
