/** What a request carries. */
export type Value = string | number | boolean | { [key: string]: Value };
/** How the docs of a product write a request that uses no SDK. */
type Form = "curl" | "curlJson" | "http" | "axios" | "got" | "fetch" | "httpx";
/** One thing that a product does. `{}` in a title is the noun of what it does it to. */
export type Task = {
  title: string;
  verb: string;
  why: string;
  method: string;
  path: string;
  query?: Record<string, string>;
  body: Record<string, Value>;
};
export type Domain = {
  kind: string;
  language: string;
  /** What its docs call the programs in its language. */
  sdk: string;
  what: string;
  form: Form | null;
  things: string[];
  id: string;
  tasks: Task[];
};

const task = (title: string, verb: string, call: string, body: Record<string, Value>, why: string): Task => {
  const [method = "", address = ""] = call.split(" ");
  const [path = "", query] = address.split("?");
  return { title, verb, why, method, path, body, ...(query && { query: Object.fromEntries([query.split("=")]) }) };
};

export const domains: Domain[] = [
  {
    kind: "mail",
    language: "bash",
    sdk: "REST API",
    what: "sends the e-mail of your application and tells you what became of it",
    form: "curl",
    things: ["newsletter", "receipt", "reminder", "digest", "invitation", "alert", "survey"],
    id: "em_7Qd2",
    tasks: [
      task(
        "Attach a PDF to a {}",
        "attach",
        "POST /{id}/attachments",
        { filename: "terms.pdf", inline: false },
        "Files may be as large as 8 MB. Bigger ones belong behind a link.",
      ),
      task(
        "Schedule a {} for tomorrow morning",
        "schedule",
        "PUT /{id}/schedule",
        { at: "2027-02-03T07:30:00Z", timezone: "Europe/Vienna" },
        "Until then you can still edit every word.",
      ),
      task(
        "Send a {} again to people who didn't open it",
        "resend",
        "POST /{id}/resend",
        { segment: "unopened", wait_hours: 48 },
        "Nobody gets more than two copies.",
      ),
      task(
        "Track the clicks in a {}",
        "track",
        "PATCH /{id}",
        { tracking: { clicks: true, opens: false } },
        "Links are rewritten at the time of sending.",
      ),
    ],
  },
  {
    kind: "payments",
    language: "js",
    sdk: "Node.js library",
    what: "takes money from customers and brings it to your bank account",
    form: "axios",
    things: ["charge", "deposit", "subscription", "invoice", "payout", "mandate", "tip"],
    id: "py_40ac",
    tasks: [
      task(
        "Refund half of a {}",
        "refund",
        "POST /{id}/refunds",
        { amount: 1250, reason: "damaged" },
        "Amounts are in the smallest unit of the currency, so 1250 is 12.50.",
      ),
      task(
        "Dispute a {} with evidence",
        "dispute",
        "POST /{id}/disputes",
        { evidence: { tracking_number: "Z-9981", delivered: true } },
        "You have seven days to answer the bank.",
      ),
      task(
        "Capture a {} after delivery",
        "capture",
        "PUT /{id}/capture",
        { amount: 990, final: true },
        "What you don't capture within a week goes back to the card.",
      ),
      task(
        "Put a {} into another currency",
        "convert",
        "POST /{id}/conversions",
        { currency: "CHF", lock_rate: true },
        "The rate is guaranteed for one minute.",
      ),
    ],
  },
  {
    kind: "flags",
    language: "python",
    sdk: "Python SDK",
    what: "turns features on and off while your application runs",
    form: "httpx",
    things: ["flag", "experiment", "rollout", "kill switch", "segment", "holdout", "ramp"],
    id: "dark-mode",
    tasks: [
      task(
        "Open a {} to a tenth of your users",
        "expand",
        "PUT /{id}/audience",
        { percentage: 10, sticky: true },
        "The same people see it each time, because the choice depends on a hash of their ID.",
      ),
      task(
        "Limit a {} to one country",
        "restrict",
        "POST /{id}/rules",
        { attribute: "country", equals: "NZ" },
        "Rules apply from top to bottom, and the first match wins.",
      ),
      task(
        "Retire a {} that everybody has",
        "retire",
        "PATCH /{id}",
        { state: "retired", keep_days: 30 },
        "Old clients keep the last value that they received.",
      ),
      task(
        "Compare the variants of a {}",
        "compare",
        "POST /{id}/comparisons",
        { metric: "checkout", confidence: 95 },
        "A comparison needs about a thousand visitors.",
      ),
    ],
  },
  {
    kind: "auth",
    language: "ts",
    sdk: "TypeScript SDK",
    what: "lets people sign in, and keeps everybody else out",
    form: "got",
    things: ["tenant", "passkey", "session", "role", "identity provider", "device", "guest"],
    id: "ten_5fG",
    tasks: [
      task(
        "Require a second factor for a {}",
        "protect",
        "PUT /{id}/factors",
        { kind: "totp", grace_days: 3 },
        "Whoever is signed in stays signed in until the grace period ends.",
      ),
      task(
        "Revoke a {} on all devices",
        "revoke",
        "POST /{id}/revocations",
        { reason: "lost", notify: true },
        "Revoked credentials stop working within ten seconds.",
      ),
      task(
        "Move a {} to another region",
        "relocate",
        "POST /{id}/moves",
        { region: "ap-south", dry_run: false },
        "Nobody has to sign in again.",
      ),
      task(
        "Give a {} an expiry date",
        "expire",
        "PATCH /{id}",
        { expires: "2027-12-31" },
        "The last day counts in full, in UTC.",
      ),
    ],
  },
  {
    kind: "maps",
    language: "js",
    sdk: "browser widget",
    what: "draws maps in web pages and finds addresses",
    form: "fetch",
    things: ["marker", "route", "layer", "heatmap", "geofence", "viewport", "tile set"],
    id: "lyr-204",
    tasks: [
      task(
        "Color a {} by its altitude",
        "colorize",
        "PUT /{id}/style",
        { ramp: "viridis", steps: 6 },
        "The legend changes with the colors.",
      ),
      task(
        "Snap a {} to the nearest road",
        "snap",
        "POST /{id}/snaps",
        { profile: "bicycle", radius: 40 },
        "Points that are farther away stay where they are.",
      ),
      task(
        "Export a {} as an image",
        "exportImage",
        "POST /{id}/images",
        { format: "webp", scale: 2, transparent: true },
        "Exports are kept for one day.",
      ),
      task(
        "Show a {} only at high zoom",
        "limitZoom",
        "PATCH /{id}",
        { zoom: { min: 12, max: 18 } },
        "Fewer shapes make a faster page.",
      ),
    ],
  },
  {
    kind: "queue",
    language: "go",
    sdk: "Go client",
    what: "carries messages between services, in order and at least once",
    form: "http",
    things: ["topic", "stream", "consumer group", "dead letter", "partition", "schema", "mirror"],
    id: "orders",
    tasks: [
      task(
        "Replay a {} from yesterday",
        "replay",
        "POST /{id}/replays",
        { since: "24h", speed: 4 },
        "Consumers see replayed messages with the header `replayed`.",
      ),
      task(
        "Compact a {} every night",
        "compact",
        "PUT /{id}/compaction",
        { cron: "0 3 * * *", keep: 1 },
        "Only the newest message of each key remains.",
      ),
      task(
        "Throttle a {} during a deployment",
        "throttle",
        "PATCH /{id}",
        { per_second: 200, burst: 50 },
        "Producers wait. They get no errors.",
      ),
      task(
        "Drain a {} before maintenance",
        "drain",
        "POST /{id}/drains",
        { timeout: "90s", force: false },
        "New messages are held until the drain is over.",
      ),
    ],
  },
  {
    kind: "vectors",
    language: "rust",
    sdk: "Rust crate",
    what: "is a database for embeddings, with filters and transactions",
    form: "http",
    things: ["collection", "index", "snapshot", "shard", "replica", "namespace", "projection"],
    id: "col-81",
    tasks: [
      task(
        "Rebuild a {} without downtime",
        "rebuild",
        "POST /{id}/builds",
        { lists: 256, online: true },
        "Readers use the old version until the new one is complete.",
      ),
      task(
        "Restore a {} from cold storage",
        "restore",
        "POST /{id}/restores",
        { bucket: "archive", verify: true },
        "This takes about a minute per gigabyte.",
      ),
      task(
        "Quantize a {} to save memory",
        "quantize",
        "PUT /{id}/quantization",
        { bits: 8, rescore: true },
        "Results lose less than one percent of their quality.",
      ),
      task(
        "Pin a {} in memory",
        "pin",
        "PATCH /{id}",
        { pinned: true, priority: 3 },
        "What is pinned is never evicted.",
      ),
    ],
  },
  {
    kind: "sms",
    language: "php",
    sdk: "PHP library",
    what: "sends text messages and calls people in ninety countries",
    form: "curlJson",
    things: ["text message", "voice call", "sender", "verification", "campaign", "voicemail", "number"],
    id: "tm-6610",
    tasks: [
      task(
        "Translate a {} on the fly",
        "translate",
        "POST /{id}/translations",
        { target: "pl", formal: true },
        "Names and numbers stay as they are.",
      ),
      task(
        "Hide the recipients of a {}",
        "redact",
        "PUT /{id}/privacy",
        { mask: "last4", days: 14 },
        "The log then only shows the last four digits.",
      ),
      task(
        "Route a {} through a local carrier",
        "route",
        "PATCH /{id}",
        { carrier: "local", fallback: true },
        "Delivery becomes faster and a little cheaper.",
      ),
      task(
        "Record a {} with consent",
        "record",
        "POST /{id}/recordings",
        { announce: true, channels: 2 },
        "The person hears a short notice first.",
      ),
    ],
  },
  {
    kind: "warehouse",
    language: "java",
    sdk: "Java client",
    what: "knows what lies on which shelf, and who is allowed to take it",
    form: "curlJson",
    things: ["bin", "shipment", "stock count", "reservation", "picker", "dock", "carton"],
    id: "BN-1007",
    tasks: [
      task(
        "Merge a {} with its neighbor",
        "merge",
        "POST /{id}/merges",
        { other: "BN-1008", keep_label: true },
        "The labels of both remain valid for scanners.",
      ),
      task(
        "Audit a {} by weight",
        "audit",
        "POST /{id}/audits",
        { tolerance: 2, unit: "kg" },
        "Scales report to the dashboard on their own.",
      ),
      task(
        "Lock a {} for a customs check",
        "lock",
        "PUT /{id}/lock",
        { authority: "customs", days: 5 },
        "Nobody can book out a locked item.",
      ),
      task(
        "Print the label of a {} in two languages",
        "print",
        "POST /{id}/labels",
        { first: "en", second: "fr", copies: 2 },
        "Printers need firmware 4 or newer.",
      ),
    ],
  },
];
