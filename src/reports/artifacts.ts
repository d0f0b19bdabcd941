import { and, eq } from "drizzle-orm";
import type { AgentEvent, Artifact } from "../agents/agent.ts";
import type { Context, OrgId } from "../context.ts";
import { type Db, transaction } from "../db/open.ts";
import { artifacts } from "../db/tables/runs.ts";
import { notFound } from "../errors.ts";
import { getReportRow } from "./report-row.ts";

/** Maximum size of a screenshot or diff. */
export const maxArtifactBytes = 512 * 1024;
const maxArtifacts = 20;
export const artifactName = /^[a-z0-9][a-z0-9-]{0,59}\.(webp|diff)$/;
const isDiff = (name: string) => name.endsWith(".diff");

type Owner = { orgId: string; runId: string; attempt: number };

/**
 * Stores the screenshot or diff of an event, and returns the event without it, with the reason if it wasn't stored. It is stored first, so
 * that no stored event refers to a missing one. `mayWrite` is checked in the transaction; `clean` removes secrets from text.
 */
export function storeArtifact(
  db: Db,
  owner: Owner,
  event: AgentEvent,
  { mayWrite, clean }: { mayWrite: () => boolean; clean: (text: string) => string },
): AgentEvent {
  if (!("artifact" in event) || event.artifact === undefined) return event;
  const { name, data: encoded } = event.artifact;
  const rawData = Buffer.from(encoded ?? "", "base64");
  const data = isDiff(name) ? Buffer.from(clean(rawData.toString())) : rawData;
  const eventWith = (missing: string | null): AgentEvent => {
    const artifact: Artifact = { name: String(name).slice(0, 64), bytes: data.length, ...(missing && { missing }) };
    return { ...event, artifact };
  };
  if (!artifactName.test(name) || !(isDiff(name) || isWebp(data))) return eventWith("neither a WebP image nor a diff");
  if (data.length > maxArtifactBytes) return eventWith(`larger than ${maxArtifactBytes / 1024} KiB`);
  try {
    const missing = transaction(db, (tx) => {
      if (!mayWrite()) return "the run had ended";
      const names = tx
        .select({ name: artifacts.name })
        .from(artifacts)
        .where(and(eq(artifacts.runId, owner.runId), eq(artifacts.attempt, owner.attempt)))
        .all();
      if (names.length >= maxArtifacts && !isDiff(name)) return `the run already has ${maxArtifacts} screenshots`;
      if (names.some((each) => each.name === name)) return "duplicate name";
      tx.insert(artifacts)
        .values({ ...owner, name, data })
        .run();
      return null;
    });
    return eventWith(missing);
  } catch (error) {
    return eventWith(`could not be stored: ${error instanceof Error ? error.message : error}`);
  }
}

const isWebp = (data: Buffer) =>
  data.length > 12 && data.toString("latin1", 0, 4) === "RIFF" && data.toString("latin1", 8, 12) === "WEBP";

/** A screenshot or diff in the session of a report. Throws not_found, also if it was deleted. */
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

/** Events, with a note if their artifact is missing. */
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

/** The response for a screenshot or diff. Browsers can't interpret it as anything else. */
export const toArtifactResponse = (name: string, data: Buffer): Response =>
  new Response(new Uint8Array(data), {
    headers: {
      "content-type": isDiff(name) ? "text/plain; charset=utf-8" : "image/webp",
      "x-content-type-options": "nosniff",
      "content-security-policy": "default-src 'none'; sandbox",
      "cache-control": "private, no-store",
    },
  });
