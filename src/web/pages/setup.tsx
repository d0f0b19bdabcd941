import type { Site } from "../site.ts";
import { DoorPage, Field, passwordHint } from "./signin.tsx";

type Props = { site: Site; path: string; orgName: string; filled?: { name: string; email: string }; wrong?: string };

/** Makes the first owner of an organisation. */
export const SetupPage = ({ site, path, orgName, filled, wrong }: Props) => (
  <DoorPage
    {...{ site, path, wrong }}
    title={`Set up ${orgName}`}
    lead="You become its first owner: you can invite others, make API keys and change everything."
  >
    <form method="post" action={site.base + path}>
      <Field name="name" label="Your name" autocomplete="name" value={filled?.name} />
      <Field name="email" label="Address of mail" type="email" autocomplete="username" value={filled?.email} />
      <Field name="password" label="Password" type="password" autocomplete="new-password" hint={passwordHint} />
      <button class="main" type="submit">
        Make me the owner
      </button>
    </form>
    <p class="aside">Somebody with this address and another organisation here? Give the password that you have.</p>
  </DoorPage>
);
