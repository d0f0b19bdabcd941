/** The search dialog. Results are loaded while the user types, and the arrow keys select a result. */
export const Palette = ({ base }: { base: string }) => (
  <dialog id="palette" aria-label="Search">
    <form method="get" action={`${base}/search`}>
      <input
        type="text"
        role="combobox"
        name="q"
        maxLength={200}
        autocomplete="off"
        spellcheck={false}
        aria-label="Search prompts, reports, runs and pages"
        aria-controls="palette-hits"
        aria-expanded="true"
        aria-autocomplete="list"
        placeholder="Go to a prompt, report, run, page or action"
      />
    </form>
    <div id="palette-hits" role="listbox" aria-label="Results" />
  </dialog>
);

/** Opens the search dialog. Without JavaScript, it is a link to the search page. */
export const SearchLink = ({ base }: { base: string }) => (
  <a class="search-link" href={`${base}/search`} data-palette>
    Search{" "}
    <span class="only-live" aria-hidden="true">
      <kbd>/</kbd>
    </span>
  </a>
);
