import { and, eq } from "drizzle-orm";
import { toAgentFailure } from "../agents/agent.ts";
import { changesOf, recordAudit } from "../audit/entries.ts";
import type { LoginEntry } from "../config/agent-entry.ts";
import type { Context, OrgId } from "../context.ts";
import { transaction } from "../db/open.ts";
import { agentLogins } from "../db/tables/keys.ts";
import { badRequest, invalidField, notFound } from "../errors.ts";
import { secretsInLogin } from "../redaction/login-secrets.ts";
import { ownMember, toIso } from "../schema.ts";
import { parseLoginFile } from "./login-file.ts";
import type { AgentLogin } from "./login-schema.ts";
import { seal, unseal } from "./seal.ts";

type AgentLoginRow = typeof agentLogins.$inferSelect;

/** The agents that can work with a login, each with the path of the file in its home directory. */
export const listLoginAgents = ({ agents }: Context): { agent: string; file: string }[] =>
  Object.entries(agents).flatMap(([agent, { describe }]) => {
    const { login } = describe();
    return login ? [{ agent, file: login.file }] : [];
  });

/** The logins of an organization, by agent. */
export const listLogins = (ctx: Context, org: OrgId): AgentLogin[] =>
  listRows(ctx, org)
    .map((row) => toLogin(ctx, row))
    .sort((a, b) => a.agent.localeCompare(b.agent));

/**
 * Stores the login of an agent, encrypted. It replaces the previous one. `text`: the file that the agent's own login command writes. Throws
 * bad_request, which quotes nothing of the file.
 */
export function setLogin(ctx: Context, org: OrgId, agent: string, text: string): AgentLogin {
  const { secretKey } = ctx.config;
  if (!secretKey)
    throw badRequest("Set EVALD_SECRET_KEY before storing logins. Generate one with: openssl rand -base64 32");
  const { content, expiresAt } = parseLoginFile(agent, text, getEntry(ctx, agent));
  const createdAt = ctx.now();
  if (expiresAt !== null && expiresAt <= createdAt)
    throw invalidField("file", `expired at ${toIso(expiresAt)}. Log in again with ${agent}, and upload the new file`);
  const row = { sealed: seal(content, secretKey, sealContext(org, agent)), expiresAt, createdAt };
  transaction(ctx.db, (tx) => {
    tx.insert(agentLogins)
      .values({ orgId: org, agent, ...row })
      .onConflictDoUpdate({ target: [agentLogins.orgId, agentLogins.agent], set: row })
      .run();
    recordAudit(ctx, org, "agent_login.stored", { name: agent }, changesOf({}, { expiresAt: toIso(expiresAt) }));
  });
  return toLogin(ctx, { orgId: org, agent, ...row });
}

/** Throws not_found. */
export function removeLogin(ctx: Context, org: OrgId, agent: string): AgentLogin {
  return transaction(ctx.db, (tx) => {
    const [removed] = tx.delete(agentLogins).where(loginOf(org, agent)).returning().all();
    if (!removed) throw notFound(`The organization has no login for ${agent}.`);
    recordAudit(ctx, org, "agent_login.removed", { name: agent });
    return toLogin(ctx, removed);
  });
}

/** Throws bad_request, which names the option, unless the organization has a login for the agent. */
export function checkLogin(ctx: Context, org: OrgId, agent: string): void {
  if (findRow(ctx, org, agent)) return;
  throw invalidField(
    "options.login",
    `the organization has no login for ${agent}; store one in Settings > Models, or with evald agent set-login ${agent}`,
  );
}

/** The login file of an agent, for a run. Throws an AgentFailure if no working login is stored. */
export function readLogin(ctx: Context, org: OrgId, agent: string): Uint8Array {
  const row = findRow(ctx, org, agent);
  const remedy = `store one with evald agent set-login ${agent}`;
  if (!row) throw toAgentFailure("login_needed", `the organization has no login for ${agent}; ${remedy}`);
  if (row.expiresAt !== null && row.expiresAt <= ctx.now())
    throw toAgentFailure("login_needed", `the login for ${agent} expired at ${toIso(row.expiresAt)}`);
  const content = unsealRow(ctx, row);
  if (content === null)
    throw toAgentFailure("login_needed", `EVALD_SECRET_KEY does not decrypt the login for ${agent}; ${remedy}`);
  return new TextEncoder().encode(content);
}

/** The tokens of all logins of an organization. They must not appear in anything that is stored, logged or returned. */
export const listLoginSecrets = (ctx: Context, org: OrgId): string[] =>
  listRows(ctx, org).flatMap((row) => secretsInLogin(unsealRow(ctx, row) ?? ""));

const listRows = ({ db }: Context, org: OrgId): AgentLoginRow[] =>
  db.select().from(agentLogins).where(eq(agentLogins.orgId, org)).all();

const findRow = ({ db }: Context, org: OrgId, agent: string): AgentLoginRow | undefined =>
  db.select().from(agentLogins).where(loginOf(org, agent)).get();

const loginOf = (org: OrgId, agent: string) => and(eq(agentLogins.orgId, org), eq(agentLogins.agent, agent));

/** Throws bad_request for an agent that can't work with a login. */
function getEntry(ctx: Context, agent: string): LoginEntry {
  const entry = ownMember(ctx.agents, agent)?.describe().login;
  if (entry) return entry;
  const agents = listLoginAgents(ctx).map((each) => each.agent);
  throw badRequest(`${JSON.stringify(agent)} is no agent that takes a login. Use one of ${agents.join(", ")}.`);
}

/** null: it can't be decrypted. */
const unsealRow = ({ config: { secretKey } }: Context, { orgId, agent, sealed }: AgentLoginRow): string | null =>
  secretKey ? unseal(sealed, secretKey, sealContext(orgId, agent)) : null;

function toLogin(ctx: Context, row: AgentLoginRow): AgentLogin {
  const { agent, expiresAt, createdAt } = row;
  return { agent, state: stateOf(ctx, row), expiresAt: toIso(expiresAt), createdAt: toIso(createdAt) };
}

function stateOf(ctx: Context, row: AgentLoginRow): AgentLogin["state"] {
  if (unsealRow(ctx, row) === null) return "unreadable";
  return row.expiresAt !== null && row.expiresAt <= ctx.now() ? "expired" : "usable";
}

/** What a sealed login belongs to. */
const sealContext = (org: string, agent: string) => `${org} login ${agent}`;
