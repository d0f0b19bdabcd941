import type { Toast } from "../toasts.ts";
import { ButtonForm } from "./form-parts.tsx";

/** What the last form changed, with a button to undo it. */
export const ToastLine = ({ base, toast: { text, undo } }: { base: string; toast: Toast }) => (
  <div class="toast" role="status">
    {text}
    {undo && (
      <ButtonForm action={base + undo.path} name={undo.name} value={undo.value}>
        Undo
      </ButtonForm>
    )}
  </div>
);
