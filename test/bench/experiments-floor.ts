// The floor of the pages of experiments: bare Bun.serve and prepared statements over the same rows, key check included, and nothing else: no
// analysis, no page. Run with a data folder; prints its address.
import { Database } from "bun:sqlite";
import { join } from "node:path";
import { isKeyShaped } from "../../src/auth/keys.ts";

const db = new Database(join(process.argv[2] as string, "evald.db"));
db.run("pragma journal_mode = WAL");
db.run("pragma cache_size = -32768");

const keyRow = db.prepare<{ org_id: string }, [Uint8Array]>("select org_id from api_keys where hash = ?");
const list = db.prepare(
  `select id, title, status, created_at, (select count(*) from experiment_runs r where r.org_id = e.org_id and r.experiment_id = e.id) runs
    from experiments e where org_id = ? order by id desc limit 50`,
);
const one = db.prepare("select * from experiments where org_id = ? and id = ?");
const runsOf = db.prepare(
  `select r.id, r.prompt_id, e.arm, e.block, e.treatment, p.score, p.outcome from experiment_runs e join runs r on r.id = e.run_id
    left join reports p on p.run_id = r.id where e.org_id = ? and e.experiment_id = ?`,
);

const server: Bun.Server<undefined> = Bun.serve({
  hostname: "127.0.0.1",
  port: 0,
  fetch(request): Response {
    const key = request.headers.get("authorization")?.slice(7) ?? "";
    const org = isKeyShaped(key) && keyRow.get(new Bun.CryptoHasher("sha256").update(key).digest())?.org_id;
    if (!org) return new Response(null, { status: 401 });
    const id = new URL(request.url).pathname.split("/")[2];
    return Response.json(
      id === undefined ? list.all(org) : { experiment: one.get(org, id), runs: runsOf.all(org, id) },
    );
  },
});
process.stderr.write(`listening on http://127.0.0.1:${server.port}\n`);
