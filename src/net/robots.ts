import robotsParser from "robots-parser";

/** Fetches a URL as text; null if there was no response. */
type FetchText = (url: string) => Promise<{ status: number; text: string } | null>;

export type Robots = ReturnType<typeof createRobots>;

/** Maximum characters parsed, as RFC 9309 advises. */
const maxChars = 500 * 1024;

/** Fetches the robots.txt of each origin once. `agentToken`: the product name of the user agent, without version. */
export function createRobots(fetchText: FetchText, agentToken: string) {
  const rulesByOrigin = new Map<string, ReturnType<typeof fetchRules>>();

  async function fetchRules(origin: string) {
    const robotsUrl = `${origin}/robots.txt`;
    const answer = await fetchText(robotsUrl);
    if (!answer || answer.status >= 500) return null;
    return robotsParser(robotsUrl, answer.status < 300 ? answer.text.slice(0, maxChars) : "");
  }

  function findRules(url: string) {
    const { origin } = new URL(url);
    const promise = rulesByOrigin.get(origin) ?? fetchRules(origin);
    rulesByOrigin.set(origin, promise);
    return promise;
  }

  return {
    /** Whether the host's robots.txt allows `agentToken` to fetch the URL. False while robots.txt is unreachable (RFC 9309). */
    async isAllowed(url: string): Promise<boolean> {
      if (new URL(url).pathname === "/robots.txt") return true;
      const robots = await findRules(url);
      return robots !== null && (robots.isAllowed(url, agentToken) ?? true);
    },
    /** The line of the host's robots.txt with the rule for the URL, from 1; null if no rule decides it. */
    async ruleLineOf(url: string): Promise<number | null> {
      const line = (await findRules(url))?.getMatchingLineNumber(url, agentToken) ?? -1;
      return line > 0 ? line : null;
    },
    /** Sitemap URLs from the host's robots.txt. */
    sitemaps: async (url: string): Promise<string[]> => (await findRules(url))?.getSitemaps() ?? [],
  };
}
