import { Database } from "bun:sqlite";
import { join } from "node:path";

const maxBytes = 50 * 1024 * 1024;
const outputChars = 30_000;

/** The events of a judge whose texts are full of short URLs, each of which is looked up in the whole session. */
function judging(goal: string): [name: string, detail: object][] {
  const urls = (from: number, chars: number) =>
    Array.from({ length: 100 }, (_, i) => `http://a.b/${from + i}x`)
      .join(" ")
      .slice(0, chars);
  const claim = { events: [0], quote: "http://a.b/0" };
  const friction = { ...claim, finding: "", severity: "high", phase: "discovery", category: "dead_link" };
  const answer = {
    parts: [{ part: 1, met: "unclear", ...claim, why: urls(0, 300) }],
    frictions: Array.from({ length: 10 }, (_, i) => ({
      ...friction,
      ...{ title: urls(100 * i, 140), why: urls(100 * i, 400), advice: urls(100 * i + 50, 400) },
    })),
    keyFinding: urls(2000, 300),
    verdict: urls(2100, 400),
    summary: { whatWorked: urls(2200, 800), whatDidnt: urls(2300, 800) },
    confidence: 0.5,
  };
  const judge = { model: "openai-compatible/acme", rubric: "soak", goal };
  return [
    ["judging", judge],
    ["judged", { ...judge, answer }],
  ];
}

/**
 * Enlarges the session of a completed run while no service runs: by default to the maximum, 50 MB of pages full of short URLs, which are
 * slow to match, before the last event, and after it the answer of a judge. Returns the number of events that were added.
 */
export function enlarge(dataDir: string, runId: string, bytes = maxBytes): number {
  const db = new Database(join(dataDir, "evald.db"));
  const [last] = db
    .query<{ seq: number; org_id: string; attempt: number; at: number; t_ms: number }, [string]>(
      "select org_id, attempt, seq, at, t_ms from session_events where run_id = ? order by attempt desc, seq desc limit 1",
    )
    .all(runId);
  if (!last) throw new Error(`the run ${runId} has no session`);
  const pairs = Math.floor(bytes / outputChars);
  const insert = db.prepare(
    "insert into session_events (org_id, run_id, attempt, seq, at, t_ms, type, source, data) values (?, ?, ?, ?, ?, ?, ?, ?, ?)",
  );
  const addresses = Array.from({ length: 3000 }, (_, i) => `http://a.b/${i}`)
    .join(" ")
    .slice(0, outputChars);
  db.transaction(() => {
    db.query("update session_events set seq = seq + ? where run_id = ? and attempt = ? and seq = ?").run(
      2 * pairs,
      runId,
      last.attempt,
      last.seq,
    );
    for (let i = 0; i < pairs; i++) {
      const id = `soak-${i}`;
      const row = [last.org_id, runId, last.attempt] as const;
      const call = { id, tool: "fetch_page", input: { url: `http://a.b/${i}` } };
      const result = { id, tool: "fetch_page", ok: true, output: { text: addresses } };
      insert.run(...row, last.seq + 2 * i, last.at, last.t_ms, "tool_call", "agent", JSON.stringify(call));
      insert.run(...row, last.seq + 2 * i + 1, last.at, last.t_ms, "tool_result", "agent", JSON.stringify(result));
    }
    for (const [i, [name, detail]] of judging("Upload a file.").entries()) {
      const row = [last.org_id, runId, last.attempt, last.seq + 2 * pairs + 1 + i, last.at, last.t_ms] as const;
      insert.run(...row, "milestone", "runner", JSON.stringify({ name, detail }));
    }
  })();
  db.close();
  return pairs * 2 + 2;
}
