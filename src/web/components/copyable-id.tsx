type Props = {
  /** ID of the element on the page. */
  name: string;
  value: string;
};

/** An ID of the API with a button to copy it. */
export const CopyableId = ({ name, value }: Props) => (
  <p class="copy">
    <code id={name}>{value}</code>
    <button type="button" data-copy={`#${name}`}>
      Copy ID
    </button>
  </p>
);
