import type { ComponentChildren } from "preact";

/** The button of a form that submits it. */
export const Submit = ({ children }: { children: ComponentChildren }) => (
  <button class="main" type="submit">
    {children}
  </button>
);

type ButtonProps = {
  action: string;
  /** Field that the button sends. */
  name?: string;
  value?: string;
  /** Names what it is about, for screen readers. */
  label?: string;
  class?: string;
  children: ComponentChildren;
};

/** A form that is only a button. */
export const ButtonForm = ({ action, label, children, ...button }: ButtonProps) => (
  <form method="post" action={action}>
    <button type="submit" aria-label={label} {...button}>
      {children}
    </button>
  </form>
);

/** A form that is only a button and destroys something. Its route asks for confirmation. */
export const DangerZone = (props: ButtonProps) => <ButtonForm class="bad" {...props} />;

/** The messages about the last form. */
export const Notices = ({ done, wrong }: { done?: string; wrong?: string }) => (
  <>
    {done && (
      <p class="notice good" role="status">
        {done}
      </p>
    )}
    {wrong && (
      <p class="notice bad" role="alert">
        {wrong}
      </p>
    )}
  </>
);
