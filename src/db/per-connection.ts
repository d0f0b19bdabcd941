import type { Database } from "bun:sqlite";
import { oncePer } from "../once.ts";

/** Computes a value once per connection, when it is first needed. */
export const perConnection = <D extends { $client: Database }, T extends object>(compute: (db: D) => T) =>
  oncePer(({ $client }: D) => $client, compute);
