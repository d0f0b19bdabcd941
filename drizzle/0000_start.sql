CREATE TABLE `api_keys` (
	`hash` blob PRIMARY KEY NOT NULL,
	`id` text NOT NULL,
	`org_id` text NOT NULL,
	`name` text NOT NULL,
	`display` text NOT NULL,
	`created_at` integer NOT NULL,
	`expires_at` integer,
	`revoked_at` integer,
	`last_used_at` integer,
	FOREIGN KEY (`org_id`) REFERENCES `orgs`(`id`) ON UPDATE no action ON DELETE no action,
	CONSTRAINT "api_keys_hash" CHECK(length("api_keys"."hash") = 32)
) STRICT;
--> statement-breakpoint
CREATE UNIQUE INDEX `api_keys_id_unique` ON `api_keys` (`id`);--> statement-breakpoint
CREATE INDEX `api_keys_newest` ON `api_keys` (`org_id`,`id`);--> statement-breakpoint
CREATE TABLE `eval_requests` (
	`id` text PRIMARY KEY NOT NULL,
	`org_id` text NOT NULL,
	`prompt_id` text NOT NULL,
	`trigger` text NOT NULL,
	`created_at` integer NOT NULL,
	FOREIGN KEY (`org_id`,`prompt_id`) REFERENCES `prompts`(`org_id`,`id`) ON UPDATE no action ON DELETE no action,
	CONSTRAINT "eval_requests_trigger" CHECK("eval_requests"."trigger" in ('schedule', 'api', 'mcp', 'web', 'cli'))
) STRICT;
--> statement-breakpoint
CREATE INDEX `eval_requests_by_prompt` ON `eval_requests` (`org_id`,`prompt_id`,`id`);--> statement-breakpoint
CREATE UNIQUE INDEX `eval_requests_of_org` ON `eval_requests` (`org_id`,`id`);--> statement-breakpoint
CREATE TABLE `friction_points` (
	`id` text PRIMARY KEY NOT NULL,
	`org_id` text NOT NULL,
	`report_id` text NOT NULL,
	`prompt_id` text NOT NULL,
	`position` integer NOT NULL,
	`fingerprint` text NOT NULL,
	`severity` text NOT NULL,
	`phase` text NOT NULL,
	`category` text NOT NULL,
	`title` text NOT NULL,
	`description` text NOT NULL,
	`quote` text,
	`url` text,
	`events` text NOT NULL,
	`lost_seconds` real,
	`lost_usd` real,
	FOREIGN KEY (`org_id`,`report_id`) REFERENCES `reports`(`org_id`,`id`) ON UPDATE no action ON DELETE no action,
	CONSTRAINT "friction_points_severity" CHECK("friction_points"."severity" in ('critical', 'high', 'medium', 'low')),
	CONSTRAINT "friction_points_phase" CHECK("friction_points"."phase" in ('discovery', 'setup', 'integration', 'execution', 'recovery')),
	CONSTRAINT "friction_points_category" CHECK("friction_points"."category" in ('dead_link', 'missing_docs', 'misleading_docs', 'unreadable_page', 'broken_sample', 'unclear_error', 'silent_failure', 'needs_human', 'auth', 'slow', 'wrong_contract', 'other')),
	CONSTRAINT "friction_points_events" CHECK(json_array_length("friction_points"."events") > 0)
) STRICT;
--> statement-breakpoint
CREATE INDEX `friction_points_by_prompt` ON `friction_points` (`org_id`,`prompt_id`,`fingerprint`);--> statement-breakpoint
CREATE UNIQUE INDEX `friction_points_of_org` ON `friction_points` (`org_id`,`id`);--> statement-breakpoint
CREATE UNIQUE INDEX `friction_points_of_report` ON `friction_points` (`report_id`,`fingerprint`);--> statement-breakpoint
CREATE TABLE `jobs` (
	`id` text PRIMARY KEY NOT NULL,
	`kind` text NOT NULL,
	`subject` text NOT NULL,
	`state` text NOT NULL,
	`available_at` integer NOT NULL,
	`attempt` integer NOT NULL,
	`max_attempts` integer NOT NULL,
	`fence` integer NOT NULL,
	`owner` text,
	`lease_until` integer,
	`last_error` text,
	`created_at` integer NOT NULL,
	`ended_at` integer,
	CONSTRAINT "jobs_state" CHECK("jobs"."state" in ('queued', 'running', 'done', 'failed')),
	CONSTRAINT "jobs_lease" CHECK(("jobs"."state" = 'running') = ("jobs"."lease_until" is not null)),
	CONSTRAINT "jobs_ended" CHECK(("jobs"."state" in ('done', 'failed')) = ("jobs"."ended_at" is not null))
) STRICT;
--> statement-breakpoint
CREATE INDEX `jobs_claim` ON `jobs` (`available_at`,`id`) WHERE "jobs"."state" = 'queued';--> statement-breakpoint
CREATE INDEX `jobs_running` ON `jobs` (`lease_until`) WHERE "jobs"."state" = 'running';--> statement-breakpoint
CREATE UNIQUE INDEX `jobs_subject` ON `jobs` (`kind`,`subject`);--> statement-breakpoint
CREATE TABLE `orgs` (
	`id` text PRIMARY KEY NOT NULL,
	`name` text NOT NULL,
	`time_zone` text NOT NULL,
	`created_at` integer NOT NULL,
	CONSTRAINT "orgs_name" CHECK(length("orgs"."name") between 1 and 200)
) STRICT;
--> statement-breakpoint
CREATE UNIQUE INDEX `orgs_name_unique` ON `orgs` (`name`);--> statement-breakpoint
CREATE TABLE `prompts` (
	`id` text PRIMARY KEY NOT NULL,
	`org_id` text NOT NULL,
	`title` text,
	`text` text NOT NULL,
	`end_goal` text,
	`status` text NOT NULL,
	`frequency` text,
	`runs_per_eval` integer,
	`target_provider_id` text,
	`additional_urls` text,
	`template_vars` text,
	`template_defaults` text,
	`declared_checks` text,
	`agent` text,
	`model` text,
	`review_before_publishing` integer NOT NULL,
	`created_at` integer NOT NULL,
	FOREIGN KEY (`org_id`) REFERENCES `orgs`(`id`) ON UPDATE no action ON DELETE no action,
	FOREIGN KEY (`org_id`,`target_provider_id`) REFERENCES `providers`(`org_id`,`id`) ON UPDATE no action ON DELETE no action,
	CONSTRAINT "prompts_status" CHECK("prompts"."status" in ('active', 'paused', 'archived')),
	CONSTRAINT "prompts_runs_per_eval" CHECK("prompts"."runs_per_eval" between 1 and 50)
) STRICT;
--> statement-breakpoint
CREATE INDEX `prompts_by_status` ON `prompts` (`org_id`,`status`,`id`);--> statement-breakpoint
CREATE UNIQUE INDEX `prompts_of_org` ON `prompts` (`org_id`,`id`);--> statement-breakpoint
CREATE TABLE `providers` (
	`id` text PRIMARY KEY NOT NULL,
	`org_id` text NOT NULL,
	`name` text NOT NULL,
	`docs_url` text,
	`product_url` text,
	`created_at` integer NOT NULL,
	FOREIGN KEY (`org_id`) REFERENCES `orgs`(`id`) ON UPDATE no action ON DELETE no action
) STRICT;
--> statement-breakpoint
CREATE UNIQUE INDEX `providers_of_org` ON `providers` (`org_id`,`id`);--> statement-breakpoint
CREATE TABLE `recommendations` (
	`id` text PRIMARY KEY NOT NULL,
	`org_id` text NOT NULL,
	`report_id` text NOT NULL,
	`priority` integer NOT NULL,
	`title` text NOT NULL,
	`action` text NOT NULL,
	`url` text,
	`friction_ids` text NOT NULL,
	`expected_gain` real,
	FOREIGN KEY (`org_id`,`report_id`) REFERENCES `reports`(`org_id`,`id`) ON UPDATE no action ON DELETE no action,
	CONSTRAINT "recommendations_frictions" CHECK(json_array_length("recommendations"."friction_ids") > 0)
) STRICT;
--> statement-breakpoint
CREATE UNIQUE INDEX `recommendations_of_report` ON `recommendations` (`report_id`,`priority`);--> statement-breakpoint
CREATE TABLE `reports` (
	`id` text PRIMARY KEY NOT NULL,
	`org_id` text NOT NULL,
	`run_id` text NOT NULL,
	`prompt_id` text NOT NULL,
	`attempt` integer NOT NULL,
	`slug` text NOT NULL,
	`status` text NOT NULL,
	`outcome` text NOT NULL,
	`score` real,
	`grade` text,
	`null_notice` text,
	`key_finding` text NOT NULL,
	`verdict` text NOT NULL,
	`summary` text NOT NULL,
	`coverage` real NOT NULL,
	`metrics` text NOT NULL,
	`dimensions` text NOT NULL,
	`methodology` text NOT NULL,
	`created_at` integer NOT NULL,
	FOREIGN KEY (`org_id`,`run_id`) REFERENCES `runs`(`org_id`,`id`) ON UPDATE no action ON DELETE no action,
	CONSTRAINT "reports_status" CHECK("reports"."status" in ('published', 'draft', 'archived')),
	CONSTRAINT "reports_outcome" CHECK("reports"."outcome" in ('succeeded', 'goal_not_met', 'not_judged', 'no_creds', 'excluded', 'scoring_failed')),
	CONSTRAINT "reports_score" CHECK("reports"."score" between 0 and 100),
	CONSTRAINT "reports_null_score" CHECK(("reports"."score" is null) = ("reports"."null_notice" is not null))
) STRICT;
--> statement-breakpoint
CREATE UNIQUE INDEX `reports_run_id_unique` ON `reports` (`run_id`);--> statement-breakpoint
CREATE UNIQUE INDEX `reports_slug_unique` ON `reports` (`slug`);--> statement-breakpoint
CREATE INDEX `reports_by_status` ON `reports` (`org_id`,`status`,`run_id`);--> statement-breakpoint
CREATE INDEX `reports_by_prompt` ON `reports` (`org_id`,`prompt_id`,`status`,`run_id`);--> statement-breakpoint
CREATE UNIQUE INDEX `reports_of_org` ON `reports` (`org_id`,`id`);--> statement-breakpoint
CREATE TABLE `run_counts` (
	`org_id` text NOT NULL,
	`prompt_id` text NOT NULL,
	`report_status` text NOT NULL,
	`count` integer NOT NULL,
	PRIMARY KEY(`org_id`, `prompt_id`, `report_status`)
) STRICT;
--> statement-breakpoint
CREATE TABLE `runs` (
	`id` text PRIMARY KEY NOT NULL,
	`org_id` text NOT NULL,
	`prompt_id` text NOT NULL,
	`eval_request_id` text NOT NULL,
	`status` text NOT NULL,
	`url_map` text NOT NULL,
	`template_args` text,
	`task` text NOT NULL,
	`agent` text NOT NULL,
	`agent_version` text,
	`model` text,
	`attempt` integer NOT NULL,
	`failure_reason` text,
	`created_at` integer NOT NULL,
	`started_at` integer,
	`completed_at` integer,
	`idempotency_key` text,
	`idempotency_hash` text,
	FOREIGN KEY (`org_id`,`prompt_id`) REFERENCES `prompts`(`org_id`,`id`) ON UPDATE no action ON DELETE no action,
	FOREIGN KEY (`org_id`,`eval_request_id`) REFERENCES `eval_requests`(`org_id`,`id`) ON UPDATE no action ON DELETE no action,
	CONSTRAINT "runs_status" CHECK("runs"."status" in ('pending', 'running', 'completed', 'failed', 'superseded')),
	CONSTRAINT "runs_terminal" CHECK(("runs"."completed_at" is not null) = ("runs"."status" in ('completed', 'failed', 'superseded'))),
	CONSTRAINT "runs_failure" CHECK("runs"."status" != 'failed' or "runs"."failure_reason" is not null)
) STRICT;
--> statement-breakpoint
CREATE INDEX `runs_by_prompt` ON `runs` (`org_id`,`prompt_id`,`id`);--> statement-breakpoint
CREATE INDEX `runs_by_eval_request` ON `runs` (`org_id`,`eval_request_id`,`id`);--> statement-breakpoint
CREATE INDEX `runs_by_idempotency_key` ON `runs` (`org_id`,`idempotency_key`) WHERE "runs"."idempotency_key" is not null;--> statement-breakpoint
CREATE UNIQUE INDEX `runs_of_org` ON `runs` (`org_id`,`id`);--> statement-breakpoint
CREATE TABLE `session_events` (
	`org_id` text NOT NULL,
	`run_id` text NOT NULL,
	`attempt` integer NOT NULL,
	`seq` integer NOT NULL,
	`at` integer NOT NULL,
	`t_ms` integer NOT NULL,
	`type` text NOT NULL,
	`source` text NOT NULL,
	`data` text NOT NULL,
	PRIMARY KEY(`run_id`, `attempt`, `seq`),
	FOREIGN KEY (`org_id`,`run_id`) REFERENCES `runs`(`org_id`,`id`) ON UPDATE no action ON DELETE no action,
	CONSTRAINT "session_events_type" CHECK("session_events"."type" in ('thought', 'message', 'tool_call', 'tool_result', 'http', 'usage', 'error', 'interruption', 'limit', 'milestone', 'end')),
	CONSTRAINT "session_events_source" CHECK("session_events"."source" in ('agent', 'gateway', 'egress', 'runner'))
) STRICT;
