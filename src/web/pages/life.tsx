import { line } from "../../grading/words.ts";
import type { FrictionDetail } from "../../reports/frictionschema.ts";
import { Layout, Outside } from "../layout.tsx";
import type { Site } from "../site.ts";
import type { Viewer } from "../viewer.ts";
import { plain, timeWords } from "../words.ts";
import type { PromptName } from "./choice.tsx";
import { Fact, Heads, Wide } from "./figures.tsx";
import { costWords, State, scopeOf } from "./friction.tsx";

type Scope = { promptId?: string; providerId?: string };
type Props = { site: Site; viewer: Viewer; friction: FrictionDetail; scope: Scope; prompts: PromptName[] };

const stateWords: Record<FrictionDetail["state"], string> = {
  new: "It was met in the last evaluation for the first time.",
  open: "It was met in more than one evaluation, and still is.",
  fixed: "Runs come by where it stood, and do not meet it any more.",
  regressed: "It was gone, and is back.",
};

/** One friction over the evaluations of each prompt that met it. */
export function LifePage({ site, site: { base }, viewer, friction, scope, prompts }: Props) {
  const { fingerprint, title, severity, category, phase, state, description, quote, url, seenIn, cost, slug } =
    friction;
  return (
    <Layout
      site={site}
      viewer={viewer}
      path={`/friction/${fingerprint}`}
      title={`Friction: ${line(title, 100)}`}
      crumbs={[{ name: "Friction", path: `/friction?${scopeOf(scope)}` }, { name: fingerprint }]}
    >
      <header class={`head severity-${severity}`}>
        <p class="pills">
          <State state={state} />
          <span class="pill severity">{severity}</span>
          <span class="pill">{plain(category)}</span>
          <span class="pill">{phase}</span>
          {friction.isPreview && <span class="pill">on a preview only</span>}
        </p>
        <h1>{title}</h1>
        <p class="lead">{stateWords[state]}</p>
      </header>
      <dl class="facts">
        <Fact name="Met in">
          {seenIn.runs} of {seenIn.of} runs that came to where it stands
        </Fact>
        <Fact name="Cost, over all runs">{costWords(cost)}</Fact>
        <Fact name="First met">{timeWords(friction.firstSeenAt)}</Fact>
        <Fact name="Last met">{timeWords(friction.lastSeenAt)}</Fact>
        {friction.fixedAt && <Fact name="Fixed">{timeWords(friction.fixedAt)}</Fact>}
        <Fact name="Newest report with it">
          <a href={`${base}/reports/${slug}#friction`}>{slug}</a>
        </Fact>
        {url && (
          <Fact name="Where">
            <Outside url={url} />
          </Fact>
        )}
      </dl>
      <p>{description}</p>
      {quote && <blockquote class="quote">{quote}</blockquote>}
      {friction.prompts.map(({ promptId, state, since, evaluations }) => (
        <section key={promptId}>
          <h2>
            {line(prompts.find(({ id }) => id === promptId)?.title ?? promptId, 100)} <State state={state} />
          </h2>
          <p class="muted">
            Since it came: met by {since.met} of {since.of} runs that came by
            {since.missed > 0 && `, then missed by ${since.missed} in a row`}.
          </p>
          <LifeChart evaluations={evaluations} />
          <Wide label="Evaluations">
            <table class="list">
              <Heads words={["Evaluation"]} numbers={["Runs that came by", "Met it"]} />
              <tbody>
                {evaluations.toReversed().map(({ evalRequestId, at, met, of }) => (
                  <tr key={evalRequestId}>
                    <th scope="row" class="when">
                      {timeWords(at)}
                    </th>
                    <td class="number">{of}</td>
                    <td class="number">{met}</td>
                  </tr>
                ))}
              </tbody>
            </table>
          </Wide>
        </section>
      ))}
    </Layout>
  );
}

type Evaluation = FrictionDetail["prompts"][number]["evaluations"][number];

/** A bar for each evaluation, oldest first: the share of the runs that came by and met it; empty where all missed it. */
function LifeChart({ evaluations }: { evaluations: Evaluation[] }) {
  const [step, height] = [18, 44];
  const shares = evaluations.map(({ met, of }) => (of === 0 ? null : met / of));
  const label = `Share of runs that met it, by evaluation, oldest first: ${shares.map((share) => (share === null ? "none came by" : `${Math.round(share * 100)} %`)).join(", ")}`;
  return (
    <svg
      class="life"
      viewBox={`0 0 ${Math.max(1, evaluations.length) * step} ${height}`}
      width={Math.max(1, evaluations.length) * step}
      height={height}
      role="img"
    >
      <title>{label}</title>
      {shares.map((share, i) => (
        <g key={evaluations[i]?.evalRequestId}>
          <rect
            class={share === null ? "none" : share === 0 ? "gone" : "rest"}
            x={i * step}
            y="2"
            width={step - 4}
            height={height - 4}
            rx="2"
          />
          {share !== null && share > 0 && (
            <rect
              class="met"
              x={i * step}
              y={2 + (height - 4) * (1 - share)}
              width={step - 4}
              height={(height - 4) * share}
              rx="2"
            />
          )}
        </g>
      ))}
    </svg>
  );
}
