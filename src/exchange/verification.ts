import { asc } from "drizzle-orm";
import { createOrg } from "../auth/orgs.ts";
import type { CustomWeights } from "../config/weights.ts";
import type { Context } from "../context.ts";
import { reports, type StoredGrade } from "../db/tables/reports.ts";
import type { Grade } from "../grading/grade.ts";
import { splitJudging } from "../grading/judge/judge.ts";
import { listMethodologies } from "../grading/methodology.ts";
import { gradeSession } from "../grading/score.ts";
import { pickGradeFields } from "../reports/grade-schema.ts";
import type { ReportRow } from "../reports/report-row.ts";
import { readSession } from "../reports/session-events.ts";
import { type GradingRow, listGradingRows } from "../reports/stored-grade.ts";
import { importFile } from "./import.ts";
import { type Envelope, linesOf } from "./lines.ts";
import { isSignatureValid } from "./signature.ts";

/** `other_key`: signed, but not with the expected key. */
export type SignatureState = "valid" | "invalid" | "missing" | "other_key";

/**
 * The result of grading a report again. `no_session`: its events were deleted. `unknown_methodology`: its weights are not known here. `unreadable`:
 * its events can't be graded.
 */
type GradeState = "equal" | "different" | "no_session" | "unknown_methodology" | "unreadable";

/** One grading of a report. `fields`: the fields of the grade that differ. */
type VerifiedGrading = { slug: string; methodology: string; state: GradeState; fields: string[] };

/** `publicKey`: the key of whoever signed the file; null: it isn't signed. `evald`: the version that wrote the file. */
export type Verification = {
  evald: string;
  exportedAt: string;
  publicKey: string | null;
  signature: SignatureState;
  gradings: VerifiedGrading[];
};

/**
 * Checks the signature of an export, and grades every session in it again. `ctx`: the context of an empty database, into which the file is imported.
 * `expectedKey` null: any key is accepted. Throws bad_request with the line number for a file that is damaged, truncated or not an export.
 */
export function verifyExport(ctx: Context, file: string, expectedKey: string | null): Verification {
  const envelope = readEnvelope(file);
  const { evald, exportedAt } = JSON.parse(envelope.header) as Record<string, unknown>;
  const org = createOrg(ctx, "Verification").id;
  importFile(ctx, org, file, { isPaused: true });
  const rows = ctx.db.select().from(reports).orderBy(asc(reports.id)).all();
  return {
    evald: String(evald),
    exportedAt: String(exportedAt),
    publicKey: envelope.signature?.publicKey ?? null,
    signature: signatureStateOf(envelope, expectedKey),
    gradings: rows.flatMap((report) =>
      listGradingRows(ctx.db, report).map((grading) => verifyGrading(ctx, report, grading)),
    ),
  };
}

/** Whether nothing in a verification contradicts the file. A session that was deleted can't contradict it. */
export const isVerified = ({ signature, gradings }: Verification): boolean =>
  signature === "valid" && gradings.every(({ state }) => state === "equal" || state === "no_session");

/** Checks all lines of an export. Returns its first and last line. */
function readEnvelope(file: string): Envelope {
  const lines = linesOf(file);
  for (;;) {
    const next = lines.next();
    if (next.done) return next.value;
  }
}

function signatureStateOf({ header, checksum, signature }: Envelope, expectedKey: string | null): SignatureState {
  if (signature === null) return "missing";
  if (!isSignatureValid(signature, header, checksum)) return "invalid";
  return expectedKey === null || signature.publicKey === expectedKey ? "valid" : "other_key";
}

function verifyGrading(ctx: Context, report: ReportRow, { grade, judging }: GradingRow): VerifiedGrading {
  const { id: methodology } = grade.methodology;
  const result = (state: GradeState, fields: string[] = []) => ({ slug: report.slug, methodology, state, fields });
  const events = readSession(ctx.db, report);
  if (events.length === 0) return result("no_session");
  const weights = methodologyOf(ctx.config.methodology, methodology);
  if (!weights) return result("unknown_methodology");
  // A regrade that asked a judge has its own judging events. They replace the judging in the session.
  const session = judging === null ? events : [...splitJudging(events).session, ...judging];
  const recomputed = gradeOrNull(() => gradeSession(session, weights));
  if (recomputed === null) return result("unreadable");
  const fields = differingFields(contentOfStored(grade), contentOf(recomputed));
  return result(fields.length === 0 ? "equal" : "different", fields);
}

const methodologyOf = (ownWeights: CustomWeights | null, methodology: string) =>
  listMethodologies(ownWeights).find(({ id }) => id === methodology);

function gradeOrNull(grade: () => Grade): Grade | null {
  try {
    return grade();
  } catch {
    // The file has events that no agent of this version records.
    return null;
  }
}

/** A grade without the IDs that it got when it was stored. Fingerprints name its friction points instead. */
function contentOfStored(grade: StoredGrade) {
  const fingerprints = new Map(grade.frictions.map(({ id, fingerprint }) => [id, fingerprint]));
  return {
    ...pickGradeFields(grade),
    frictions: grade.frictions.map(({ id: _, ...each }) => each),
    recommendations: grade.recommendations.map(({ id: _, frictionIds, ...each }) => ({
      ...each,
      frictions: frictionIds.map((id) => fingerprints.get(id)),
    })),
  };
}

const contentOf = (grade: Grade) => ({
  ...pickGradeFields(grade),
  frictions: grade.frictions,
  recommendations: grade.recommendations,
});

function differingFields(stored: Record<string, unknown>, recomputed: Record<string, unknown>): string[] {
  // Compared as JSON, because the fields were stored as JSON.
  const plain = (value: unknown) => JSON.parse(JSON.stringify(value ?? null));
  return Object.keys(recomputed).filter((field) => !Bun.deepEquals(plain(stored[field]), plain(recomputed[field])));
}
