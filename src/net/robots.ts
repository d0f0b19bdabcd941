import robotsParser from "robots-parser";

/** Fetches an address as text; null if no answer came. */
export type FetchText = (url: string) => Promise<{ status: number; text: string } | null>;

export type Robots = {
  /** Whether the host's robots.txt lets `agentToken` fetch the address. False while the host fails to say (RFC 9309). */
  allowed(url: string): Promise<boolean>;
  /** Addresses of the sitemaps that the host's robots.txt names. */
  sitemaps(url: string): Promise<string[]>;
};

/** Characters that are read at most, as RFC 9309 advises. */
const maxChars = 500 * 1024;

/** Reads the robots.txt of each origin once. `agentToken`: the product name of the user agent, without version. */
export function createRobots(fetchText: FetchText, agentToken: string): Robots {
  const known = new Map<string, ReturnType<typeof read>>();

  async function read(origin: string) {
    const address = `${origin}/robots.txt`;
    const answer = await fetchText(address);
    if (!answer || answer.status >= 500) return null;
    return robotsParser(address, answer.status < 300 ? answer.text.slice(0, maxChars) : "");
  }

  function rules(url: string) {
    const { origin } = new URL(url);
    const found = known.get(origin) ?? read(origin);
    known.set(origin, found);
    return found;
  }

  return {
    async allowed(url) {
      if (new URL(url).pathname === "/robots.txt") return true;
      const robots = await rules(url);
      return robots !== null && (robots.isAllowed(url, agentToken) ?? true);
    },
    sitemaps: async (url) => (await rules(url))?.getSitemaps() ?? [],
  };
}
