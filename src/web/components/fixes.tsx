import { capitalize, count } from "../../grading/text.ts";
import { diffOf, fileNameOf } from "../../reports/fix-brief.ts";
import { pointsOfFix } from "../../reports/labels.ts";
import type { Recommendation, Report } from "../../reports/schema.ts";
import { EvidenceLinks, toEventHref } from "./figures.tsx";
import { ButtonForm } from "./form-parts.tsx";
import { ExternalLink } from "./layout.tsx";
import { Day } from "./when.tsx";

/**
 * What verifying a fix requires. `fingerprint`: a friction point of the fix, which is used to mark the fix as done. `maxUsd`: the maximum cost of all
 * `runs` together; null: unknown; 0: no paid model is used.
 */
export type Verification = { fingerprint: string; runs: number; maxUsd: number | null };

type Props = {
  report: Report;
  /** The short label of each friction point, such as F1, by the ID of the friction point. */
  labels: Map<string, string>;
  base: string;
  /** URL of the report, for the forms. */
  path: string;
  session: string | null;
  /** By the ID of the recommended fix; null if the viewer may not start runs. */
  verifications: ReadonlyMap<string, Verification> | null;
  mayDismiss: boolean;
};

const statusLabels: Record<NonNullable<Recommendation["done"]>["status"], string> = {
  running: "Verifying fix…",
  verified: "Verified",
  did_not_help: "Didn’t help",
  undecided: "Inconclusive",
  reopened: "Regressed",
};

/** Recommended fixes, best first. Each has the change, its location, the evidence and the actions. */
export function Fixes(props: Props) {
  const { recommendations } = props.report;
  const openFixes = recommendations.filter(({ dismissed, isConvention }) => dismissed === null && !isConvention);
  const conventions = recommendations.filter(({ dismissed, isConvention }) => dismissed === null && isConvention);
  const dismissedFixes = recommendations.filter((each) => each.dismissed !== null);
  if (recommendations.length === 0) return null;
  const heading = openFixes.length === 1 ? "Fix this" : `Fix these ${openFixes.length}`;
  return (
    <section class="fixes">
      <h2 id="advice">{openFixes.length === 0 ? "Nothing to fix" : heading}</h2>
      <ol>
        {openFixes.map((fix) => (
          <FixCard key={fix.id} fix={fix} {...props} />
        ))}
      </ol>
      {conventions.length > 0 && (
        <>
          <h2>Site conventions</h2>
          <ol>
            {conventions.map((fix) => (
              <FixCard key={fix.id} fix={fix} {...props} />
            ))}
          </ol>
        </>
      )}
      {dismissedFixes.length > 0 && <DismissedFixes {...props} fixes={dismissedFixes} />}
    </section>
  );
}

const withoutPeriod = (sentence: string) => sentence.replace(/\.$/, "");

function FixCard({ fix, ...props }: Props & { fix: Recommendation }) {
  const { report, labels, base, path, session, verifications, mayDismiss } = props;
  const { id, priority, title, action, url, frictionIds, evidence, done } = fix;
  const frictions = report.frictionPoints.filter((each) => frictionIds.includes(each.id));
  const frictionEvents = [...new Set(frictions.flatMap(({ events }) => events))].sort((a, b) => a - b);
  const gain = pointsOfFix(fix);
  const page = evidence?.url ?? url;
  const verification = done?.status === "running" ? undefined : verifications?.get(id);
  const isEdit = Boolean(evidence?.url && evidence.found && evidence.expected);
  const isActionInTitle = withoutPeriod(title) === withoutPeriod(action);
  return (
    <li id={`fix-${priority}`} class="fix">
      <h3>
        {priority} · {title} {gain !== null && gain > 0 && <span class="gain">+{count(gain, "point")}</span>}
        <FrictionPills frictions={frictions} />
      </h3>
      <p class="where">
        {page && (
          <>
            {fileNameOf(page)}
            {evidence?.line && <>, line {evidence.line}</>} <ExternalLink url={page} />
          </>
        )}
      </p>
      {!isActionInTitle && <p>{action}</p>}
      <Diff id={`diff-${priority}`} evidence={evidence} />
      <p class="meta">
        {evidence && evidence.steps.length > 0 ? (
          <EvidenceSteps steps={evidence.steps} session={session} />
        ) : (
          <EvidenceLinks events={frictionEvents} session={session} />
        )}
        <span>
          Friction{" "}
          {frictions.map((friction) => (
            <a key={friction.id} class="name" href={`#${labels.get(friction.id)}`} title={friction.title}>
              {labels.get(friction.id)}
            </a>
          ))}
        </span>
      </p>
      {done && (
        <p class={`done done-${done.status}`}>
          <span class="pill">{statusLabels[done.status]}</span> {capitalize(done.reason)}. Marked fixed by {done.doneBy}
        </p>
      )}
      <div class="acts">
        {diffOf(evidence) && (
          <button type="button" data-copy={`#diff-${priority}`}>
            Copy patch
          </button>
        )}
        {verification && <Verify {...{ fix, path, verification }} model={report.agent.model} />}
        {verification && isEdit && (
          <a class="button" href={`${base}/experiments/new?report=${report.slug}&fix=${id}`}>
            Try this fix
          </a>
        )}
        {mayDismiss && (
          <details class="act">
            <summary>Not a problem</summary>
            <form method="post" action={`${path}/dismissals`}>
              {frictions.map(({ fingerprint }) => (
                <input key={fingerprint} type="hidden" name="fingerprint" value={fingerprint} />
              ))}
              <label>
                Reason
                <textarea name="reason" rows={2} maxLength={2000} required />
              </label>
              <p class="hint">Hides it from fixes and friction lists, in all reports. You can undo this.</p>
              <button type="submit" aria-label={`Dismiss: ${title}`}>
                Dismiss
              </button>
            </form>
          </details>
        )}
      </div>
    </li>
  );
}

/** Severity, frequency and cost of the friction that a fix removes. */
function FrictionPills({ frictions }: { frictions: Report["frictionPoints"] }) {
  const [worst] = frictions;
  if (!worst) return null;
  const [mostSeen = worst.seenIn] = frictions.map(({ seenIn }) => seenIn).toSorted((a, b) => b.runs - a.runs);
  const sumOf = (field: "lostSeconds" | "lostUsd") => frictions.reduce((sum, each) => sum + (each[field] ?? 0), 0);
  const [seconds, usd] = [sumOf("lostSeconds"), sumOf("lostUsd")];
  // A smaller loss would be shown as zero.
  const secondsText = seconds >= 0.1 && `${Number(seconds.toFixed(1))} s`;
  const lossesText = [secondsText, usd >= 0.005 && `$${usd.toFixed(2)}`].filter(Boolean).join(", ");
  return (
    <span class={`pills severity-${worst.severity}`}>
      <span class="pill severity">{worst.severity}</span>
      <span class="pill">
        {mostSeen.runs} of {count(mostSeen.of, "run")}
      </span>
      {lossesText !== "" && <span class="pill">{lossesText} lost</span>}
    </span>
  );
}

/** The line to change, before and after, or the text that is wrong. */
export function Diff({ id, evidence }: { id: string; evidence: Recommendation["evidence"] }) {
  const diff = diffOf(evidence);
  if (diff)
    return (
      <pre class="diff" id={id}>
        <del>- {diff.before}</del>
        {"\n"}
        <ins>+ {diff.after}</ins>
      </pre>
    );
  return evidence?.text ? (
    <pre class="diff">
      <code>{evidence.text}</code>
    </pre>
  ) : null;
}

const stepLabels = { read: "read", failed: "tried", guessed: "guessed", worked: "worked" } as const;

type EvidenceStep = NonNullable<Recommendation["evidence"]>["steps"][number];

/** What was read, what failed and what worked, each linked to its event. Several guesses are joined into one step. */
function EvidenceSteps({ steps, session }: { steps: EvidenceStep[]; session: string | null }) {
  const shownSteps = steps.filter(({ role }, i) => role !== "guessed" || steps[i - 1]?.role !== "guessed");
  const guesses = steps.filter(({ role }) => role === "guessed").length;
  const isSeveral = (role: EvidenceStep["role"]) => role === "guessed" && guesses > 1;
  return (
    <span class="steps">
      {shownSteps.map(({ role, event, what, status }, i) => (
        <span key={event} class={`step-of-${role}`}>
          {i > 0 && " → "}
          {session === null ? (
            `event ${event}`
          ) : (
            <a class="name" href={toEventHref(session, event)}>
              event {event}
            </a>
          )}{" "}
          {isSeveral(role) ? `guessed ${guesses} others` : `${stepLabels[role]} ${what}`}{" "}
          {status !== null && !isSeveral(role) && <strong>{status}</strong>}
        </span>
      ))}
    </span>
  );
}

function usdText(maxUsd: number | null): string {
  if (maxUsd === null) return "price unknown";
  return maxUsd === 0 ? "free" : `≤ $${maxUsd.toFixed(2)}`;
}

type VerifyProps = { fix: Recommendation; path: string; verification: Verification; model: string | null };

/** Shows the price. Asks for consent, unless verifying is free. */
function Verify({ fix, path, verification: { fingerprint, runs, maxUsd }, model }: VerifyProps) {
  const price = `${count(runs, "run")}, ${usdText(maxUsd)}`;
  return (
    <details class="act">
      <summary>Mark fixed and verify ({price})</summary>
      <form method="post" action={`${path}/done/${fingerprint}`}>
        <p class="hint">Starts {count(runs, "run")} to check that the friction is gone.</p>
        <label>
          What did you change? (optional)
          <textarea name="note" rows={2} maxLength={2000} />
        </label>
        {maxUsd !== 0 && (
          <label class="check">
            <input type="checkbox" name="agreed" required /> I agree to pay{" "}
            {maxUsd === null ? "an unknown amount" : `up to $${maxUsd.toFixed(2)}`}
            {model && ` for ${model}`}
          </label>
        )}
        <button type="submit" class="main" aria-label={`Start verification: ${fix.title}`}>
          Start verification
        </button>
      </form>
    </details>
  );
}

const DismissedFixes = ({ fixes, path, mayDismiss }: Props & { fixes: Recommendation[] }) => (
  <details class="fold">
    <summary>
      <h3>
        Not a problem <small>{fixes.length}</small>
      </h3>
    </summary>
    <ul class="dismissed">
      {fixes.map(
        ({ id, title, dismissed }) =>
          dismissed && (
            <li key={id}>
              <span>
                <strong>{title}</strong>
                <small>
                  {dismissed.reason} Dismissed by {dismissed.dismissedBy} on <Day at={dismissed.createdAt} />
                </small>
              </span>
              {mayDismiss && (
                <ButtonForm action={`${path}/dismissals/${dismissed.id}/undo`} label={`Undo: ${title}`}>
                  Undo
                </ButtonForm>
              )}
            </li>
          ),
      )}
    </ul>
  </details>
);
