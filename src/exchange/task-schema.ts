import { Type } from "@sinclair/typebox";
import { Limits } from "../config/limits.ts";
import { Edits } from "../net/edits.ts";
import { AgentOptions, WorkerLabels } from "../prompts/agent-schema.ts";
import { DeclaredCheck } from "../prompts/check-schema.ts";
import { WorkspaceSetup } from "../prompts/workspace-schema.ts";
import { Nullable } from "../schema.ts";

/** The task of a run in a file. */
export const task = Type.Object({
  title: Nullable(Type.String()),
  text: Type.String(),
  endGoal: Nullable(Type.String()),
  wordings: Type.Optional(Type.Array(Type.String())),
  basis: Type.Optional(Type.Object({ url: Type.String(), quote: Type.String() })),
  startUrls: Type.Array(Type.String()),
  productUrl: Nullable(Type.String()),
  edits: Type.Optional(Edits),
  declaredChecks: Type.Array(DeclaredCheck),
  workspace: Type.Optional(WorkspaceSetup),
  agentOptions: Type.Optional(AgentOptions),
  reviewBeforePublishing: Type.Boolean(),
  limits: Nullable(Limits),
  workerLabels: Type.Optional(WorkerLabels),
});
