import type { Workspace } from "../agent.ts";
import { pathOf } from "./workspace.ts";

/**
 * Copies a workspace with its owners and modes: sandboxes of a service that runs as root belong to another user. Do it before an agent
 * starts: the copy is made outside of a sandbox, and what an agent leaves may be hostile.
 */
export async function copyWorkspace(workspace: Workspace, to: string): Promise<void> {
  const copy = Bun.spawn(["cp", "-a", "--", `${pathOf(workspace)}/.`, to], { stdio: ["ignore", "ignore", "pipe"] });
  const [code, reason] = await Promise.all([copy.exited, new Response(copy.stderr).text()]);
  if (code !== 0) throw new Error(`could not copy the workspace: ${reason.trim().slice(-500)}`);
}
