/** Messages that forms show on the next page. A cookie contains the code of the message. */
const messages = {
  promptCreated: "Prompt created.",
  promptsCreated: "Prompts created.",
  promptSaved: "Prompt saved.",
  promptPaused: "Prompt paused.",
  promptResumed: "Prompt resumed.",
  promptArchived: "Prompt archived.",
  promptUnarchived: "Prompt unarchived.",
  promptsArchived: "Prompts archived.",
  reportsArchived: "Reports archived.",
  reportArchived: "Report archived.",
  shareRevoked: "Share link revoked.",
  runStarted: "Run started.",
  runsStarted: "Runs started.",
  runCancelled: "Run cancelled.",
  providerAdded: "Provider added.",
  providerSaved: "Provider saved.",
  destinationSaved: "Changes saved.",
  destinationEnabled: "Destination enabled. Replay sends what it missed.",
  destinationDisabled: "Destination disabled.",
  destinationDeleted: "Destination deleted.",
  testSent: "Test event queued.",
  deliveryReplayed: "Delivery replayed.",
  deliveriesReplayed: "Deliveries replayed.",
  promptDeleted: "Prompt deleted.",
  runDeleted: "Run deleted.",
  itemRestored: "Restored.",
  itemErased: "It is being erased.",
  reportsNotSelected: "Select 2 to 10 reports to compare them.",
} as const;
export type ToastCode = keyof typeof messages;

/** A message about a change. `undo`: the form that reverts the change. */
export type Toast = { code: ToastCode; text: string; undo: { path: string; name: string; value: string } | null };

const cookieName = "evald.toast";

/** The cookie that shows a message on the next page. `id`: the ID of the changed item, for Undo. */
export const toastCookie = (base: string, code: ToastCode, id = ""): string =>
  `${cookieName}=${code}.${id}; Path=${base}/; Max-Age=60; HttpOnly; SameSite=Lax`;

/** The Set-Cookie header that removes a message after it was shown. */
export const toastRemovalCookie = (base: string): string =>
  `${cookieName}=; Path=${base}/; Max-Age=0; HttpOnly; SameSite=Lax`;

const undoOf = (code: ToastCode, id: string): Toast["undo"] => {
  if (code === "promptArchived") return { path: `/prompts/${id}/archive`, name: "back", value: "1" };
  if (code === "promptPaused") return { path: `/prompts/${id}/status`, name: "status", value: "active" };
  if (code === "promptResumed") return { path: `/prompts/${id}/status`, name: "status", value: "paused" };
  if (code === "promptDeleted" || code === "runDeleted")
    return { path: `/deletions/${id}/restore`, name: "undo", value: "1" };
  return null;
};

/** The message that the cookie of a request selects; null if there is none. */
export function findToast(request: Request): Toast | null {
  const toastShape = /(?:^|;\s*)evald\.toast=(?<code>\w+)\.(?<id>[0-9a-f-]{0,36})(?:;|$)/;
  const { code = "", id = "" } = toastShape.exec(request.headers.get("cookie") ?? "")?.groups ?? {};
  const text = Object.hasOwn(messages, code) ? messages[code as ToastCode] : undefined;
  return text === undefined ? null : { code: code as ToastCode, text, undo: undoOf(code as ToastCode, id) };
}
