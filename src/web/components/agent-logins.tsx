import { Type } from "@sinclair/typebox";
import type { AgentLogin } from "../../models/login-schema.ts";
import { DangerButton, Submit } from "./form-parts.tsx";
import { When } from "./when.tsx";

/** The fields of the login form. The value of the file is its content in base64. */
export const LoginForm = Type.Object({ agent: Type.String(), file: Type.String() });

type Props = {
  base: string;
  /** The agents that take a login, each with the path of the file in its home directory. */
  agents: { agent: string; file: string }[];
  logins: AgentLogin[];
  mayChange: boolean;
  /** The query of the form's action, which forms with files need; null: the viewer may not store logins. */
  uploadQuery: string | null;
  /** The values of the form if it was rejected. */
  values: URLSearchParams | undefined;
  now: number;
};

/** The logins of coding agents, and the forms to store and remove them. */
export function AgentLogins({ base, agents, logins, mayChange, uploadQuery, values, now }: Props) {
  return (
    <>
      <h2 id="logins">Logins of coding agents</h2>
      <p class="muted">
        A prompt can let an agent work with a subscription in place of an API key. See{" "}
        <a href={`${base}/docs/agents#logins`}>Logins</a>.
      </p>
      {agents.map(({ agent, file }) => {
        const login = logins.find((each) => each.agent === agent);
        return (
          <section key={agent} class="card">
            <h3>{agent}</h3>
            <p>{login ? <State login={login} now={now} /> : "No login."}</p>
            {mayChange && uploadQuery !== null && (
              <details open={values?.get("agent") === agent}>
                <summary>{login ? "Replace or remove" : "Store a login"}</summary>
                <form
                  method="post"
                  action={`${base}/settings/models/logins${uploadQuery}`}
                  enctype="multipart/form-data"
                >
                  <input type="hidden" name="agent" value={agent} />
                  <label class="field">
                    Login file
                    <input name="file" type="file" required />
                    <span class="hint">
                      Log in with the program on your own machine, then choose <code>~/{file}</code>. Encrypted at rest
                      and never shown again.
                    </span>
                  </label>
                  <Submit>Save login</Submit>
                </form>
                {login && (
                  <DangerButton
                    action={`${base}/settings/models/logins/remove`}
                    name="agent"
                    value={agent}
                    label={`Remove the login of ${agent}`}
                  >
                    Remove login
                  </DangerButton>
                )}
              </details>
            )}
          </section>
        );
      })}
    </>
  );
}

function State({ login: { state, expiresAt, createdAt }, now }: { login: AgentLogin; now: number }) {
  if (state === "unreadable") return <>The login can’t be decrypted. Restore EVALD_SECRET_KEY, or store it again.</>;
  return (
    <>
      {state === "expired" ? "Expired " : "Stored "}
      <When at={state === "expired" ? (expiresAt as string) : createdAt} now={now} />
      {state === "usable" && expiresAt !== null && (
        <>
          , expires <When at={expiresAt} now={now} />
        </>
      )}
      {state === "usable" && expiresAt === null && ". The file doesn’t say when it expires"}.
    </>
  );
}
