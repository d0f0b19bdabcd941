import { and, asc, eq, like, sql } from "drizzle-orm";
import { type AgentEvent, type Artifact, maxAgentOutputBytes } from "../agents/agent.ts";
import type { Context, OrgId } from "../context.ts";
import { type Db, transaction } from "../db/open.ts";
import { artifacts, runs } from "../db/tables/runs.ts";
import { notFound } from "../errors.ts";
import { getReportRow } from "./report-row.ts";

/** Maximum size of a screenshot, a diff, or a part of the output of a coding agent. */
export const maxArtifactBytes = 512 * 1024;
const maxScreenshots = 20;
export const artifactName = /^[a-z0-9][a-z0-9-]{0,59}\.(webp|diff|jsonl)$/;
const isImage = (name: string) => name.endsWith(".webp");
const isOutput = (name: string) => name.endsWith(".jsonl");

type Owner = { orgId: string; runId: string; attempt: number };

/**
 * `mayWrite`: whether the run may still store artifacts. `clean`: removes secrets from a text. `cleanLines`: removes them from lines of text or JSON.
 */
type Storing = {
  mayWrite: () => boolean;
  clean: (text: string) => string;
  cleanLines: (lines: string) => string;
};

/**
 * Stores the artifact of an event. Returns the event without the artifact's data. If the artifact wasn't stored, the event contains the reason. Call
 * it before the event is stored, so that no stored event refers to a missing artifact.
 */
export function storeArtifact(
  db: Db,
  owner: Owner,
  event: AgentEvent,
  { mayWrite, clean, cleanLines }: Storing,
): AgentEvent {
  if (!("artifact" in event) || event.artifact === undefined) return event;
  const { name, data: encoded } = event.artifact;
  const rawData = Buffer.from(encoded ?? "", "base64");
  const data = isImage(name) ? rawData : Buffer.from((isOutput(name) ? cleanLines : clean)(rawData.toString()));
  const missing = whyInvalid(name, data) ?? insertArtifact(db, { ...owner, name, data }, mayWrite);
  const artifact: Artifact = { name: String(name).slice(0, 64), bytes: data.length, ...(missing && { missing }) };
  return { ...event, artifact };
}

/** Why an artifact can't be stored; null if it can. */
function whyInvalid(name: string, data: Buffer): string | null {
  if (!artifactName.test(name) || (isImage(name) && !isWebp(data))) return "neither a WebP image, a diff nor output";
  return data.length > maxArtifactBytes ? `larger than ${maxArtifactBytes / 1024} KiB` : null;
}

const isWebp = (data: Buffer) =>
  data.length > 12 && data.toString("latin1", 0, 4) === "RIFF" && data.toString("latin1", 8, 12) === "WEBP";

/** Stores an artifact. Returns the reason if it was not stored; null if it was. */
function insertArtifact(
  db: Db,
  artifact: Owner & { name: string; data: Buffer },
  mayWrite: () => boolean,
): string | null {
  const { runId, attempt, name, data } = artifact;
  try {
    return transaction(db, (tx) => {
      if (!mayWrite()) return "the run had ended";
      const stored = tx
        .select({ name: artifacts.name, bytes: sql<number>`length(${artifacts.data})` })
        .from(artifacts)
        .where(and(eq(artifacts.runId, runId), eq(artifacts.attempt, attempt)))
        .all();
      if (isImage(name) && stored.filter((each) => isImage(each.name)).length >= maxScreenshots)
        return `the run already has ${maxScreenshots} screenshots`;
      const outputBytes = stored.filter((each) => isOutput(each.name)).reduce((sum, { bytes }) => sum + bytes, 0);
      if (isOutput(name) && outputBytes + data.length > maxAgentOutputBytes) return "the output is too long";
      if (stored.some((each) => each.name === name)) return "duplicate name";
      tx.insert(artifacts).values(artifact).run();
      return null;
    });
  } catch (error) {
    return `could not be stored: ${error instanceof Error ? error.message : error}`;
  }
}

/** A screenshot or diff in the session of a report. Throws not_found, also if the file was deleted. */
export function getArtifact({ db }: Context, org: OrgId, slug: string, name: string): Buffer {
  const report = getReportRow(db, org, slug);
  const artifact = db
    .select({ data: artifacts.data })
    .from(artifacts)
    .where(and(eq(artifacts.runId, report.runId), eq(artifacts.attempt, report.attempt), eq(artifacts.name, name)))
    .get();
  if (!artifact)
    throw notFound(
      "The run of this report has no artifact with that name. Artifacts are deleted together with the session events.",
    );
  return artifact.data;
}

/** Events with their artifacts. If an artifact is missing, the event says so. */
export function withMissingArtifacts<E extends object>(
  db: Db,
  { runId, attempt }: Omit<Owner, "orgId">,
  events: E[],
): E[] {
  const artifactOf = (event: E) => (event as { artifact?: Artifact }).artifact;
  if (!events.some(artifactOf)) return events;
  const names = db
    .select({ name: artifacts.name })
    .from(artifacts)
    .where(and(eq(artifacts.runId, runId), eq(artifacts.attempt, attempt)))
    .all()
    .map(({ name }) => name);
  return events.map((event) => {
    const artifact = artifactOf(event);
    if (!artifact || artifact.missing || names.includes(artifact.name)) return event;
    return { ...event, artifact: { ...artifact, missing: "no longer stored" } };
  });
}

/** The response with a screenshot or diff. Its headers keep browsers from interpreting the file as anything else. */
export const toArtifactResponse = (name: string, data: Buffer): Response =>
  new Response(new Uint8Array(data), {
    headers: {
      "content-type": isImage(name) ? "image/webp" : "text/plain; charset=utf-8",
      "x-content-type-options": "nosniff",
      "content-security-policy": "default-src 'none'; sandbox",
      "cache-control": "private, no-store",
    },
  });

const isPartOfOutput = like(artifacts.name, "agent-output-%.jsonl");

/** The attempts of a run that have stored output of a coding agent. */
export const attemptsWithOutput = ({ db }: Context, runId: string): Set<number> =>
  new Set(
    db
      .selectDistinct({ attempt: artifacts.attempt })
      .from(artifacts)
      .where(and(eq(artifacts.runId, runId), isPartOfOutput))
      .all()
      .map(({ attempt }) => attempt),
  );

/** The attempt of a run. */
type Attempt = { runId: string; attempt: number };

/**
 * The output that a coding agent printed in an attempt, or the messages of its protocol. The first line is JSON that names the agent, followed by the
 * lines of the output in order. null if nothing is stored.
 */
export function findAgentOutput({ db }: Context, { runId, attempt }: Attempt): string | null {
  const parts = db
    .select({ data: artifacts.data })
    .from(artifacts)
    .where(and(eq(artifacts.runId, runId), eq(artifacts.attempt, attempt), isPartOfOutput))
    .orderBy(asc(artifacts.name))
    .all();
  return parts.length === 0 ? null : Buffer.concat(parts.map(({ data }) => data)).toString();
}

/** The stored output of a coding agent in an attempt. Throws not_found, also if the run belongs to another organization. */
function getAgentOutput(ctx: Context, org: OrgId, { runId, attempt }: Attempt): string {
  const [run] = ctx.db
    .select({ id: runs.id })
    .from(runs)
    .where(and(eq(runs.orgId, org), eq(runs.id, runId)))
    .all();
  const output = run ? findAgentOutput(ctx, { runId, attempt }) : null;
  if (output !== null) return output;
  throw notFound(
    `No output of a coding agent is stored of attempt ${attempt}. Output is deleted together with the session events.`,
  );
}

/** The stored output of a coding agent in an attempt, as a download. Throws not_found. */
export const toOutputResponse = (ctx: Context, org: OrgId, { runId, attempt }: Attempt): Response =>
  new Response(getAgentOutput(ctx, org, { runId, attempt }), {
    headers: {
      "content-type": "application/x-ndjson; charset=utf-8",
      "content-disposition": `attachment; filename="${runId}-${attempt}.jsonl"`,
      "cache-control": "private, no-store",
    },
  });
