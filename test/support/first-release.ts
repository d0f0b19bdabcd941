import { join } from "node:path";
import { dumpDatabase } from "./dump.ts";
import { furnished } from "./furnished.ts";
import { signedIn } from "./people.ts";

/** A database as the first release leaves it, as SQL: the start of every upgrade test. */
export const firstRelease = join(import.meta.dir, "..", "fixtures", "first-release.sql");

// Written once, with the first release; later migrations must handle it as it is.
if (import.meta.main) {
  const app = await furnished();
  await signedIn(app);
  app.db.$client.run("update orgs set name = 'First release ' || name");
  // The support code completes runs without their jobs.
  app.db.$client.run(
    "update jobs set state = 'done', completed_at = created_at where state = 'queued' and subject in (select id from runs where completed_at is not null)",
  );
  await Bun.write(firstRelease, dumpDatabase(app.db.$client));
  process.exit();
}
