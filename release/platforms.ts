/**
 * A platform that evald is released for. `runtime`: the npm package with Bun for it. `os`, `cpu`, `libc`: as npm names them.
 * `format`: of the executable.
 */
export type Platform = {
  name: string;
  target: string;
  runtime: string;
  os: "linux" | "darwin" | "win32";
  cpu: "x64" | "arm64";
  libc: "glibc" | "musl" | null;
};

const linux = (name: string, bunName: string, cpu: Platform["cpu"], libc: "glibc" | "musl"): Platform => ({
  ...{ name, target: `bun-${name}`, runtime: `@oven/bun-${bunName}` },
  ...{ os: "linux", cpu, libc },
});

/**
 * Every platform, in the order of the release. Processors without AVX2 need no file of their own: Bun's runtimes for linux-x64 and
 * linux-x64-baseline are the same file since 1.4.
 */
export const platforms: readonly Platform[] = [
  linux("linux-x64", "linux-x64", "x64", "glibc"),
  linux("linux-x64-musl", "linux-x64-musl", "x64", "musl"),
  linux("linux-arm64", "linux-aarch64", "arm64", "glibc"),
  linux("linux-arm64-musl", "linux-aarch64-musl", "arm64", "musl"),
  {
    ...{ name: "darwin-x64", target: "bun-darwin-x64", runtime: "@oven/bun-darwin-x64" },
    ...{ os: "darwin", cpu: "x64", libc: null },
  },
  {
    ...{ name: "darwin-arm64", target: "bun-darwin-arm64", runtime: "@oven/bun-darwin-aarch64" },
    ...{ os: "darwin", cpu: "arm64", libc: null },
  },
  {
    ...{ name: "windows-x64", target: "bun-windows-x64", runtime: "@oven/bun-windows-x64" },
    ...{ os: "win32", cpu: "x64", libc: null },
  },
];

/** The name of the executable's file. */
export const fileOf = ({ os }: Platform): string => (os === "win32" ? "evald.exe" : "evald");

/** The platform with this name. Throws for one that evald is not released for. */
export function platformNamed(name: string): Platform {
  const platform = platforms.find((each) => each.name === name);
  if (!platform) throw new Error(`${name} is not one of ${platforms.map((each) => each.name).join(", ")}`);
  return platform;
}

/** The platform of this machine. */
export function ownPlatform(): Platform {
  const os = process.platform === "win32" ? "windows" : process.platform;
  const isMusl = os === "linux" && !isGlibc();
  return platformNamed(`${os}-${process.arch}${isMusl ? "-musl" : ""}`);
}

function isGlibc(): boolean {
  const report = process.report?.getReport() as { header?: { glibcVersionRuntime?: string } } | undefined;
  return report?.header?.glibcVersionRuntime !== undefined;
}
