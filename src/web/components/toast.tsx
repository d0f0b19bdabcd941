import type { Toast } from "../toasts.ts";

/** What the last form changed, with a button to undo it. */
export const ToastLine = ({ base, toast: { text, undo } }: { base: string; toast: Toast }) => (
  <div class="toast" role="status">
    {text}
    {undo && (
      <form method="post" action={base + undo.path}>
        <button type="submit" name={undo.name} value={undo.value}>
          Undo
        </button>
      </form>
    )}
  </div>
);
