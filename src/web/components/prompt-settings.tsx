import type { Limits } from "../../config/limits.ts";
import type { DeclaredCheck } from "../../prompts/check-schema.ts";
import type { Prompt } from "../../prompts/schema.ts";
import { scopeLabels } from "../../reports/labels.ts";
import type { Site } from "../site.ts";
import { Fact } from "./figures.tsx";
import { Copyable } from "./form-parts.tsx";
import { ExternalLink } from "./layout.tsx";
import { limitLabels } from "./prompt-fields.tsx";
import { Tags } from "./score.tsx";

/** The data for the settings of a prompt. */
export type PromptSettingsProps = {
  site: Site;
  prompt: Prompt;
  providerName: string | null;
  /** The agents that an evaluation would use now. */
  agentNames: string;
};

/** The settings of a prompt, its public badge, and how to run it over REST. */
export const PromptSettings = ({ site: { base, baseUrl }, prompt, providerName, agentNames }: PromptSettingsProps) => (
  <section aria-labelledby="settings">
    <h2 id="settings">Settings</h2>
    <dl class="facts narrow">
      {prompt.agents ? (
        <Fact name="Agents">{agentNames}</Fact>
      ) : (
        <Fact name="Agent">{prompt.agent ?? `${agentNames} (default)`}</Fact>
      )}
      {prompt.model && !prompt.agents && <Fact name="Model">{prompt.model}</Fact>}
      <Fact name="Runs per evaluation">{prompt.runsPerEval ?? 1}</Fact>
      <Fact name="Provider">{providerName ?? "None"}</Fact>
      {prompt.tags.length > 0 && (
        <Fact name="Tags">
          <Tags tags={prompt.tags} base={base} />
        </Fact>
      )}
      {prompt.workerLabels.length > 0 && <Fact name="Worker labels">{prompt.workerLabels.join(", ")}</Fact>}
      {Object.entries(prompt.limits ?? {}).map(([name, value]) => (
        <Fact key={name} name={`Limit: ${limitLabels[name as keyof Limits]}`}>
          {value}
        </Fact>
      ))}
      {prompt.successBar && (
        <Fact name="Success without a tested goal">
          {scopeLabels[prompt.successBar.scope]} score of at least {prompt.successBar.minScore}
        </Fact>
      )}
      {prompt.supersedesByDefault && <Fact name="New runs over the API">Supersede runs of the same preview</Fact>}
      {prompt.isOnResultsPage && <Fact name="Public results page">Listed</Fact>}
      <Fact name="Reports">
        {prompt.reviewBeforePublishing ? "Saved as drafts until reviewed" : "Published automatically"}
      </Fact>
      {(prompt.additionalUrls ?? []).map(({ url }) => (
        <Fact key={url} name="Start URL">
          <ExternalLink url={url} />
        </Fact>
      ))}
      {(prompt.declaredChecks ?? []).map((check, i) => (
        <Fact key={i} name="Success check">
          <CheckFact check={check} />
        </Fact>
      ))}
      <WorkspaceFacts workspace={prompt.workspace} />
    </dl>
    {prompt.badgeUrl && (
      <>
        <h3>Badge</h3>
        <p>
          <img class="badge" src={base + prompt.badgeUrl.slice(baseUrl.length)} alt="Latest score" />
        </p>
        <pre class="wrapped">
          <code id="badge-markdown">{`![evald](${prompt.badgeUrl})`}</code>
        </pre>
        <button type="button" data-copy="#badge-markdown">
          Copy
        </button>
        <p>
          For <a href="https://shields.io/badges/endpoint-badge">Shields</a>, use the same URL with <code>.json</code>.
          To revoke the URL, turn the badge off.
        </p>
      </>
    )}
    <h3>API</h3>
    <Copyable id="prompt-id" buttonText="Copy ID" value={prompt.id} />
    <pre class="wrapped">
      <code id="prompt-curl">{curlOf(baseUrl, prompt)}</code>
    </pre>
    <button type="button" data-copy="#prompt-curl">
      Copy
    </button>
  </section>
);

/** "the header A", "the headers A, B" */
function namesText(noun: string, values: Record<string, string>): string {
  const names = Object.keys(values);
  return `the ${noun}${names.length === 1 ? "" : "s"} ${names.join(", ")}`;
}

/** A success check in one line. */
function CheckFact({ check }: { check: DeclaredCheck }) {
  const { url, method = "GET", headers, body, command, file, status, json, env, exitCode, contains, invariant } = check;
  return (
    <>
      {url !== undefined && (
        <>
          {method !== "GET" && `${method} `}
          <ExternalLink url={url} /> {status ?? 200}
        </>
      )}
      {command !== undefined && (
        <>
          <code>{command}</code> exit code {exitCode ?? 0}
        </>
      )}
      {file !== undefined && <code>{file}</code>}
      {contains && `, “${contains}”`}
      {json && (
        <>
          , JSON <code>{json.pointer || "root"}</code> {testOf(json)}
        </>
      )}
      {headers && `, with ${namesText("header", headers)}`}
      {body && ", with a body"}
      {env && `, with ${namesText("variable", env)}`}
      {invariant && ", may pass before the run"}
    </>
  );
}

function testOf({ equals, exists = true }: NonNullable<DeclaredCheck["json"]>): string {
  if (!exists) return "does not exist";
  return equals === undefined ? "exists" : `equals ${JSON.stringify(equals)}`;
}

const WorkspaceFacts = ({ workspace }: { workspace: Prompt["workspace"] }) => {
  const { archive, repository, setup, env = {}, instructions, skills, mcpServers = {} } = workspace ?? {};
  return (
    <>
      {repository && (
        <Fact name="Repository">
          {repository.url} <code>{repository.ref}</code>
        </Fact>
      )}
      {archive && (
        <Fact name="Archive">
          <code>{archive}</code>
        </Fact>
      )}
      {setup && (
        <Fact name="Setup command">
          <code>{setup}</code>
        </Fact>
      )}
      {Object.entries(env).map(([name, value]) => (
        <Fact key={name} name="Variable">
          <code>{`${name}=${value}`}</code>
        </Fact>
      ))}
      {instructions && <Fact name="AGENTS.md">{`${instructions.length} characters`}</Fact>}
      {skills && (
        <Fact name="Skills">
          <code>{skills.folder ?? skills.archive}</code>
        </Fact>
      )}
      {Object.entries(mcpServers).map(([name, { url, command, args = [] }]) => (
        <Fact key={name} name="MCP server">
          {name} <code>{url ?? [command, ...args].join(" ")}</code>
        </Fact>
      ))}
    </>
  );
};

function curlOf(baseUrl: string, { id, templateVars, templateDefaults }: Prompt): string {
  const templateArgs =
    templateVars && Object.fromEntries(templateVars.map((name) => [name, templateDefaults?.[name] ?? "…"]));
  // Escapes a single quote inside a single-quoted shell string.
  const body = JSON.stringify({ urlMap: {}, ...(templateArgs && { templateArgs }) }).replaceAll("'", "'\\''");
  return `curl -s ${baseUrl}/api/v1/prompts/${id}/run \\
  -H "Authorization: Bearer $EVALD_KEY" -H "Content-Type: application/json" \\
  -d '${body}'`;
}
