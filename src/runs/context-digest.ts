import { and, eq, sql } from "drizzle-orm";
import type { AgentOptions } from "../agents/task.ts";
import { findArchiveDigest } from "../archives/archives.ts";
import type { Context, OrgId } from "../context.ts";
import { bound, literal, statement } from "../db/prepared.ts";
import { type RunTask, sessionEvents } from "../db/tables/runs.ts";
import type { WorkspaceSetup } from "../prompts/workspace-schema.ts";
import { type SessionId, toSessionEvent } from "../reports/session-events.ts";

/** The contents to which a setup refers by ID or name. null: none, or unknown. */
type ResolvedContents = {
  /** SHA-256 of the archive. */
  archiveDigest: string | null;
  /** The commit that was checked out. */
  commit: string | null;
  /** The skills that were copied, each with the SHA-256 of its files. */
  skills: { name: string; digest: string }[];
};

/**
 * The digest of everything that an agent finds in its workspace when it starts, and of its options. Only runs with the same digest are compared. The
 * values of variables are excluded. null: an empty workspace and no options.
 */
function digestOf(
  setup: WorkspaceSetup | undefined,
  options: AgentOptions | undefined,
  { archiveDigest, commit, skills }: ResolvedContents,
): string | null {
  if (setup === undefined && options === undefined) return null;
  const { archive, repository, env = {}, mcpServers = {}, skills: _, ...rest } = setup ?? {};
  const { env: optionEnv, ...otherOptions } = options ?? {};
  const servers = Object.entries(mcpServers).map(([name, { env, ...server }]) => [
    name,
    { ...server, ...(env && { env: Object.keys(env).sort() }) },
  ]);
  const content = {
    ...rest,
    ...(skills.length > 0 && { skills: skills.map(({ name, digest }) => [name, digest]) }),
    ...(servers.length > 0 && { mcpServers: Object.fromEntries(servers) }),
    ...(archive !== undefined && { archive: archiveDigest ?? archive }),
    ...(repository && { repository: { url: repository.url, commit: commit ?? repository.ref } }),
    ...(Object.keys(env).length > 0 && { env: Object.keys(env).sort() }),
    ...(options && { agentOptions: { ...otherOptions, ...(optionEnv && { env: Object.keys(optionEnv).sort() }) } }),
  };
  if (Object.keys(content).length === 0) return null;
  return hashOf(content).slice(0, 16);
}

const preparedWorkspace = statement((db) =>
  db
    .select()
    .from(sessionEvents)
    .where(
      and(
        eq(sessionEvents.runId, bound("runId")),
        eq(sessionEvents.attempt, bound("attempt")),
        sql`${sessionEvents.type} = 'milestone' and json_extract(${sessionEvents.data}, '$.name') = 'workspace_prepared'`,
      ),
    )
    .limit(literal(1)),
);

/** The digest of what the agent of a finished session found in its workspace when it started. null: it found nothing. */
export function contextDigestOf(
  ctx: Context,
  { orgId, runId, attempt }: SessionId,
  { workspace, agentOptions }: RunTask,
): string | null {
  const archive = workspace?.archive;
  const row = preparedWorkspace(ctx.db).get({ runId, attempt });
  const event = row && toSessionEvent(row);
  const contents = event?.type === "milestone" && event.name === "workspace_prepared" ? event.detail : null;
  return digestOf(workspace, agentOptions, {
    archiveDigest: archive === undefined ? null : findArchiveDigest(ctx, orgId as OrgId, archive),
    commit: contents?.repository?.commit ?? null,
    skills: contents?.skills ?? [],
  });
}

/** SHA-256 of a value in hex. The order of keys does not matter. */
export const hashOf = (value: unknown): string =>
  new Bun.CryptoHasher("sha256").update(JSON.stringify(value, sortKeys)).digest("hex");

const sortKeys = (_: string, item: unknown): unknown =>
  item && typeof item === "object" && !Array.isArray(item)
    ? Object.fromEntries(Object.entries(item).sort(([a], [b]) => (a < b ? -1 : 1)))
    : item;
