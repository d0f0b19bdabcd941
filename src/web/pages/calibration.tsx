import { type Static, Type } from "@sinclair/typebox";
import {
  calibrationTitle,
  estimateText,
  evidenceLabels,
  resultText,
  statusLabels,
  worseLabels,
} from "../../calibration/labels.ts";
import { type Calibration, CalibrationRequest } from "../../calibration/schema.ts";
import { dollars } from "../../grading/text.ts";
import { formatNumber } from "../../reports/labels.ts";
import { ButtonForm, Notices, Submit } from "../components/form-parts.tsx";
import { foreignText, Layout } from "../components/layout.tsx";
import { type ListRange, offsetLinks, Pager, toHref } from "../components/pager.tsx";
import { CheckField, type FormError, SchemaField, SchemaForm } from "../components/schema-form.tsx";
import { When } from "../components/when.tsx";
import { may, type PageProps } from "../viewer.ts";

const { agent, model, sites, budgetUsd, everyDays } = CalibrationRequest.properties;

/** The fields of the form for a new calibration. `agreed`: whether the user has agreed to the cost. */
export const CalibrationForm = Type.Object({
  promptId: Type.Optional(Type.String({ maxLength: 36 })),
  ...{ agent, model, sites, budgetUsd, everyDays },
  agreed: Type.Optional(Type.Boolean()),
});
export type CalibrationForm = Static<typeof CalibrationForm>;

export type CalibrationChoices = { prompts: (readonly [id: string, name: string])[]; agents: string[] };

type Props = PageProps &
  CalibrationChoices &
  ListRange & {
    calibrations: Calibration[];
    now: number;
    values: URLSearchParams;
    /** A calibration that costs money, before the user has agreed; null: none. */
    planned: Calibration | null;
    formError?: FormError | undefined;
    errorMessage?: string | undefined;
  };

/** How well agents find known problems: a form for a new calibration, and earlier calibrations, newest first. */
export function CalibrationPage(props: Props) {
  const { site, viewer, calibrations, total, offset, perPage, now, formError, errorMessage } = props;
  const here = `${site.base}/calibration`;
  return (
    <Layout
      {...{ site, viewer }}
      path="/calibration"
      title="Calibration"
      refreshSeconds={calibrations.some(({ status }) => status === "running") ? 10 : undefined}
    >
      <div class="toolbar">
        <h1>Calibration</h1>
        <span class="muted">{formatNumber(total)}</span>
      </div>
      <p class="lead">
        evald plants known defects and measures how many of them an agent finds. Each report says what the newest
        calibration of its agent measured. <a href={`${site.base}/docs/calibration`}>How calibration works</a>
      </p>
      <Notices errorMessage={formError?.field ? undefined : errorMessage} />
      {may(viewer, "run") && (
        <details open={total === 0 || props.planned !== null || Boolean(formError ?? errorMessage)}>
          <summary>New calibration</summary>
          <CalibrationFields {...props} />
        </details>
      )}
      {calibrations.length === 0 ? (
        <div class="empty">
          <h2>Nothing was measured yet</h2>
          <p>A calibration of the explorer costs nothing and takes a few minutes.</p>
        </div>
      ) : (
        calibrations.map((calibration) => <Entry key={calibration.id} {...{ site, viewer, calibration, now }} />)
      )}
      <Pager links={offsetLinks({ offset, perPage, total, toPage: (offset) => toHref(here, { offset }) })} />
    </Layout>
  );
}

const CalibrationFields = ({ site, values, planned, formError, prompts, agents }: Props) => (
  <SchemaForm
    schema={CalibrationForm}
    values={values}
    formError={formError ?? null}
    action={`${site.base}/calibration`}
    class="narrow"
  >
    <SchemaField
      name="agent"
      label="Agent"
      options={[["", "That of a new prompt"], ...agents.map((id) => [id, id] as const)]}
    />
    <SchemaField name="model" label="Model" />
    <SchemaField
      name="promptId"
      label="Defects in"
      options={[["", "Sites that evald makes"], ...prompts.map(([id, name]) => [id, `The docs of ${name}`] as const)]}
    />
    <SchemaField name="sites" label="Sites" hint="Each makes 3 runs. Default: 12 for the explorer, otherwise 3." />
    <SchemaField name="budgetUsd" label="Budget in USD" hint="Required for an agent with a model." />
    <SchemaField name="everyDays" label="Repeat after days" placeholder="Never" />
    {planned && (
      <>
        <p class="notice">{estimateText(planned)}</p>
        <CheckField name="agreed">Start it for this cost</CheckField>
      </>
    )}
    <Submit>Calibrate</Submit>
  </SchemaForm>
);

type EntryProps = PageProps & { calibration: Calibration; now: number };

const Entry = ({ site: { base }, viewer, calibration, now }: EntryProps) => {
  const { id, status, createdAt, evidence, worse, spentUsd, nextAt, everyDays, source, promptId } = calibration;
  const isRepeated = nextAt !== null;
  return (
    <section id={id}>
      <h2>
        {source === "docs" ? (
          <a class="plain" href={`${base}/prompts/${promptId}`}>
            {calibrationTitle(calibration)}
          </a>
        ) : (
          calibrationTitle(calibration)
        )}{" "}
        <small>
          {statusLabels[status]}, <When at={createdAt} now={now} />
        </small>
      </h2>
      <p>{resultText(calibration)}</p>
      {worse.map((figure) => (
        <p key={figure} class="notice bad">
          Significantly worse than before: it {worseLabels[figure]}.
        </p>
      ))}
      {evidence.length > 0 && (
        <details>
          <summary>What was missed or invented ({evidence.length})</summary>
          <ul>
            {evidence.map(({ figure, what, runId }) => (
              <li key={`${runId} ${what}`}>
                <a href={`${base}/runs/${runId}`}>{evidenceLabels[figure]}</a>: <span {...foreignText}>{what}</span>
              </li>
            ))}
          </ul>
        </details>
      )}
      <p class="muted">
        {spentUsd > 0 && `Cost ${dollars(spentUsd)}. `}
        {isRepeated && (
          <>
            Repeated every {everyDays === 1 ? "day" : `${everyDays} days`}, next <When at={nextAt} now={now} />.
          </>
        )}
      </p>
      {(status === "running" || isRepeated) && may(viewer, "run") && (
        <ButtonForm action={`${base}/calibration/${id}/cancel`} label={`Stop the calibration of ${calibration.agent}`}>
          Stop
        </ButtonForm>
      )}
    </section>
  );
};
