import { countedKinds } from "../db/tables/traffic.ts";

/** These kinds are not counted: `monitor` is an availability check, `lab` is evald itself, and `person` is a person, whom nobody may count. */
const visitorKinds = [...countedKinds, "monitor", "lab", "person"] as const;
export type VisitorKind = (typeof visitorKinds)[number];

export type Visitor = { kind: VisitorKind; name: string };

/**
 * The visitor that a user agent names, with the most specific rule first. Some user agents name a product and a person's browser at once, such as
 * `Claude-User (claude-code/2.1)`. The order tells these apart.
 */
const rules: [pattern: RegExp, kind: VisitorKind, name: string][] = [
  [/^evald\//, "lab", "evald"],
  [/claude-?code/i, "coding", "Claude Code"],
  [/\bcursor(?:agent|bot)?\b/i, "coding", "Cursor"],
  [/\bcodex\b/i, "coding", "Codex"],
  [/\bopencode\b/i, "coding", "opencode"],
  [/gemini-?(?:cli|code)/i, "coding", "Gemini CLI"],
  [/copilot/i, "coding", "Copilot"],
  [/windsurf|codeium/i, "coding", "Windsurf"],
  [/coding-?agent/i, "coding", "Other coding agent"],
  [
    /\b(?:cline|roo-?code|aider|goose|qwen-?code|kilo-?code|amp|junie|zed|continue|devin|auggie|augment|factory-?droid|kiro|replit-?agent|jules|openhands|swe-agent|warp)\//i,
    "coding",
    "Other coding agent",
  ],
  [/chatgpt-user/i, "answer", "ChatGPT"],
  [/claude-user/i, "answer", "Claude"],
  [/perplexity-user/i, "answer", "Perplexity"],
  [/mistralai-user/i, "answer", "Mistral"],
  [
    /meta-externalfetcher|duckassistbot|notebooklm|google-agent|kagi-?fetcher|deep-?research|gemini-|phind|you-?user|grok|manus/i,
    "answer",
    "Other assistant",
  ],
  [
    /oai-searchbot|claude-searchbot|perplexitybot|youbot|exabot|tavily|firecrawl|bravebot/i,
    "search",
    "AI search index",
  ],
  [
    /gptbot|claudebot|anthropic-ai|claude-web|ccbot|bytespider|amazonbot|applebot-extended|google-extended|meta-externalagent|cohere|diffbot|ai2bot|deepseek|petalbot|timpibot|omgili|imagesift/i,
    "training",
    "Training crawler",
  ],
  [
    /googlebot|googleother|google-inspection|bingbot|duckduckbot|yandex|baiduspider|applebot|slurp|seznambot|qwant|sogou|naver|ecosia/i,
    "search",
    "Search engine",
  ],
  [
    /uptime|pingdom|statuscake|monitor|health-?check|kube-probe|elb-health|lighthouse|checkly|datadog|newrelic/i,
    "monitor",
    "Monitor",
  ],
  [
    /[\w.]+-user\b|[a-z] ?agent\b|agent-\w|assistant|nova-?act|buyforme|\boperator\/|\btrae\b|kimi|tongyi|yiyan|linerbot|qbusiness|poggio|useai/i,
    "answer",
    "Other assistant",
  ],
  [/context7|\bjina|scrapy|crawl4ai|headless|puppeteer|playwright|selenium|wkhtml/i, "program", "Fetch tool"],
  [
    /^(?:axios|node|undici|got|bun|deno|python|httpx|aiohttp|curl|wget|go-http|okhttp|java|jakarta|apache-http|reqwest|hyper|rust|ruby|faraday|libwww|perl|guzzle|php|symfony|postman|insomnia|httpie|npm|pnpm|yarn|pip|uv|powershell|dart|swift|elixir|ky|superagent|fetch)\b/i,
    "program",
    "HTTP client",
  ],
  // CUBOT is the name of a phone. Since Internet Explorer 11, no browser has called itself compatible.
  [
    /(?<!\bcu)bot\b|crawler|spider|scraper|preview|fetch\b|fetcher\b|archiver|slackbot|validator|\bcompatible; (?!MSIE)/i,
    "search",
    "Other bot",
  ],
  // All browsers begin with one of these.
  [/^(?!Mozilla\/|Opera\/|Dalvik\/|-?$)/, "program", "Other program"],
];

/** Visitors that agents pretend to be. The real ones don't ask for Markdown. */
const disguises: ReadonlySet<string> = new Set(["Search engine", "HTTP client", "Fetch tool", "Other program"]);
const unnamedAgent: Visitor = { kind: "coding", name: "Unnamed agent" };

const prefersMarkdown = (accept: string): boolean => accept.includes("text/markdown");

/**
 * Who sent a request, by its User-Agent and Accept headers. A header that wasn't logged is empty. Both are claims, because anyone can send them. A
 * visitor that asks for Markdown without a name is a coding agent, because browsers never do that.
 */
export function visitorOf(userAgent: string, accept: string): Visitor {
  const rule = rules.find(([pattern]) => pattern.test(userAgent));
  const isDisguised = prefersMarkdown(accept) && (rule === undefined || disguises.has(rule[2]));
  if (isDisguised) return unnamedAgent;
  if (rule) return { kind: rule[1], name: rule[2] };
  return userAgent === "" || userAgent === "-"
    ? { kind: "program", name: "No user agent" }
    : { kind: "person", name: "" };
}

const maxCached = 50_000;

/** Like `visitorOf`, but remembers its answers, because a log has few different user agents. */
export function createVisitorLookup(): typeof visitorOf {
  const visitors = new Map<string, Visitor>();
  return (userAgent, accept) => {
    // `visitorOf` uses only this part of the Accept header.
    const key = prefersMarkdown(accept) ? `${userAgent}\0` : userAgent;
    let visitor = visitors.get(key);
    if (!visitor) {
      // The log of an attack has a new user agent in each line.
      if (visitors.size >= maxCached) visitors.clear();
      visitor = visitorOf(userAgent, accept);
      visitors.set(key, visitor);
    }
    return visitor;
  };
}
