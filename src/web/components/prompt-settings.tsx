import type { Limits } from "../../config/limits.ts";
import type { Prompt } from "../../prompts/schema.ts";
import type { Site } from "../site.ts";
import { CopyableId } from "./copyable-id.tsx";
import { Fact } from "./figures.tsx";
import { Outside } from "./layout.tsx";
import { limitLabels } from "./prompt-fields.tsx";
import { Tags } from "./score.tsx";

type Props = {
  site: Site;
  prompt: Prompt;
  providerName: string | null;
  /** The agent that a run would use now. */
  sends: string;
};

/** The settings of a prompt, its public badge, and how to run it over REST. */
export const PromptSettings = ({ site: { base, baseUrl }, prompt, providerName, sends }: Props) => (
  <section aria-labelledby="settings">
    <h2 id="settings">Settings</h2>
    <dl class="facts narrow">
      <Fact name="Agent">{prompt.agent ?? `${sends} (default)`}</Fact>
      {prompt.model && <Fact name="Model">{prompt.model}</Fact>}
      <Fact name="Runs per evaluation">{prompt.runsPerEval ?? 1}</Fact>
      <Fact name="Provider">{providerName ?? "None"}</Fact>
      {prompt.tags.length > 0 && (
        <Fact name="Tags">
          <Tags tags={prompt.tags} base={base} />
        </Fact>
      )}
      {Object.entries(prompt.limits ?? {}).map(([name, value]) => (
        <Fact key={name} name={`Limit: ${limitLabels[name as keyof Limits]}`}>
          {value}
        </Fact>
      ))}
      <Fact name="Reports">
        {prompt.reviewBeforePublishing ? "Saved as drafts until reviewed" : "Published automatically"}
      </Fact>
      {(prompt.additionalUrls ?? []).map(({ url }) => (
        <Fact key={url} name="Start URL">
          <Outside url={url} />
        </Fact>
      ))}
      {(prompt.declaredChecks ?? []).map(({ url, command, file, status, exitCode, contains, invariant }) => (
        <Fact key={url ?? command ?? file} name="Success check">
          {url !== undefined && (
            <>
              <Outside url={url} /> {status ?? 200}
            </>
          )}
          {command !== undefined && (
            <>
              <code>{command}</code> exit code {exitCode ?? 0}
            </>
          )}
          {file !== undefined && <code>{file}</code>}
          {contains && `, “${contains}”`}
          {invariant && ", may pass before the run"}
        </Fact>
      ))}
      <WorkspaceFacts workspace={prompt.workspace} />
    </dl>
    {prompt.badgeUrl && (
      <>
        <h3>Badge</h3>
        <p>
          <img class="badge" src={`${base}/badges/${prompt.id}.svg`} alt="Latest score" />
        </p>
        <pre class="wrapped">
          <code id="badge-markdown">{`![evald](${prompt.badgeUrl})`}</code>
        </pre>
        <button type="button" data-copy="#badge-markdown">
          Copy
        </button>
      </>
    )}
    <h3>API</h3>
    <CopyableId name="prompt-id" value={prompt.id} />
    <pre class="wrapped">
      <code id="prompt-curl">{curlOf(baseUrl, prompt)}</code>
    </pre>
    <button type="button" data-copy="#prompt-curl">
      Copy
    </button>
  </section>
);

const WorkspaceFacts = ({ workspace }: Pick<Prompt, "workspace">) => {
  const { archive, repository, setup, env = {}, instructions } = workspace ?? {};
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
        <Fact name="Set-up command">
          <code>{setup}</code>
        </Fact>
      )}
      {Object.entries(env).map(([name, value]) => (
        <Fact key={name} name="Variable">
          <code>{`${name}=${value}`}</code>
        </Fact>
      ))}
      {instructions && <Fact name="AGENTS.md">{`${instructions.length} characters`}</Fact>}
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
