import { count, dollars, duration, oneLine } from "../../grading/text.ts";
import { shareText, slotText, standingText } from "../../suites/labels.ts";
import type { ProductResult, SlotResult, Suite, SuiteComparison } from "../../suites/schema.ts";
import { ScrollArea } from "../components/figures.tsx";
import { Choice, Filter } from "../components/filter.tsx";
import { foreignText, Layout } from "../components/layout.tsx";
import type { PageProps } from "../viewer.ts";

type Props = PageProps & { suites: Suite[]; comparison: SuiteComparison };

/** The results of products on the slots (tasks) of a suite, side by side. Each agent has its own table. */
export function SuitesPage({ site, site: { base }, viewer, suites, comparison }: Props) {
  const { suiteId, version, slots, products, changed } = comparison;
  const here = `${base}/suites`;
  const agents = [...Map.groupBy(products, ({ agent, model }) => [agent, model].filter(Boolean).join(" "))];
  return (
    <Layout
      {...{ site, viewer }}
      path="/suites"
      title="Suites"
      crumbs={[{ name: "Prompts", path: "/prompts" }, { name: "Suites" }]}
    >
      <div class="toolbar">
        <h1>Suites</h1>
        <a href={`${base}/docs/suites`}>How products are compared</a>
      </div>
      {suites.length > 1 && (
        // The empty option is the first suite, which the page shows by default.
        <Filter action={here} part="suite">
          <Choice name="suite" label="Suite" allLabel={suites[0]?.title ?? ""} value={suiteId}>
            {suites.slice(1).map(({ id, title }) => [id, title])}
          </Choice>
        </Filter>
      )}
      <div id="suite">
        <p class="muted">
          Version {version} of {suites.find(({ id }) => id === suiteId)?.title ?? suiteId}. Ranges are 95% confidence
          intervals. Slots without a check are not judged, and not counted. Time and cost are medians to the first
          success.
        </p>
        {changed.length > 0 && (
          <>
            <p>Not compared, because they differ from the suite:</p>
            <ul {...foreignText}>
              {changed.map((title) => (
                <li key={title}>{oneLine(title, 80)}</li>
              ))}
            </ul>
          </>
        )}
        {agents.length === 0 && (
          <div class="empty">
            <h2>No runs of this suite</h2>
            <p>
              <a href={`${base}/docs/suites`}>Create its prompts for two or more products, and run them</a>.
            </p>
          </div>
        )}
        {agents.map(([agent, results]) => (
          <section key={agent}>
            <h2>{agent}</h2>
            <Products {...{ agent, results, slots, base }} />
          </section>
        ))}
      </div>
    </Layout>
  );
}

type ProductsProps = { agent: string; results: ProductResult[]; slots: string[]; base: string };

/** The results of products with one agent. Each product is a column, and each slot is a row. */
const Products = ({ agent, results, slots, base }: ProductsProps) => (
  <ScrollArea label={`Products with ${agent}`}>
    <table class="list stacked matrix">
      <thead>
        <tr>
          <th scope="col">Slot</th>
          {results.map(({ providerId, product }) => (
            <th key={providerId} scope="col" {...foreignText}>
              {product}
            </th>
          ))}
        </tr>
      </thead>
      <tbody>
        <tr class="summary">
          <th scope="row">
            All slots <small>Judged runs that reached their slot</small>
          </th>
          {results.map((each) => (
            <td key={each.providerId} data-label={each.product} data-standing={each.standing}>
              <Summary {...each} />
            </td>
          ))}
        </tr>
        {slots.map((slot, i) => (
          <tr key={slot}>
            <th scope="row">{slot}</th>
            {results.map(({ providerId, product, slots: slotResults }) => (
              <td key={providerId} data-label={product} data-state={slotResults[i]?.state}>
                {slotResults[i] && <Slot result={slotResults[i]} base={base} />}
              </td>
            ))}
          </tr>
        ))}
      </tbody>
    </table>
  </ScrollArea>
);

const Summary = ({ share, standing, seconds, costUsd, slots }: ProductResult) => (
  <>
    <strong>{shareText(share)}</strong>
    {standing && standing !== "behind" && (
      <>
        {" "}
        <span class="pill">{standingText(standing)}</span>
      </>
    )}
    <small>{seconds ? `Median time ${duration(seconds.value)}` : "Time unknown"}</small>
    <small>{costUsd ? `Median cost ${dollars(costUsd.value)}` : "Cost unknown"}</small>
    <small>
      {count(
        slots.reduce((sum, { judged }) => sum + judged, 0),
        "judged run",
      )}
    </small>
  </>
);

const Slot = ({ result, base }: { result: SlotResult; base: string }) => {
  const text = result.state === "judged" ? slotText(result) : <span class="soft">{slotText(result)}</span>;
  return (
    <>
      {result.promptId === null ? (
        text
      ) : (
        <a class="plain" href={`${base}/prompts/${result.promptId}`}>
          {text}
        </a>
      )}
      {result.friction !== null && <small>Friction points per report: {result.friction}</small>}
    </>
  );
};
