import { maxArchiveBytes } from "../../archives/archive-check.ts";
import type { Draft } from "../prompt-draft.ts";
import type { archiveFields, workspaceFields } from "../workspace-draft.ts";
import { controlProps, Field } from "./field.tsx";
import { useTime } from "./when.tsx";

type WorkspaceField = (typeof workspaceFields)[number];
type Archives = { id: string; files: number; createdAt: string }[];

/** Inputs for what the workspace holds when the agent starts. */
export const WorkspaceFields = ({
  workspace,
  archives,
  wrong,
}: {
  workspace: Draft["workspace"];
  archives: Archives;
  wrong?: string;
}) => {
  const value = (name: WorkspaceField) => workspace[name] ?? "";
  const input = (name: WorkspaceField) => controlProps(`workspace.${name}`);
  return (
    <details class="more" open={Object.values(workspace).some((each) => each !== "") || wrong !== undefined}>
      <summary>Workspace</summary>
      <p class="hint">Files and settings for the agent. Leave blank to start in an empty directory.</p>
      <Field name="workspace.repositoryUrl" label="Git repository">
        <input
          {...input("repositoryUrl")}
          value={value("repositoryUrl")}
          placeholder="https://git.acme.example/starter.git"
        />
      </Field>
      <Field name="workspace.repositoryRef" label="Branch, tag or commit">
        <input {...input("repositoryRef")} value={value("repositoryRef")} placeholder="main" />
      </Field>
      <Field name="workspace.archive" label="Archive" hint="Used instead of a repository.">
        <ArchiveChoice name="archive" value={value("archive")} archives={archives} />
      </Field>
      <ArchiveFile name="archive" label="Upload an archive" />
      <Field name="workspace.setup" label="Setup command" hint="Runs in the sandbox before the agent.">
        <textarea {...input("setup")} rows={2} placeholder="npm ci">
          {value("setup")}
        </textarea>
      </Field>
      <Field name="workspace.env" label="Environment variables" hint="One NAME=value per line. Don’t put secrets here.">
        <textarea {...input("env")} rows={2} placeholder="ACME_REGION=eu-1">
          {value("env")}
        </textarea>
      </Field>
      <Field name="workspace.instructions" label="AGENTS.md" hint="Instructions that agents read when they start.">
        <textarea {...input("instructions")} rows={4}>
          {value("instructions")}
        </textarea>
      </Field>
      <Field
        name="workspace.skillsFolder"
        label="Skills"
        hint="Workspace folder that contains a SKILL.md, or subfolders that each contain one."
      >
        <input {...input("skillsFolder")} value={value("skillsFolder")} placeholder="skills" />
      </Field>
      <Field name="workspace.skillsArchive" label="Skills archive" hint="Used instead of a folder.">
        <ArchiveChoice name="skillsArchive" value={value("skillsArchive")} archives={archives} />
      </Field>
      <ArchiveFile name="skillsArchive" label="Upload a skills archive" />
      <Field
        name="workspace.mcpServers"
        label="MCP servers"
        hint="JSON object with a server per name: a url, or a command with args and env. Don’t put secrets here."
      >
        <textarea {...input("mcpServers")} rows={3} placeholder='{"acme": {"url": "https://mcp.acme.example/mcp"}}'>
          {value("mcpServers")}
        </textarea>
      </Field>
      {wrong && <p class="wrong">{wrong}</p>}
    </details>
  );
};

const maxMib = maxArchiveBytes / 1024 ** 2;

const ArchiveFile = ({ name, label }: { name: (typeof archiveFields)[number]; label: string }) => (
  <Field
    name={`upload.${name}`}
    label={label}
    hint={`A .tar.gz file of at most ${maxMib} MiB. Replaces the archive selected above.`}
  >
    <input
      id={`upload.${name}`}
      name={`upload.${name}`}
      type="file"
      accept=".gz,.tgz,application/gzip"
      data-max-mib={maxMib}
    />
  </Field>
);

const ArchiveOption = ({ id, files, createdAt, selected }: Archives[number] & { selected: boolean }) => (
  <option value={id} selected={selected}>
    {`${files} files, ${useTime()(createdAt)} (${id.slice(-6)})`}
  </option>
);

const ArchiveChoice = ({ name, value, archives }: { name: WorkspaceField; value: string; archives: Archives }) => (
  <select {...controlProps(`workspace.${name}`)}>
    <option value="">None</option>
    {value !== "" && !archives.some(({ id }) => id === value) && (
      <option value={value} selected>
        {value}
      </option>
    )}
    {archives.map((archive) => (
      <ArchiveOption key={archive.id} {...archive} selected={archive.id === value} />
    ))}
  </select>
);
