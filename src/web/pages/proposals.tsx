import { type Static, Type } from "@sinclair/typebox";
import type { ReadingRefusal } from "../../agents/explorer/docs-reading.ts";
import { count, list } from "../../grading/text.ts";
import { textOf } from "../../prompts/workspace-schema.ts";
import type { TaskProposal } from "../../proposals/proposal.ts";
import { defaultMaxUsd, maxFileChars, ProposalRequest, type ProposalSet } from "../../proposals/schema.ts";
import { Notices, Submit } from "../components/form-parts.tsx";
import { ExternalLink, foreignText, Layout } from "../components/layout.tsx";
import { type FormError, SchemaField, SchemaForm } from "../components/schema-form.tsx";
import { When } from "../components/when.tsx";
import { may, type PageProps } from "../viewer.ts";

/** The fields of the form that requests proposals. */
export const ProposalForm = Type.Object({
  ...Type.Pick(ProposalRequest, ["docsUrl", "openapiUrl", "mcpUrl", "primaryTask", "model"]).properties,
  skill: Type.Optional(textOf(maxFileChars, "Content of a SKILL.md")),
});
export type ProposalForm = Static<typeof ProposalForm>;

/** The two fields that every form for proposals has. */
export const ProposalFields = () => (
  <>
    <SchemaField
      name="docsUrl"
      label="Docs URL"
      hint="Where the agent starts."
      required
      placeholder="https://docs.acme.example/"
    />
    <SchemaField
      name="primaryTask"
      label="Most common first task (optional)"
      hint="What most people do first with your product. Its prompts are proposed first."
      placeholder="Back up a folder"
    />
  </>
);

type FormProps = PageProps & {
  values: URLSearchParams;
  sets: ProposalSet[];
  /** The models that can propose prompts. */
  models: string[];
  now: number;
  formError?: FormError | undefined;
  errorMessage?: string | undefined;
};

const crumbs = [{ name: "Prompts", path: "/prompts" }, { name: "Propose from docs" }];
const statusLabels: Record<ProposalSet["status"], string> = {
  pending: "Waiting",
  running: "Reading the docs",
  completed: "Ready",
  failed: "Failed",
};

/** The form that proposes prompts from docs, and earlier proposals. */
export const ProposePage = ({ site, viewer, values, sets, models, now, formError, errorMessage }: FormProps) => (
  <Layout {...{ site, viewer, crumbs }} path="/prompts/propose" title="Propose prompts from docs">
    <h1>Propose prompts from docs</h1>
    <p class="lead">
      evald reads the docs and proposes tasks, each with the line that it comes from. You choose which become prompts.
    </p>
    <Notices errorMessage={formError?.field === "" ? errorMessage : undefined} />
    {may(viewer, "run") && (
      <SchemaForm
        schema={ProposalForm}
        values={values}
        formError={formError ?? null}
        action={`${site.base}/prompts/propose`}
        class="narrow"
      >
        <ProposalFields />
        <SchemaField
          name="openapiUrl"
          label="OpenAPI URL (optional)"
          placeholder="https://api.acme.example/openapi.json"
        />
        <SchemaField name="mcpUrl" label="MCP server URL (optional)" placeholder="https://mcp.acme.example/mcp" />
        <SchemaField
          name="skill"
          label="SKILL.md (optional)"
          hint="The text of a skill. The tasks that its description names are proposed too."
          rows={4}
        />
        {models.length > 0 && (
          <SchemaField
            name="model"
            label="Who proposes"
            hint={`A model costs at most $${defaultMaxUsd}. It gets the text of the docs.`}
            options={[["", "Rules, without cost"], ...models.map((model) => [model, model] as const)]}
          />
        )}
        <Submit>Propose prompts</Submit>
      </SchemaForm>
    )}
    {sets.length > 0 && (
      <section aria-labelledby="earlier">
        <h2 id="earlier">Earlier proposals</h2>
        <ul>
          {sets.map(({ proposalSetId, docsUrl, status, proposals, createdAt }) => (
            <li key={proposalSetId}>
              <a href={`${site.base}/prompts/propose/${proposalSetId}`}>{docsUrl}</a>{" "}
              <span class="soft">
                {status === "completed" ? count(proposals.length, "proposal") : statusLabels[status]},{" "}
                <When at={createdAt} now={now} />
              </span>
            </li>
          ))}
        </ul>
      </section>
    )}
  </Layout>
);

type SetProps = PageProps & {
  set: ProposalSet;
  /** The model that runs of the prompts would use; null: none, so the runs are free. */
  paidModel: string | null;
  /** The submitted values, if they were rejected. */
  rejected?: { values: URLSearchParams; errorMessage: string } | undefined;
};

const isUnfinished = ({ status }: ProposalSet) => status === "pending" || status === "running";

/** A set of proposals, and the form that creates prompts from them. It updates live until the docs are read. */
export function ProposalSetPage(props: SetProps) {
  const { site, viewer, set } = props;
  const path = `/prompts/propose/${set.proposalSetId}`;
  const live = isUnfinished(set)
    ? { "hx-sse:connect": `${site.base}${path}/live?org=${viewer.org}`, "hx-swap": "innerMorph" }
    : {};
  return (
    <Layout
      {...{ site, viewer, path }}
      title="Proposed prompts"
      refreshSeconds={isUnfinished(set) ? 2 : undefined}
      crumbs={[
        { name: "Prompts", path: "/prompts" },
        { name: "Propose from docs", path: "/prompts/propose" },
        { name: "Proposals" },
      ]}
    >
      <h1>Proposed prompts</h1>
      <div {...live}>
        <ProposalSetPart {...props} />
      </div>
    </Layout>
  );
}

/** The part of the page that updates live. */
export function ProposalSetPart(props: SetProps) {
  const { site, set, rejected } = props;
  const { docsUrl, status, read, failure, proposals } = set;
  if (status === "failed")
    return (
      <>
        <p class="notice bad" role="alert" data-code={failure?.code}>
          {failure?.detail} {failure && remedies[failure.code]}
        </p>
        <p>
          <a class="button" href={`${site.base}/prompts/propose?${new URLSearchParams({ docsUrl })}`}>
            Try again
          </a>
        </p>
      </>
    );
  if (read === null)
    return (
      <p role="status">
        {statusLabels[status]}: <ExternalLink url={docsUrl} />. This takes up to three minutes.
      </p>
    );
  return (
    <>
      <p class="soft" data-pages={read.pages}>
        <ExternalLink url={docsUrl} />: {count(read.pages, "page")} read in {read.seconds.toFixed(1)} s. The tasks test
        only what is documented or was asked for. {set.costUsd !== 0 && costOf(set)} <Dropped dropped={set.dropped} />
      </p>
      <Notices errorMessage={rejected?.errorMessage} />
      {proposals.length === 0 ? (
        <p class="empty">
          The docs don’t say how to do anything.{" "}
          <a href={`${site.base}/prompts/new?${new URLSearchParams({ docsUrl })}`}>Write a prompt yourself</a>
        </p>
      ) : (
        <Choice {...props} />
      )}
    </>
  );
}

const costOf = ({ costUsd }: ProposalSet) =>
  costUsd === null ? "What the model cost is unknown." : `The model cost $${costUsd.toFixed(4)}.`;

/** What to do about a failure, by its code. Other failures have no remedy. */
const remedies: Record<string, string> = {
  robots: "Allow the user agent evald in robots.txt.",
  sign_in: "Enter the URL of public docs.",
  no_text: "Enter the URL of a page whose HTML or Markdown has text.",
  no_mcp_server: "Enter the URL that MCP clients connect to without signing in.",
  no_api_description: "Enter the URL of the file itself.",
} satisfies Record<ReadingRefusal, string>;

const Dropped = ({ dropped }: { dropped: ProposalSet["dropped"] }) => {
  const total = dropped.reduce((sum, each) => sum + each.count, 0);
  return total === 0 ? null : (
    <span
      title={list(dropped.map((each) => `${each.count} ${each.reason.replaceAll("_", " ")}`))}
    >{`${count(total, "candidate")} dropped.`}</span>
  );
};

/** The number of proposals that are selected at first. */
const selectedAtFirst = 5;

function Choice({ site, viewer, set, paidModel, rejected }: SetProps) {
  const mayChoose = may(viewer, "write");
  const { proposals, prompts, proposalSetId } = set;
  // Proposals are numbered starting at 1.
  const openNumbers = proposals.map((_, i) => i + 1).filter((number) => prompts[number] === undefined);
  const selected = new Set(rejected?.values.getAll("only") ?? openNumbers.slice(0, selectedAtFirst).map(String));
  return (
    <form method="post" action={`${site.base}/prompts/propose/${proposalSetId}`} class="proposals">
      <ol>
        {proposals.map((proposal, i) => (
          <ProposalRow
            key={`${proposal.title} ${proposal.source.url} ${proposal.source.line}`}
            {...{ proposal, base: site.base, values: rejected?.values }}
            number={i + 1}
            promptId={prompts[i + 1]}
            isOpen={mayChoose && prompts[i + 1] === undefined}
            isSelected={selected.has(String(i + 1))}
          />
        ))}
      </ol>
      {mayChoose && openNumbers.length > 0 && (
        <footer>
          {paidModel !== null && (
            <label class="check">
              <input type="checkbox" name="agreed" checked={rejected?.values.has("agreed")} /> I agree to pay for runs
              with {paidModel}.
            </label>
          )}
          <p class="toolbar">
            <button type="submit" class={paidModel === null ? undefined : "main"}>
              <span>
                Create <span class="chosen" /> prompts
              </span>
            </button>
            <button type="submit" name="do" value="run" class={paidModel === null ? "main" : undefined}>
              Create and run
            </button>
          </p>
        </footer>
      )}
    </form>
  );
}

type RowProps = {
  base: string;
  proposal: TaskProposal;
  number: number;
  promptId: string | undefined;
  /** Whether the proposal can be selected. */
  isOpen: boolean;
  isSelected: boolean;
  values: URLSearchParams | undefined;
};

/** `demand`: proposed from what agents looked for but didn't find. Such a proposal has no line in the docs. */
const authorLabels: Record<TaskProposal["by"], string> = {
  rules: "",
  model: "by a model",
  demand: "",
};
const needLabels: Record<TaskProposal["needs"][number], string> = {
  account: "an account",
  secret: "a secret",
  workspace: "files in the workspace",
  approval: "your approval: it may buy, delete or send something",
};

function ProposalRow({ base, proposal, number, promptId, isOpen, isSelected, values }: RowProps) {
  const { title, text, endGoal, source, tags, by, needs, declaredChecks, checksNotRun, docsOwnWords, hints } = proposal;
  const submittedText = (field: "title" | "endGoal") => values?.get(`${field}.${number}`) ?? proposal[field];
  const marks = [...tags, authorLabels[by]].filter((mark) => mark !== "");
  const checks = declaredChecks.map(({ command, url, file }) => command ?? url ?? file ?? "");
  return (
    <li data-number={number}>
      <div>
        {isOpen ? (
          <>
            <label class="check">
              <input type="checkbox" name="only" value={String(number)} checked={isSelected} /> <strong>{title}</strong>
            </label>
            <div class="field">
              <label for={`title.${number}`}>Title</label>
              <input
                id={`title.${number}`}
                name={`title.${number}`}
                value={submittedText("title")}
                maxLength={200}
                required
                dir="auto"
              />
            </div>
            <div class="field">
              <label for={`endGoal.${number}`}>End goal</label>
              <textarea
                id={`endGoal.${number}`}
                name={`endGoal.${number}`}
                rows={2}
                maxLength={2000}
                required
                dir="auto"
              >
                {submittedText("endGoal")}
              </textarea>
            </div>
          </>
        ) : (
          <p>
            <strong>{title}</strong>{" "}
            {promptId !== undefined && <a href={`${base}/prompts/${promptId}`}>Prompt created</a>}
            <br />
            {endGoal}
          </p>
        )}
      </div>
      <div class="soft">
        <p {...foreignText}>{text}</p>
        {source.quote !== source.url && <blockquote {...foreignText}>{source.quote}</blockquote>}
        <p>
          <ExternalLink url={source.url} />
          {by !== "demand" && `, line ${source.line}`}
        </p>
        {by === "demand" && hints.map((hint) => <p key={hint}>{hint}.</p>)}
        {checks.length > 0 && (
          <p>
            Check: <code>{checks.join("; ")}</code>
            {checksNotRun !== null && ` Not tried yet: ${checksNotRun}.`}
          </p>
        )}
        {needs.length > 0 && <p>Needs {list(needs.map((need) => needLabels[need]))}.</p>}
        {docsOwnWords && (
          <p>In the docs’ own words: an agent that reads finds it too easily. Edit the goal to count it in trends.</p>
        )}
        <p class="pills">
          {marks.map((mark) => (
            <span key={mark} class="pill">
              {mark}
            </span>
          ))}
        </p>
      </div>
    </li>
  );
}
