/** Package registries: npm, PyPI, crates.io, Go, Maven, RubyGems, Debian. */
const registries = [
  "registry.npmjs.org",
  "pypi.org",
  "files.pythonhosted.org",
  "index.crates.io",
  "static.crates.io",
  "crates.io",
  "proxy.golang.org",
  "sum.golang.org",
  "repo.maven.apache.org",
  "repo1.maven.org",
  "rubygems.org",
  "index.rubygems.org",
  "deb.debian.org",
  "security.debian.org",
];

/** The hosts that a run may reach. */
export type HostList = {
  permits(hostname: string): boolean;
  /** Whether the host belongs to the run's own URLs, or is below a host of its docs. */
  isOwn(hostname: string): boolean;
  /** The error message for a host that is not permitted. */
  objection(hostname: string): string;
};

export const everyHost: HostList = { permits: () => true, isOwn: () => false, objection: () => "" };

/**
 * Compiles the hosts that a run may reach: the hosts of its own URLs (for `docsUrls`, with all subdomains), the package registries and
 * the operator's list of host names, or `*.example.com` for all subdomains.
 */
export function createHostList({
  urls,
  docsUrls,
  operatorHosts,
}: Record<"urls" | "docsUrls" | "operatorHosts", readonly string[]>): HostList {
  const ownHosts = [...docsUrls, ...urls].flatMap((url) => findHost(url) ?? []);
  const docsHosts = docsUrls.flatMap((url) => findHost(url) ?? []);
  const exactHosts = new Set([...registries, ...operatorHosts.map(normalizeHost)]);
  const suffixes = operatorHosts.filter((host) => host.startsWith("*.")).map((host) => normalizeHost(host.slice(1)));
  const isOwn = (host: string) =>
    ownHosts.includes(host) || docsHosts.some((docsHost) => host.endsWith(`.${docsHost}`));
  return {
    permits(hostname) {
      const host = normalizeHost(hostname);
      return isOwn(host) || exactHosts.has(host) || suffixes.some((suffix) => host.endsWith(suffix));
    },
    isOwn: (hostname) => isOwn(normalizeHost(hostname)),
    objection: (hostname) =>
      `${normalizeHost(hostname)} is not allowed in this run. Allowed hosts: ${[...new Set(ownHosts)].join(", ") || "none of its own"} and the package registries; the operator can add hosts with EVALD_EGRESS_ALLOW`,
  };
}

const normalizeHost = (hostname: string) =>
  hostname
    .toLowerCase()
    .replace(/^\[|\]$/g, "")
    .replace(/\.$/, "");

const findHost = (url: string): string | null => (URL.canParse(url) ? normalizeHost(new URL(url).hostname) : null);
