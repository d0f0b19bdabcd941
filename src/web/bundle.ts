import { join } from "node:path";

/** Build-time macro: bundles a browser script into one string. It spawns a process because Bun.build cannot be called from a macro. */
export function bundle(entry: string): string {
  const path = join(import.meta.dir, entry);
  const build = Bun.spawnSync([process.execPath, "build", path, "--target=browser", "--minify"]);
  if (!build.success) throw new Error(build.stderr.toString());
  return build.stdout.toString();
}
