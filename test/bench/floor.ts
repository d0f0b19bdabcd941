// The floor: bare Bun.serve and prepared bun:sqlite doing the work of three operations by hand, key check included, and nothing else: no
// validation of what is sent, no request ids, no log, no routing beyond three comparisons. Run with a data folder; prints its address.
import { Database } from "bun:sqlite";
import { join } from "node:path";
import { isKeyShaped } from "../../src/auth/keys.ts";
import { toDimension, toNullNotice } from "../../src/reports/grade-schema.ts";

const db = new Database(join(process.argv[2] as string, "evald.db"));
for (const pragma of ["busy_timeout = 5000", "journal_mode = WAL", "synchronous = FULL", "foreign_keys = ON"])
  db.run(`pragma ${pragma}`);

type Row = Record<string, never>;
const keyRow = db.prepare<{ org_id: string }, [Uint8Array]>(
  "select org_id, expires_at from api_keys where hash = ? and revoked_at is null",
);
const columns = `r.id, r.status, r.failure_cause, r.failure_detail, r.template_args, r.waiting_for, r.agent, r.agent_version, r.context_digest, r.model, r.eval_request_id, r.attempt, r.created_at, r.started_at, r.completed_at,
  p.id p_id, p.title, p.text, p.end_goal, p.status p_status, p.template_vars, p.success_bar, p.created_at p_created_at,
  o.slug, o.status o_status, o.score, o.grade, o.metrics, o.dimensions, o.outcome, o.scope, o.null_notice, o.key_finding, o.verdict, o.summary, o.coverage, o.methodology
  from runs r join prompts p on p.id = r.prompt_id left join reports o on o.run_id = r.id`;
// With `(select ?)`, SQLite plans a query once instead of each time that a parameter changes, as the service does.
const one = db.prepare<Row, [string, string]>(`select ${columns} where r.org_id = (select ?) and r.id = (select ?)`);
const page = db.prepare<Row, [string, number, number]>(
  `select ${columns} where r.id in (select id from runs where org_id = (select ?) order by id desc limit (select ?) offset (select ?)) order by r.id desc`,
);
const total = db.prepare<{ n: number }, [string]>(
  "select sum(count) n from run_counts where org_id = ? and report_status = 'any'",
);
const promptRow = db.prepare<Row, [string, string]>("select * from prompts where org_id = ? and id = ?");
const insertRequest = db.prepare(
  "insert into eval_requests (id, org_id, prompt_id, trigger, created_at) values (?, ?, ?, 'api', ?)",
);
const insertRun = db.prepare(
  "insert into runs (id, org_id, prompt_id, eval_request_id, status, url_map, task, agent, attempt, created_at) values (?, ?, ?, ?, 'pending', ?, ?, 'explorer', 0, ?)",
);
const insertJob = db.prepare(
  "insert into jobs (id, kind, subject, org_id, host, state, available_at, attempt, spent, max_attempts, faults, deaths, created_at) values (?, 'run', ?, ?, ?, 'queued', 0, 0, 0, 3, 0, 0, ?)",
);

const iso = (at: number | null) => (at === null ? null : new Date(at).toISOString());
const parsed = (json: string | null) => (json === null ? null : JSON.parse(json));

// biome-ignore lint/suspicious/noExplicitAny: rows of a floor have no types
const toRun = (r: any) => ({
  runId: r.id,
  status: r.status,
  report: r.slug && {
    slug: r.slug,
    score: r.score,
    grade: r.grade,
    metrics: parsed(r.metrics),
    dimensions: parsed(r.dimensions).map(toDimension),
    outcome: r.outcome,
    scope: r.scope,
    nullNotice: toNullNotice({ nullNotice: r.null_notice, scope: r.scope, evidence: r.evidence }),
    keyFinding: r.key_finding,
    verdict: r.verdict,
    summary: parsed(r.summary),
    coverage: r.coverage,
    methodology: parsed(r.methodology),
    status: r.o_status,
    url: `${base}/reports/${r.slug}`,
    passedBar: parsed(r.success_bar),
  },
  statusUrl: `${base}/api/v1/runs/${r.id}`,
  runUrl: `${base}/runs/${r.id}`,
  completedAt: iso(r.completed_at),
  createdAt: iso(r.created_at),
  failureReason: r.failure_cause && `${r.failure_cause}: ${r.failure_detail}`,
  templateArgs: parsed(r.template_args),
  prompt: {
    id: r.p_id,
    title: r.title,
    text: r.text,
    endGoal: r.end_goal,
    status: r.p_status,
    templateVars: parsed(r.template_vars),
    createdAt: iso(r.p_created_at),
  },
  agent: { id: r.agent, version: r.agent_version, model: r.model, contextDigest: r.context_digest },
  evalRequestId: r.eval_request_id,
  startedAt: iso(r.started_at),
  attempt: r.attempt,
  waitingFor: parsed(r.waiting_for),
});

function orgOf(request: Request): string | null {
  const key = request.headers.get("authorization")?.slice(7) ?? "";
  if (!isKeyShaped(key)) return null;
  return keyRow.get(new Bun.CryptoHasher("sha256").update(key).digest())?.org_id ?? null;
}

const server: Bun.Server<undefined> = Bun.serve({
  hostname: "127.0.0.1",
  port: 0,
  async fetch(request): Promise<Response> {
    const org = orgOf(request);
    if (org === null) return new Response(null, { status: 401 });
    const { pathname, searchParams } = new URL(request.url);
    if (request.method === "POST") {
      const promptId = pathname.split("/")[4] as string;
      const { urlMap } = (await request.json()) as { urlMap: Record<string, string> };
      // biome-ignore lint/suspicious/noExplicitAny: rows of a floor have no types
      const prompt = promptRow.get(org, promptId) as any;
      const at = Date.now();
      const [requestId, runId, jobId] = [Bun.randomUUIDv7(), Bun.randomUUIDv7(), Bun.randomUUIDv7()];
      const task = {
        title: prompt.title,
        text: prompt.text,
        endGoal: prompt.end_goal,
        startUrls: Object.keys(urlMap),
        declaredChecks: [],
      };
      db.run("begin immediate");
      insertRequest.run(requestId, org, promptId, at);
      insertRun.run(runId, org, promptId, requestId, JSON.stringify(urlMap), JSON.stringify(task), at);
      insertJob.run(jobId, runId, org, new URL(Object.values(urlMap)[0] as string).host, at);
      db.run("commit");
      return Response.json({ runId, statusUrl: `${base}/api/v1/runs/${runId}`, runUrl: `${base}/runs/${runId}` });
    }
    if (pathname === "/api/v1/runs") {
      const rows = page.all(org, Number(searchParams.get("limit")), Number(searchParams.get("offset")));
      return Response.json(rows.map(toRun), { headers: { "x-total-count": String(total.get(org)?.n) } });
    }
    return Response.json(toRun(one.get(org, pathname.slice(13))));
  },
});
const base: string = `http://127.0.0.1:${server.port}`;
process.stderr.write(`listening on ${base}\n`);
