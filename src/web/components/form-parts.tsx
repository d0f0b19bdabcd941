import type { ComponentChildren } from "preact";

/** The button of a form that submits it. */
export const Submit = ({ children }: { children: ComponentChildren }) => (
  <button class="main" type="submit">
    {children}
  </button>
);

type ButtonProps = {
  action: string;
  /** The name of the field that the button sends. */
  name?: string;
  value?: string;
  /** The subject of the button, for screen readers. */
  label?: string;
  class?: string;
  children: ComponentChildren;
};

/** A form that consists only of a button. */
export const ButtonForm = ({ action, label, children, ...button }: ButtonProps) => (
  <form method="post" action={action}>
    <button type="submit" aria-label={label} {...button}>
      {children}
    </button>
  </form>
);

/** A form that consists only of a button for a destructive action. Its route asks for confirmation. */
export const DangerButton = (props: ButtonProps) => <ButtonForm class="bad" {...props} />;

/** The messages about the last submitted form. */
export const Notices = ({ successMessage, errorMessage }: { successMessage?: string; errorMessage?: string }) => (
  <>
    {successMessage && (
      <p class="notice good" role="status">
        {successMessage}
      </p>
    )}
    {errorMessage && (
      <p class="notice bad" role="alert">
        {errorMessage}
      </p>
    )}
  </>
);

/** A value with a button that copies it. */
export const Copyable = ({ id, value, buttonText = "Copy" }: { id: string; value: string; buttonText?: string }) => (
  <p class="copy">
    <code id={id}>{value}</code>
    <button type="button" data-copy={`#${id}`} class="only-live">
      {buttonText}
    </button>
  </p>
);

type SecretProps = { id: string; title: string; value: string; children?: ComponentChildren };

/** A secret that was just created. It is shown only once. */
export const NewSecret = ({ id, title, value, children }: SecretProps) => (
  <section class="created-key" aria-labelledby={`${id}-title`}>
    <h2 id={`${id}-title`}>{title}</h2>
    <p>Copy it now. For security it won’t be shown again.</p>
    <Copyable id={id} value={value} />
    {children}
  </section>
);
