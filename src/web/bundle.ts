import { join } from "node:path";

/** Build-time macro that bundles a browser script into one string. It starts a process, because a macro can't call Bun.build. */
export function bundle(entry: string): string {
  const path = join(import.meta.dir, entry);
  const build = Bun.spawnSync([process.execPath, "build", path, "--target=browser", "--minify"]);
  if (!build.success) throw new Error(build.stderr.toString());
  return build.stdout.toString();
}
