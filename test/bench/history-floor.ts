// The floor of trends, friction and the docs map: bare Bun.serve and one prepared statement each over the same kept rows, key check included, and
// nothing else: no statistics, no change points, no validation, no log. Run with a data folder; prints its address.
import { Database } from "bun:sqlite";
import { join } from "node:path";
import { isKeyShaped } from "../../src/auth/keys.ts";

const db = new Database(join(process.argv[2] as string, "evald.db"));
db.run("pragma journal_mode = WAL");
db.run("pragma cache_size = -32768");

const keyRow = db.prepare<{ org_id: string }, [Uint8Array]>("select org_id from api_keys where hash = ?");
const ofProvider = "(select id from prompts where org_id = ?1 and target_provider_id = ?2)";
const days = db.prepare(
  "select day, scores, seconds, costs_usd from score_days where org_id = ? and prompt_id = ? and day > ? order by day",
);
const allDays = db.prepare(
  "select day, prompt_id, scores, seconds, costs_usd from score_days where org_id = ? and day > ?",
);
const lives = (which: string) =>
  db.prepare(
    `select l.fingerprint, l.severity, l.state, l.met, l.reached, l.first_seen_at, l.last_seen_at, p.*, r.slug from (select * from friction_lifecycles
      where org_id = ?1 and prompt_id in ${which} and place = '' order by severity, met desc limit 100) l
      join friction_points p on p.report_id = l.report_id and p.fingerprint = l.fingerprint join reports r on r.id = l.report_id`,
  );
const ofPrompt = lives("(?2)");
const ofAll = lives(ofProvider);
const pages = db.prepare(
  `select page, sum(runs), sum(reads), sum(errors), sum(link) from page_months where org_id = ?1 and prompt_id in ${ofProvider} and month > ?3
    group by page order by 2 desc limit 100`,
);

const dayMs = 24 * 3600_000;
const parse = (rows: { scores: string; seconds: string; costs_usd: string }[]) =>
  rows.map(({ scores, seconds, costs_usd, ...row }) => ({
    ...row,
    scores: JSON.parse(scores).length,
    seconds: JSON.parse(seconds).length,
    costs: JSON.parse(costs_usd).length,
  }));

const server: Bun.Server<undefined> = Bun.serve({
  hostname: "127.0.0.1",
  port: 0,
  fetch(request): Response {
    const key = request.headers.get("authorization")?.slice(7) ?? "";
    const org = isKeyShaped(key) && keyRow.get(new Bun.CryptoHasher("sha256").update(key).digest())?.org_id;
    if (!org) return new Response(null, { status: 401 });
    const { pathname, searchParams } = new URL(request.url);
    const promptId = searchParams.get("promptId");
    const now = Date.now();
    if (pathname === "/api/v1/trends")
      return Response.json(
        parse((promptId ? days.all(org, promptId, now - 182 * dayMs) : allDays.all(org, now - 730 * dayMs)) as never),
      );
    if (pathname === "/api/v1/friction")
      return Response.json(promptId ? ofPrompt.all(org, promptId) : ofAll.all(org, searchParams.get("providerId")));
    return Response.json(pages.all(org, pathname.split("/")[4] as string, now - 92 * dayMs));
  },
});
process.stderr.write(`listening on http://127.0.0.1:${server.port}\n`);
