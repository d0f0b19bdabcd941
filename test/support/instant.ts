import { runProgram } from "../../src/cli/program.ts";
import { instantAgent } from "./app.ts";

// The executable as it is, but for an agent that answers at once and a lease that a test can outlive.
const { LEASE_MS, ...env } = process.env;
const parts = { agents: { explorer: instantAgent }, leaseMs: LEASE_MS === undefined ? undefined : Number(LEASE_MS) };
const code = await runProgram(process.argv.slice(2), env, parts);
if (code !== 0) process.exit(code);
