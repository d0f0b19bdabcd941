import { capitalize, count, dollars } from "../../grading/text.ts";
import { humanize } from "../../reports/labels.ts";
import type { BreakdownName, Budget, SpendingReport, SpendingRow } from "../../spending/schema.ts";
import { Meter } from "../components/charts.tsx";
import { Fact, List } from "../components/figures.tsx";
import { type PromptName, promptChoices } from "../components/filter.tsx";
import { ButtonForm, Notices, Submit } from "../components/form-parts.tsx";
import { Layout } from "../components/layout.tsx";
import { Day } from "../components/when.tsx";
import type { PageProps } from "../viewer.ts";

type Props = PageProps & {
  report: SpendingReport;
  /**
   * The months: the month that is shown, such as 2026-11, and its neighbors. A neighbor is null if nothing was spent before, or if it is in the
   * future.
   */
  month: string;
  previousMonth: string | null;
  nextMonth: string | null;
  prompts: PromptName[];
  tags: string[];
  mayChange: boolean;
  successMessage?: string;
  errorMessage?: string;
};

const breakdownTitles: Record<Exclude<BreakdownName, "day">, string> = {
  prompt: "Prompts",
  agent: "Agents",
  model: "Models",
  purpose: "Agents and judges",
  requester: "Members and API keys",
  trigger: "Triggers",
};

/** The number of rows of a breakdown that are not folded. */
const maxRows = 10;

/** What models cost in a month, what the money was spent on, and the budgets. */
export function SpendingPage(props: Props) {
  const { site, viewer, report, month, previousMonth, nextMonth } = props;
  const here = `${site.base}/spending`;
  const { breakdown, previous } = report;
  return (
    <Layout site={site} viewer={viewer} path="/spending" title="Spending">
      <div class="toolbar">
        <h1>Spending</h1>
        <span class="muted">{monthName(month)}</span>
        {previousMonth && <a href={`${here}?month=${previousMonth}`}>← {monthName(previousMonth)}</a>}
        {nextMonth && <a href={`${here}?month=${nextMonth}`}>{monthName(nextMonth)} →</a>}
        <a href={`${here}/export?month=${month}&format=csv`}>CSV</a>
        <a href={`${here}/export?month=${month}&format=json`}>JSON</a>
      </div>
      <Notices successMessage={props.successMessage} errorMessage={props.errorMessage} />
      <Total {...{ report, viewer }} />
      <ForecastPart forecast={report.forecast} />
      {report.spentUsd === 0 && previous.spentUsd === 0 ? (
        <p class="muted">No model was called in this month or the one before. The explorer is free.</p>
      ) : (
        <>
          {(Object.keys(breakdownTitles) as (keyof typeof breakdownTitles)[]).map((by) => (
            <section key={by} class="breakdown" aria-labelledby={`by-${by}`}>
              <h2 id={`by-${by}`}>{breakdownTitles[by]}</h2>
              <Rows
                rows={breakdown[by]}
                label={breakdownTitles[by]}
                maxShown={maxRows}
                toHref={by === "prompt" ? (key) => `${site.base}/prompts/${key}` : undefined}
              />
            </section>
          ))}
          <section aria-labelledby="by-day">
            <h2 id="by-day">Days</h2>
            <DayChart month={month} days={breakdown.day} />
            <details class="fold">
              <summary>All days</summary>
              <Rows rows={breakdown.day} label="Days" />
            </details>
          </section>
          <FailedRuns {...{ base: site.base, failed: report.failedRuns }} />
        </>
      )}
      <Budgets {...props} />
    </Layout>
  );
}

const monthName = (month: string): string =>
  new Date(`${month}-15T00:00:00Z`).toLocaleDateString("en", { month: "long", year: "numeric", timeZone: "UTC" });

const Total = ({ report, viewer }: { report: Props["report"]; viewer: Props["viewer"] }) => {
  const { spentUsd, maxUsdAMonth, expectedUsd, estimatedUsd, reservedUsd, unpricedCalls, previous } = report;
  return (
    <section aria-label="Total">
      <dl class="facts">
        <Fact name="Spent">
          <strong>{dollars(spentUsd)}</strong>
          {maxUsdAMonth !== null && ` of ${dollars(maxUsdAMonth)}`}
        </Fact>
        {expectedUsd !== null && (
          <Fact name="At this pace">
            {dollars(expectedUsd)} for the month
            {maxUsdAMonth !== null && expectedUsd > maxUsdAMonth && (
              <span class="bad"> · {dollars(expectedUsd - maxUsdAMonth)} over the budget</span>
            )}
          </Fact>
        )}
        <Fact name="Month before">
          {dollars(previous.spentUsd)}
          {previous.sameTimeUsd !== previous.spentUsd && ` · ${dollars(previous.sameTimeUsd)} at the same time`}
        </Fact>
        {reservedUsd > 0 && <Fact name="Reserved for active runs">{dollars(reservedUsd)}</Fact>}
        {estimatedUsd > 0 && <Fact name="Of it estimated">{dollars(estimatedUsd)}</Fact>}
      </dl>
      {maxUsdAMonth !== null && <Meter share={spentUsd / maxUsdAMonth} label="Share of the monthly budget" />}
      <p class="hint">
        Includes all model calls by agents and judges, also in failed runs, lost attempts and regrades. Days begin at
        midnight in {viewer.timeZone}. Amounts marked ≈ include estimates for calls that didn’t report their usage.
        {unpricedCalls > 0 && ` ${count(unpricedCalls, "call")} had no known cost.`}
      </p>
    </section>
  );
};

const ForecastPart = ({ forecast }: { forecast: SpendingReport["forecast"] }) =>
  forecast === null || forecast.evaluations === 0 ? null : (
    <section aria-labelledby="forecast">
      <h2 id="forecast">Forecast from schedules</h2>
      <p>
        <strong>{dollars(forecast.monthUsd.expected)}</strong> by the end of the month, between{" "}
        {dollars(forecast.monthUsd.low)} and {dollars(forecast.monthUsd.high)}.
      </p>
      <p class="hint">
        What is spent, plus {count(forecast.runs, "run")} in {count(forecast.evaluations, "scheduled evaluation")} at
        the mean cost of the last 20 runs of their prompt and agent; between their lowest and highest cost. Runs that
        people, CI or scripts start are not included.
        {forecast.unknownRuns > 0 && ` ${count(forecast.unknownRuns, "run")} without earlier runs are left out.`}
      </p>
    </section>
  );

type RowsProps = { rows: SpendingRow[]; label: string; toHref?: (key: string) => string };

function Rows({ rows, label, toHref, maxShown = rows.length }: RowsProps & { maxShown?: number }) {
  const total = rows.reduce((sum, { spentUsd }) => sum + spentUsd, 0);
  const firstRows = rows.slice(0, maxShown);
  const moreRows = rows.slice(firstRows.length);
  return (
    <>
      <SpendingTable {...{ rows: firstRows, label, toHref, total }} />
      {moreRows.length > 0 && (
        <details class="fold">
          <summary>{moreRows.length} more</summary>
          <SpendingTable {...{ rows: moreRows, label: `More ${label.toLowerCase()}`, toHref, total }} />
        </details>
      )}
    </>
  );
}

/** The row `other` is the sum of the remaining rows. It has no page. */
const SpendingTable = ({ rows, label, toHref, total }: RowsProps & { total: number }) => (
  <List label={label} labels={["Name"]} numbers={["Spent", "Share", "Month before"]}>
    {rows.map(({ key, name, spentUsd, estimatedUsd, previousUsd }) => (
      <tr key={key} data-key={key}>
        <th scope="row">{toHref && key !== "other" ? <a href={toHref(key)}>{name}</a> : name}</th>
        <td class="number">
          {estimatedUsd > 0 && "≈ "}
          {dollars(spentUsd)}
        </td>
        <td class="number">{total === 0 ? "–" : `${Math.round((100 * spentUsd) / total)}%`}</td>
        <td class="number soft">{dollars(previousUsd)}</td>
      </tr>
    ))}
  </List>
);

/** If a month cost less than this, its highest bar is lower than the chart. */
const minScaleUsd = 0.01;

/** The days of a month (such as 2026-11) as bars. The chart also shows the highest amount. The table below has the same values. */
function DayChart({ month, days }: { month: string; days: SpendingRow[] }) {
  // In SVG units. `top` and `bottom`: the space for labels.
  const [width, height, top, bottom] = [620, 128, 26, 26];
  const [dayWidth, barWidth] = [20, 14];
  // Keeps the label of the first and the last bar within the chart.
  const halfLabel = 40;
  const [highestDay] = days.toSorted((a, b) => b.spentUsd - a.spentUsd);
  const highestUsd = Math.max(highestDay?.spentUsd ?? 0, minScaleUsd);
  const label = `Spending per day. ${highestDay ? `Most on ${highestDay.name}: ${dollars(highestDay.spentUsd)}.` : ""}`;
  const lastDay = Temporal.PlainYearMonth.from(month).daysInMonth;
  const x = (day: number) => (day - 1) * dayWidth;
  const dayOf = ({ key }: SpendingRow) => Number(key.slice("2026-11-".length));
  return (
    <svg class="day-chart" viewBox={`0 0 ${width} ${height}`} role="img" aria-label={label}>
      {days.map((row) => {
        const barHeight = (row.spentUsd / highestUsd) * (height - top - bottom);
        return (
          <rect key={row.key} x={x(dayOf(row))} y={height - bottom - barHeight} width={barWidth} height={barHeight}>
            <title>{`${row.name}: ${dollars(row.spentUsd)}`}</title>
          </rect>
        );
      })}
      <line x1="0" x2={width} y1={height - bottom} y2={height - bottom} />
      {highestDay && (
        <text
          class="middle"
          x={Math.min(Math.max(x(dayOf(highestDay)) + barWidth / 2, halfLabel), width - halfLabel)}
          y={top - 6}
        >
          {dollars(highestDay.spentUsd)}
        </text>
      )}
      <text class="start" x="0" y={height - 6}>
        {month}-01
      </text>
      <text x={x(lastDay) + barWidth} y={height - 6}>
        {month}-{lastDay}
      </text>
    </svg>
  );
}

const FailedRuns = ({ base, failed }: { base: string; failed: SpendingReport["failedRuns"] }) =>
  failed.runs === 0 ? null : (
    <section aria-labelledby="failed">
      <h2 id="failed">Failed runs</h2>
      <p>
        {dollars(failed.spentUsd)} on {count(failed.runs, "run")} that failed. The most expensive:
      </p>
      <List label="Failed runs" labels={["Run", "Agent", "Cause", "Requested"]} numbers={["Spent"]}>
        {failed.mostExpensive.map(({ runId, prompt, agent, cause, spentUsd, createdAt }) => (
          <tr key={runId}>
            <th scope="row">
              <a href={`${base}/runs/${runId}`}>{prompt.title}</a>
            </th>
            <td>{agent}</td>
            <td>{capitalize(humanize(cause))}</td>
            <td class="when">
              <Day at={createdAt} />
            </td>
            <td class="number">{dollars(spentUsd)}</td>
          </tr>
        ))}
      </List>
    </section>
  );

const Budgets = ({ site: { base }, report, prompts, tags, mayChange }: Props) => (
  <section aria-labelledby="budgets">
    <h2 id="budgets">Budgets</h2>
    <p class="hint">
      Once a monthly budget is spent, runs with a model are refused until the next month. While active runs have
      reserved the rest, others wait.{" "}
      {mayChange && <a href={`${base}/settings`}>Change the budget of the organization</a>}
    </p>
    {report.budgets.length > 0 && (
      <List
        label="Budgets"
        labels={[
          "Prompt or tag",
          { label: "Spent", isNumber: true },
          { label: "Budget", isNumber: true },
          ...(mayChange ? ["Actions"] : []),
        ]}
      >
        {report.budgets.map((budget) => (
          <BudgetRow key={budget.id} {...{ base, budget, mayChange }} />
        ))}
      </List>
    )}
    {mayChange && prompts.length > 0 && (
      <form class="narrow" method="post" action={`${base}/spending/budgets`}>
        <div class="field">
          <label for="budget-of">Prompt or tag</label>
          <select id="budget-of" name="of">
            {tags.map((tag) => (
              <option key={tag} value={`tag:${tag}`}>
                Tag {tag}
              </option>
            ))}
            {promptChoices(prompts).map(([id, title]) => (
              <option key={id} value={`prompt:${id}`}>
                {title}
              </option>
            ))}
          </select>
        </div>
        <div class="field">
          <label for="budget-usd">Monthly budget (USD)</label>
          <input id="budget-usd" name="maxUsdAMonth" type="number" min="0.01" step="any" required />
        </div>
        <Submit>Set budget</Submit>
      </form>
    )}
  </section>
);

const BudgetRow = ({ base, budget, mayChange }: { base: string; budget: Budget; mayChange: boolean }) => {
  const { promptId, tag, name, maxUsdAMonth, spentUsd, reservedUsd } = budget;
  return (
    <tr>
      <th scope="row">{promptId === null ? `Tag ${tag}` : <a href={`${base}/prompts/${promptId}`}>{name}</a>}</th>
      <td class={`number${spentUsd >= maxUsdAMonth ? " bad" : ""}`}>
        {dollars(spentUsd)}
        {reservedUsd > 0 && <small> + {dollars(reservedUsd)} reserved</small>}
      </td>
      <td class="number">{dollars(maxUsdAMonth)}</td>
      {mayChange && (
        <td>
          <ButtonForm
            action={`${base}/spending/budgets`}
            name="remove"
            value={promptId === null ? `tag:${tag}` : `prompt:${promptId}`}
            label={`Remove the budget of ${name}`}
          >
            Remove
          </ButtonForm>
        </td>
      )}
    </tr>
  );
};
