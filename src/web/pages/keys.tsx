import { scopes } from "../../api.ts";
import type { ApiKey } from "../../auth/keys.ts";
import { docs, sectionsOf } from "../docs.ts";
import type { Site } from "../site.ts";
import type { Viewer } from "../viewer.ts";
import { timeWords } from "../words.ts";
import { Wide } from "./figures.tsx";
import { SettingsFrame } from "./settings.tsx";

const scopeWords: Record<(typeof scopes)[number], string> = {
  read: "Read prompts, runs, reports and sessions",
  run: "Ask for runs and end them",
  write: "Change everything else",
};

const lives = [
  ["", "Never"],
  ["30", "After 30 days"],
  ["90", "After 90 days"],
  ["365", "After a year"],
] as const;

type Props = {
  site: Site;
  viewer: Viewer;
  keys: ApiKey[];
  /** Of the key that the form makes. */
  nextId: string;
  now: number;
  /** A key that was made just now: it is shown this once. */
  made?: { key: string; apiKey: ApiKey };
  done?: string;
  wrong?: string;
  typed?: URLSearchParams;
  mayChange: boolean;
};

/** API keys of an organisation: those there are, and a form for another. */
export function KeysPage({ keys, nextId, now, made, typed, mayChange, ...frame }: Props) {
  const { base } = frame.site;
  const held = typed?.getAll("scope");
  return (
    <SettingsFrame {...frame} path="/settings/keys">
      {made && <MadeKey site={frame.site} made={made} />}
      {keys.length === 0 ? (
        <p class="muted">No key was made yet. A key lets programs and agents in: curl, CI, an editor over MCP.</p>
      ) : (
        <Wide label="API keys">
          <table class="list">
            <thead>
              <tr>
                <th scope="col">Name</th>
                <th scope="col">Key</th>
                <th scope="col">May</th>
                <th scope="col">Last use</th>
                <th scope="col">Valid</th>
                {mayChange && (
                  <th scope="col">
                    <span class="unseen">Revoke</span>
                  </th>
                )}
              </tr>
            </thead>
            <tbody>
              {keys.map((key) => (
                <tr key={key.id} class={isOver(key, now) ? "over" : undefined}>
                  <th scope="row">{key.name}</th>
                  <td>
                    <code>{key.display}</code>
                  </td>
                  <td>{key.scopes?.join(", ") ?? "everything"}</td>
                  <td class="when">{key.lastUsedAt ? timeWords(key.lastUsedAt) : "never"}</td>
                  <td class="when">{validWords(key, now)}</td>
                  {mayChange && (
                    <td class="number">
                      {!isOver(key, now) && (
                        <form method="post" action={`${base}/settings/keys/${key.id}/revoke`}>
                          <button class="bad" type="submit" aria-label={`Revoke ${key.name}`}>
                            Revoke
                          </button>
                        </form>
                      )}
                    </td>
                  )}
                </tr>
              ))}
            </tbody>
          </table>
        </Wide>
      )}
      {mayChange ? (
        <form method="post" action={`${base}/settings/keys`}>
          <h2>Make a key</h2>
          <input type="hidden" name="id" value={nextId} />
          <p class="field">
            <label>
              Name
              <input
                name="name"
                required
                maxLength={200}
                value={typed?.get("name") ?? ""}
                placeholder="What it is for: ci"
              />
            </label>
          </p>
          <fieldset>
            <legend>It may</legend>
            {scopes.map((scope) => (
              <label key={scope} class="check">
                <input type="checkbox" name="scope" value={scope} checked={held?.includes(scope) ?? true} />
                <span>
                  {scopeWords[scope]} <code>{scope}</code>
                </span>
              </label>
            ))}
          </fieldset>
          <p class="field">
            <label>
              It ends
              <select name="days">
                {lives.map(([days, words]) => (
                  <option key={days} value={days} selected={typed?.get("days") === days}>
                    {words}
                  </option>
                ))}
              </select>
            </label>
          </p>
          <button class="main" type="submit">
            Make the key
          </button>
        </form>
      ) : (
        <p class="muted">Only an admin or an owner may make and revoke keys.</p>
      )}
    </SettingsFrame>
  );
}

function MadeKey({ site, made: { key, apiKey } }: { site: Site; made: NonNullable<Props["made"]> }) {
  const mcp = docs.find(({ slug }) => slug === "mcp");
  return (
    <section class="made" aria-labelledby="made-title">
      <h2 id="made-title">The key “{apiKey.name}” was made</h2>
      <p>It is shown this once: keep it now. The service has only its digest.</p>
      <p class="copy">
        <code id="new-key">{key}</code>
        <button type="button" data-copy="#new-key" class="only-live">
          Copy
        </button>
      </p>
      <details open>
        <summary>curl</summary>
        <pre>
          <code>{`export EVALD_KEY=${key}\ncurl -sS -H "Authorization: Bearer $EVALD_KEY" "${site.baseUrl}/api/v1/whoami"`}</code>
        </pre>
      </details>
      {mcp &&
        sectionsOf(mcp, site, "Add it to ").map(({ title, html }) => (
          <details key={title}>
            <summary>{title}</summary>
            <div class="prose" dangerouslySetInnerHTML={{ __html: html }} />
          </details>
        ))}
    </section>
  );
}

const isOver = ({ revokedAt, expiresAt }: ApiKey, now: number) =>
  revokedAt !== null || (expiresAt !== null && Date.parse(expiresAt) <= now);

function validWords({ revokedAt, expiresAt }: ApiKey, now: number): string {
  if (revokedAt) return `revoked ${timeWords(revokedAt)}`;
  if (!expiresAt) return "until it is revoked";
  return `${Date.parse(expiresAt) <= now ? "ended" : "until"} ${timeWords(expiresAt)}`;
}
