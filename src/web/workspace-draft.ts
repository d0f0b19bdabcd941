import { invalidField } from "../errors.ts";
import type { WorkspaceSetup } from "../prompts/workspace-schema.ts";

export const workspaceFields = [
  "archive",
  "repositoryUrl",
  "repositoryRef",
  "setup",
  "instructions",
  "skillsFolder",
  "skillsArchive",
  "mcpServers",
  "env",
] as const;

/** Fields with an archive, which can be uploaded with the form. */
export const archiveFields = ["archive", "skillsArchive"] as const;

/** Variables are lines of NAME=value, MCP servers are JSON. */
export function toWorkspaceDraft(workspace: WorkspaceSetup | null): Record<string, string> {
  if (workspace === null) return {};
  const { repository, env = {}, archive = "", setup = "", instructions = "", skills, mcpServers } = workspace;
  const lines = Object.entries(env).map(([name, value]) => `${name}=${value}`);
  const { url = "", ref = "" } = repository ?? {};
  return {
    ...{ archive, repositoryUrl: url, repositoryRef: ref, setup, instructions, env: lines.join("\n") },
    skillsFolder: skills?.folder ?? "",
    skillsArchive: skills?.archive ?? "",
    mcpServers: mcpServers ? JSON.stringify(mcpServers, null, 2) : "",
  };
}

/** The workspace of the form, not yet validated; null: none. */
export function toWorkspace(draft: Record<string, string>): object | null {
  const text = (name: (typeof workspaceFields)[number]) => (draft[name] ?? "").replaceAll("\r\n", "\n").trim();
  const [archive, url, ref, setup, instructions, folder, skillsArchive] = workspaceFields.map(text);
  const mcpServers = toServers(text("mcpServers"));
  const env = text("env")
    .split("\n")
    .filter((line) => line.trim() !== "")
    .map((line) => [line.split("=")[0]?.trim(), line.includes("=") ? line.slice(line.indexOf("=") + 1) : null]);
  const workspace = {
    ...(archive && { archive }),
    ...((url || ref) && { repository: { url, ref } }),
    ...(setup && { setup }),
    ...(env.length > 0 && { env: Object.fromEntries(env) }),
    ...(instructions && { instructions }),
    ...((folder || skillsArchive) && {
      skills: { ...(folder && { folder }), ...(skillsArchive && { archive: skillsArchive }) },
    }),
    ...(mcpServers !== null && { mcpServers }),
  };
  return Object.keys(workspace).length === 0 ? null : workspace;
}

/** Pasted configuration often includes the object around the servers. */
function toServers(json: string): unknown {
  if (json === "") return null;
  try {
    const value = JSON.parse(json);
    return value?.mcpServers ?? value;
  } catch {
    throw invalidField("workspace.mcpServers", "must be JSON");
  }
}
