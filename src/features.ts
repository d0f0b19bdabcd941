import { createAgentList } from "./agents/choice.ts";
import { hasArchive } from "./archives/archives.ts";
import type { Context, OrgId } from "./context.ts";
import { createField } from "./field/field.ts";
import { createFieldReports } from "./field/reports.ts";
import { createDismissals } from "./friction/dismissals.ts";
import { createFriction } from "./friction/friction.ts";
import { getModel, listModelSecrets } from "./models/models.ts";
import { createPrompts } from "./prompts/prompts.ts";
import { createRedaction } from "./runs/redaction.ts";
import { createShares } from "./shares/shares.ts";

export type Features = ReturnType<typeof createFeatures>;

/** Reading and storing: everything that needs no job. */
export function createFeatures(ctx: Context) {
  const { config } = ctx;
  const listAgents = createAgentList(ctx.agents);
  const prompts = createPrompts(ctx, {
    listAgents,
    agentModel: config.agentModel,
    checkModel: (org, model) => getModel(ctx, org, model),
    hasArchive: (org, id) => hasArchive(ctx, org, id),
  });
  const dismissals = createDismissals(ctx);
  const redact = (org: OrgId, text: string) => createRedaction(listModelSecrets(ctx, org)).clean(text);
  const field = { ...createField(ctx), ...createFieldReports(ctx, { redact }) };
  const friction = createFriction(ctx, { ...dismissals, ...field });
  const shares = createShares(ctx);
  return {
    listAgents,
    prompts,
    dismissals,
    friction,
    field,
    shares,
  };
}
