/** Build-time macro: a browser program with all that it imports, as one string. Bun.build cannot be called from a macro, so a process of its own does it. */
export function bundle(entry: string): string {
  const path = new URL(entry, import.meta.url).pathname;
  const built = Bun.spawnSync([process.execPath, "build", path, "--target=browser", "--minify"]);
  if (!built.success) throw new Error(built.stderr.toString());
  return built.stdout.toString();
}
