import { type Static, Type } from "@sinclair/typebox";
import { estimateText } from "../../experiments/labels.ts";
import type { ExperimentEstimate } from "../../experiments/schema.ts";
import { variable } from "../../prompts/workspace-schema.ts";
import { HttpUrl, OneOf } from "../../schema.ts";
import { Notices, Submit } from "../components/form-parts.tsx";
import { foreignText, Layout } from "../components/layout.tsx";
import { CheckField, type FormError, SchemaField, SchemaForm } from "../components/schema-form.tsx";
import { may, type PageProps } from "../viewer.ts";

const text = (maxLength: number) => Type.Optional(Type.String({ maxLength }));

/** The fields of the form for a new experiment: its prompts, and what each arm changes. A blank field adds no arm. */
export const ExperimentForm = Type.Object({
  promptId: text(36),
  tag: text(50),
  skillsArchive: text(36),
  mcpUrl: Type.Optional(HttpUrl("URL of an MCP server")),
  bare: Type.Optional(Type.Boolean()),
  llmsTxtOf: Type.Optional(HttpUrl("URL of docs")),
  hidden: Type.Optional(Type.Array(Type.String({ maxLength: 2000 }), { maxItems: 50 })),
  withoutPages: Type.Optional(Type.Integer({ minimum: 1, maximum: 19 })),
  editUrl: Type.Optional(HttpUrl("URL of a page")),
  editFind: text(20_000),
  editReplacement: text(100_000),
  otherAgent: text(100),
  otherModel: text(200),
  competitorId: text(36),
  itself: Type.Optional(Type.Boolean()),
  shouldTag: text(50),
  shouldNotTag: text(50),
  triggerOf: text(100),
  templateArgs: Type.Optional(
    Type.Record(Type.String(variable), Type.String({ maxLength: 2000 }), { maxProperties: 50 }),
  ),
  everyWeeks: Type.Optional(Type.Integer({ minimum: 1, maximum: 52 })),
  repeats: Type.Optional(Type.Integer({ minimum: 1, maximum: 50 })),
  budgetUsd: Type.Optional(Type.Number({ exclusiveMinimum: 0 })),
  agreed: Type.Optional(Type.Boolean()),
  do: Type.Optional(OneOf(["estimate", "start"])),
});
export type ExperimentForm = Static<typeof ExperimentForm>;

type Choice = readonly [id: string, name: string];
export type ExperimentChoices = {
  prompts: Choice[];
  tags: string[];
  archives: Choice[];
  agents: string[];
  providers: Choice[];
};

type Props = PageProps &
  ExperimentChoices & {
    values: URLSearchParams;
    /** null: the cost is not estimated yet. */
    estimate: ExperimentEstimate | null;
    formError?: FormError | undefined;
    errorMessage?: string | undefined;
  };

/** The form of a new experiment. */
export function NewExperimentPage(props: Props) {
  const { site, viewer, values, estimate, formError, errorMessage } = props;
  const { prompts, tags } = props;
  const crumbs = [{ name: "Experiments", path: "/experiments" }, { name: "New experiment" }];
  const isPaid = estimate !== null && estimate.maxUsd !== 0;
  return (
    <Layout {...{ site, viewer, crumbs }} path="/experiments/new" title="New experiment">
      <h1>New experiment</h1>
      <p class="lead">
        The base has the prompts as they are. Each field below adds an arm that changes one thing, and the runs of all
        arms are interleaved at random.
      </p>
      <Notices errorMessage={formError?.field ? undefined : errorMessage} />
      {prompts.length === 0 && (
        <p class="empty">
          An experiment needs a prompt. <a href={`${site.base}/prompts/new`}>Create a prompt</a>
        </p>
      )}
      {may(viewer, "run") && prompts.length > 0 && (
        <SchemaForm
          schema={ExperimentForm}
          values={values}
          formError={formError ?? null}
          action={`${site.base}/experiments/new`}
          class="narrow"
        >
          <SchemaField
            name="promptId"
            label="Prompt"
            options={tags.length > 0 ? [...prompts, ["", "All prompts with the tag below"]] : prompts}
          />
          {tags.length > 0 && (
            <SchemaField name="tag" label="Tag" options={[["", "None"], ...tags.map((tag) => [tag, tag] as const)]} />
          )}
          <SchemaField
            name="templateArgs"
            label="Values of template variables, NAME=value per line"
            hint="Variables without a value have the default value of their prompt."
            rows={2}
          />
          <ContextFields {...props} />
          <DocsFields />
          <AgentAndProductFields {...props} />
          <h2>Trust</h2>
          <CheckField name="itself" hint="In place of all arms above. 40 runs per arm make 8 gates.">
            Compare the base with itself, to learn how often a gate fails without a reason
          </CheckField>
          <SchemaField
            name="everyWeeks"
            label="Weeks until it is repeated (optional)"
            hint="The home page says when the comparison with itself gets worse."
          />
          <h2>Size</h2>
          <SchemaField
            name="repeats"
            label="Runs per prompt and arm"
            hint="The explorer always makes one, because its runs do not vary."
          />
          <SchemaField
            name="budgetUsd"
            label="Budget in USD (optional)"
            hint="Repeats that would exceed it are not started."
          />
          {estimate && (
            <p class="notice" role="status">
              {estimateText(estimate)}
            </p>
          )}
          {isPaid && <CheckField name="agreed">I accept this cost</CheckField>}
          <div class="acts">
            <button type="submit" name="do" value="estimate">
              Estimate the cost
            </button>
            <Submit>Start experiment</Submit>
          </div>
        </SchemaForm>
      )}
    </Layout>
  );
}

/** Fields for arms that change what the agent is given. */
const ContextFields = ({ archives, tags }: ExperimentChoices) => (
  <>
    <h2>Context</h2>
    {archives.length > 0 && (
      <SchemaField name="skillsArchive" label="Arm +skill: archive with skills" options={[["", "None"], ...archives]} />
    )}
    <SchemaField
      name="mcpUrl"
      label="Arm +MCP: URL of an MCP server"
      hint="With skills too, there is also an arm with both."
      placeholder="https://mcp.acme.example/mcp"
    />
    <CheckField name="bare">Leave the prompts’ own skills and MCP servers out of the base</CheckField>
    {tags.length > 0 && <LabelFields tags={tags} />}
  </>
);

/** Fields for arms that change what the agent finds in the docs. */
const DocsFields = () => (
  <>
    <h2>Docs</h2>
    <SchemaField
      name="llmsTxtOf"
      label="Arm no llms.txt: hide the llms.txt of these docs"
      placeholder="https://docs.acme.example/"
    />
    <SchemaField
      name="hidden"
      label="Arm hidden: URLs that the agent does not find, one per line"
      hint="Exact, with * at the end for all that begin like this, or with #section for a part of a page."
      rows={2}
    />
    <SchemaField
      name="withoutPages"
      label="Number of arms without a page"
      hint="Each hides one of the pages that runs of the prompt read most, and shows whether the task needs it. In place of all other arms."
    />
    <SchemaField
      name="editUrl"
      label="Arm edited: URL of a page"
      hint="Its text is replaced on the way to the agent. Nothing changes at your site."
    />
    <SchemaField name="editFind" label="Text in the source of the page" rows={2} {...foreignText} />
    <SchemaField name="editReplacement" label="Replacement" rows={2} {...foreignText} />
  </>
);

/** Fields for arms with another agent, model or product. */
const AgentAndProductFields = ({ agents, providers }: ExperimentChoices) => (
  <>
    <h2>Agent and product</h2>
    <SchemaField
      name="otherAgent"
      label="Arm with another agent"
      options={[["", "None"], ...agents.map((id) => [id, id] as const)]}
    />
    <SchemaField name="otherModel" label="Arm with another model" placeholder="openai/gpt-5" />
    {providers.length > 0 && (
      <SchemaField
        name="competitorId"
        label="Arm competitor: the docs of another provider"
        options={[["", "None"], ...providers]}
      />
    )}
  </>
);

/** Which prompts should make agents use the skill or server, and which should not. */
const LabelFields = ({ tags }: { tags: string[] }) => {
  const options = [["", "None"], ...tags.map((tag) => [tag, tag] as const)] as const;
  return (
    <>
      <SchemaField
        name="shouldTag"
        label="Tag of prompts with which agents should use it"
        options={options}
        hint="Prompts with one of these two tags are run, in place of those above."
      />
      <SchemaField name="shouldNotTag" label="Tag of prompts with which they should not" options={options} />
      <SchemaField name="triggerOf" label="Name of the skill or server, if an arm has several" />
    </>
  );
};
