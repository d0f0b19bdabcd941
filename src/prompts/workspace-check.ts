import type { OptionalPart } from "../agents/agent.ts";
import type { AgentChoice } from "../agents/choice.ts";
import { invalidField } from "../errors.ts";
import { checkHttpUrl } from "../schema.ts";
import type { WorkspaceSetup } from "./workspace-schema.ts";

const processVariables = /^(PATH|HOME|USER|TMPDIR|PWD|SHELL|LD_.*|NODE_OPTIONS|EVALD_.*)$/i;
const proxyVariables = /^(https?|all|no|ftp)_proxy$/i;
const certificateVariables = /^(SSL_CERT_.*|GIT_SSL_.*|.*_CA_(BUNDLE|CERTS|INFO))$/i;
/** Variables that could replace programs, or that connect commands to the network and its certificates. */
const reservedVariables = [processVariables, proxyVariables, certificateVariables];

/** Throws bad_request, which names the field. */
export function checkWorkspace(
  { archive, repository, env = {}, skills, mcpServers = {} }: WorkspaceSetup,
  hasArchive: (id: string) => boolean,
): void {
  if (archive !== undefined && repository !== undefined)
    throw invalidField("workspace", "set either archive or repository, not both");
  for (const [field, id] of [
    ["workspace.archive", archive],
    ["workspace.skills.archive", skills?.archive],
  ] as const)
    if (id !== undefined && !hasArchive(id))
      throw invalidField(field, `no archive has the ID ${id}; upload it with POST /api/v1/archives`);
  if (skills && (skills.archive === undefined) === (skills.folder === undefined))
    throw invalidField("workspace.skills", "set exactly one of archive and folder");
  if (skills?.folder !== undefined && leavesWorkspace(skills.folder))
    throw invalidField("workspace.skills.folder", "use a path relative to the workspace, without ..");
  for (const [name, { url, command, args, env }] of Object.entries(mcpServers)) {
    const field = `workspace.mcpServers.${name}`;
    if ((url === undefined) === (command === undefined))
      throw invalidField(field, "set exactly one of url and command");
    if (url !== undefined) checkHttpUrl(`${field}.url`, url);
    if (url !== undefined && (args ?? env)) throw invalidField(field, "only servers with a command have args and env");
  }
  if (repository) checkHttpUrl("workspace.repository.url", repository.url);
  checkVariables("workspace.env", env);
}

/** Throws bad_request, which names the field, if evald sets one of the variables itself. */
export function checkVariables(field: string, env: Record<string, string> = {}): void {
  const reserved = Object.keys(env).find((name) => reservedVariables.some((pattern) => pattern.test(name)));
  if (reserved) throw invalidField(field, `${reserved} is set by evald; use another name`);
}

/** Whether a path may lead out of the workspace. */
export const leavesWorkspace = (path: string): boolean =>
  path.startsWith("/") || path.split("/").includes("..") || path.includes("\0");

const partNames: Record<OptionalPart, string> = { skills: "skills", mcpServers: "MCP servers" };

/** Throws bad_request if an agent can't use a part of the workspace. */
export function checkWorkspaceParts(agents: AgentChoice[], id: string | null, workspace: WorkspaceSetup | null): void {
  if (workspace === null) return;
  const { lacks = [] } = agents.find((each) => each.id === id) ?? {};
  const part = lacks.find((each) => workspace[each] !== undefined);
  if (part) throw invalidField(`workspace.${part}`, `the agent ${id} does not support ${partNames[part]}`);
}
