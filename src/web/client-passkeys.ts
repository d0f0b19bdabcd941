/// <reference lib="dom" />

// Handles forms with data-passkey. Before such a form is sent, the browser creates or requests a passkey, with the options of the server.
document.addEventListener("submit", async (event) => {
  const { target: form } = event;
  if (!(form instanceof HTMLFormElement) || form.dataset.passkey === undefined || event.defaultPrevented) return;
  event.preventDefault();
  form.querySelector(".notice")?.remove();
  try {
    const credential = await askForPasskey(form);
    const field = form.elements.namedItem("credential");
    if (field instanceof HTMLInputElement) field.value = JSON.stringify(credential);
    form.submit();
  } catch (error) {
    const notice = Object.assign(document.createElement("p"), {
      className: "notice bad",
      textContent: reasonOf(error),
    });
    notice.setAttribute("role", "alert");
    form.prepend(notice);
  }
});

async function askForPasskey(form: HTMLFormElement): Promise<unknown> {
  if (!("PublicKeyCredential" in window && "parseCreationOptionsFromJSON" in PublicKeyCredential))
    throw new Error("This browser doesn’t support passkeys.");
  const body = new URLSearchParams([...new FormData(form)].map(([name, value]) => [name, String(value)]));
  const answer = await window.fetch(form.dataset.passkeyOptions ?? "", { method: "POST", body });
  const text = await answer.text();
  if (!answer.ok) throw new Error(errorOfPage(text));
  const options = JSON.parse(text);
  const credential =
    form.dataset.passkey === "create"
      ? await navigator.credentials.create({ publicKey: PublicKeyCredential.parseCreationOptionsFromJSON(options) })
      : await navigator.credentials.get({ publicKey: PublicKeyCredential.parseRequestOptionsFromJSON(options) });
  return (credential as PublicKeyCredential).toJSON();
}

/** The message of the error page that the server returned. */
const errorOfPage = (html: string): string =>
  new DOMParser().parseFromString(html, "text/html").querySelector('[role="alert"], .notice-page p:not(.status)')
    ?.textContent ?? "The server refused. Try again.";

function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return "The passkey request failed.";
  if (error.name === "NotAllowedError") return "The passkey request was cancelled or timed out.";
  if (error.name === "InvalidStateError") return "This device already has a passkey for your account.";
  return error.message;
}
