import { countedKinds } from "../db/tables/traffic.ts";

/** Also who isn't counted: `monitor`, availability checks; `lab`, evald itself; `person`, whom nobody may count. */
const visitorKinds = [...countedKinds, "monitor", "lab", "person"] as const;
export type VisitorKind = (typeof visitorKinds)[number];

export type Visitor = { kind: VisitorKind; name: string };

/**
 * Who a user agent says it is, the most specific rule first. User agents that name a product and a person's browser at once, such as
 * `Claude-User (claude-code/2.1)`, are told apart by that order.
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
  // A phone is named CUBOT. No browser has called itself compatible since Internet Explorer 11.
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
 * Who sent a request, by its User-Agent and Accept headers; empty if they weren't logged. Both are claims: anyone can send them. Whoever asks
 * for Markdown and doesn't say who it is, is a coding agent: browsers never do.
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

/** `visitorOf`, which remembers its answers: a log has few different user agents. */
export function createVisitorLookup(): typeof visitorOf {
  const visitors = new Map<string, Visitor>();
  return (userAgent, accept) => {
    // Of the Accept header, only this matters to `visitorOf`.
    const key = prefersMarkdown(accept) ? `${userAgent}\0` : userAgent;
    let visitor = visitors.get(key);
    if (!visitor) {
      // Logs of attackers have a new one in each line.
      if (visitors.size >= maxCached) visitors.clear();
      visitor = visitorOf(userAgent, accept);
      visitors.set(key, visitor);
    }
    return visitor;
  };
}
