CREATE TABLE `audit_entries` (
	`id` text PRIMARY KEY NOT NULL,
	`org_id` text,
	`created_at` integer NOT NULL,
	`actor_kind` text NOT NULL,
	`actor_id` text,
	`actor_name` text NOT NULL,
	`ip_address` text,
	`user_agent` text,
	`request_id` text,
	`action` text NOT NULL,
	`target_id` text,
	`target_name` text,
	`changes` text,
	CONSTRAINT "audit_entries_actor_kind" CHECK("audit_entries"."actor_kind" in ('person', 'key', 'trust', 'operator', 'service', 'anonymous'))
) STRICT;
--> statement-breakpoint
CREATE INDEX `audit_entries_newest` ON `audit_entries` (`org_id`,`id`);--> statement-breakpoint
CREATE INDEX `audit_entries_by_actor` ON `audit_entries` (`org_id`,`actor_id`,`id`);--> statement-breakpoint
CREATE INDEX `audit_entries_of_target` ON `audit_entries` (`org_id`,`target_id`) WHERE "audit_entries"."target_id" is not null;--> statement-breakpoint
CREATE INDEX `audit_entries_by_action` ON `audit_entries` (`org_id`,`action`,`id`);--> statement-breakpoint
CREATE TABLE `audit_retention` (
	`id` integer PRIMARY KEY NOT NULL,
	`delete_before` integer NOT NULL,
	CONSTRAINT "audit_retention_once" CHECK("audit_retention"."id" = 1)
) STRICT;
--> statement-breakpoint
CREATE TABLE `backups` (
	`id` text PRIMARY KEY NOT NULL,
	`requested_by` text,
	`status` text NOT NULL,
	`created_at` integer NOT NULL,
	`started_at` integer,
	`completed_at` integer,
	`name` text,
	`location` text,
	`bytes` integer,
	`runs` integer,
	`failure` text,
	`removed_at` integer,
	CONSTRAINT "backups_status" CHECK("backups"."status" in ('queued', 'running', 'completed', 'failed')),
	CONSTRAINT "backups_completed" CHECK(("backups"."status" in ('completed', 'failed')) = ("backups"."completed_at" is not null)),
	CONSTRAINT "backups_failed" CHECK(("backups"."status" = 'failed') = ("backups"."failure" is not null))
) STRICT;
--> statement-breakpoint
CREATE INDEX `backups_by_start` ON `backups` (`started_at`);--> statement-breakpoint
CREATE TABLE `bisect_runs` (
	`org_id` text NOT NULL,
	`bisect_id` text NOT NULL,
	`run_id` text NOT NULL,
	`build` integer NOT NULL,
	`step` integer NOT NULL,
	`model` text,
	PRIMARY KEY(`bisect_id`, `run_id`),
	FOREIGN KEY (`org_id`,`bisect_id`) REFERENCES `bisects`(`org_id`,`id`) ON UPDATE no action ON DELETE no action,
	FOREIGN KEY (`org_id`,`run_id`) REFERENCES `runs`(`org_id`,`id`) ON UPDATE no action ON DELETE no action
) STRICT;
--> statement-breakpoint
CREATE INDEX `bisect_runs_by_run` ON `bisect_runs` (`org_id`,`run_id`);--> statement-breakpoint
CREATE TABLE `bisects` (
	`id` text PRIMARY KEY NOT NULL,
	`org_id` text NOT NULL,
	`prompt_id` text NOT NULL,
	`agent` text,
	`model` text,
	`url_template` text NOT NULL,
	`commits` text NOT NULL,
	`skipped` text NOT NULL,
	`template_args` text,
	`budget_usd` real,
	`trigger` text NOT NULL,
	`person_id` text,
	`key_id` text,
	`status` text NOT NULL,
	`stop_reason` text,
	`result` text,
	`spent_usd` real,
	`created_at` integer NOT NULL,
	`completed_at` integer,
	FOREIGN KEY (`org_id`,`prompt_id`) REFERENCES `prompts`(`org_id`,`id`) ON UPDATE no action ON DELETE no action,
	CONSTRAINT "bisects_trigger" CHECK("bisects"."trigger" in ('schedule', 'ci', 'api', 'mcp', 'web', 'cli')),
	CONSTRAINT "bisects_status" CHECK("bisects"."status" in ('running', 'found', 'stopped')),
	CONSTRAINT "bisects_stop_reason" CHECK("bisects"."status" <> 'stopped' or "bisects"."stop_reason" is not null),
	CONSTRAINT "bisects_completed" CHECK(("bisects"."status" = 'running') = ("bisects"."completed_at" is null))
) STRICT;
--> statement-breakpoint
CREATE INDEX `bisects_running` ON `bisects` (`id`) WHERE "bisects"."status" = 'running';--> statement-breakpoint
CREATE UNIQUE INDEX `bisects_of_org` ON `bisects` (`org_id`,`id`);--> statement-breakpoint
CREATE TABLE `calibration_runs` (
	`org_id` text NOT NULL,
	`calibration_id` text NOT NULL,
	`run_id` text NOT NULL,
	`site` integer NOT NULL,
	`role` text NOT NULL,
	`planted` text NOT NULL,
	PRIMARY KEY(`calibration_id`, `run_id`),
	FOREIGN KEY (`org_id`,`calibration_id`) REFERENCES `calibrations`(`org_id`,`id`) ON UPDATE no action ON DELETE no action,
	FOREIGN KEY (`org_id`,`run_id`) REFERENCES `runs`(`org_id`,`id`) ON UPDATE no action ON DELETE no action,
	CONSTRAINT "calibration_runs_role" CHECK("calibration_runs"."role" in ('clean', 'equal', 'planted'))
) STRICT;
--> statement-breakpoint
CREATE INDEX `calibration_runs_by_run` ON `calibration_runs` (`org_id`,`run_id`);--> statement-breakpoint
CREATE TABLE `calibrations` (
	`id` text PRIMARY KEY NOT NULL,
	`org_id` text NOT NULL,
	`source` text NOT NULL,
	`prompt_id` text NOT NULL,
	`agent` text NOT NULL,
	`requested_model` text,
	`model` text,
	`sites` integer NOT NULL,
	`budget_usd` real,
	`every_days` integer,
	`next_at` integer,
	`status` text NOT NULL,
	`stop_reason` text,
	`methodology` text,
	`figures` text,
	`worse` text,
	`spent_usd` real,
	`created_at` integer NOT NULL,
	`completed_at` integer,
	FOREIGN KEY (`org_id`) REFERENCES `orgs`(`id`) ON UPDATE no action ON DELETE no action,
	FOREIGN KEY (`org_id`,`prompt_id`) REFERENCES `prompts`(`org_id`,`id`) ON UPDATE no action ON DELETE no action,
	CONSTRAINT "calibrations_source" CHECK("calibrations"."source" in ('sites', 'docs')),
	CONSTRAINT "calibrations_status" CHECK("calibrations"."status" in ('running', 'completed', 'stopped')),
	CONSTRAINT "calibrations_stop_reason" CHECK(("calibrations"."status" = 'stopped') = ("calibrations"."stop_reason" is not null)),
	CONSTRAINT "calibrations_completed" CHECK(("calibrations"."status" = 'running') = ("calibrations"."completed_at" is null)),
	CONSTRAINT "calibrations_sites" CHECK("calibrations"."sites" between 1 and 50)
) STRICT;
--> statement-breakpoint
CREATE INDEX `calibrations_running` ON `calibrations` (`id`) WHERE "calibrations"."status" = 'running';--> statement-breakpoint
CREATE INDEX `calibrations_due` ON `calibrations` (`next_at`) WHERE "calibrations"."next_at" is not null;--> statement-breakpoint
CREATE INDEX `calibrations_by_agent` ON `calibrations` (`org_id`,`source`,`agent`,`model`,`methodology`,`completed_at`);--> statement-breakpoint
CREATE UNIQUE INDEX `calibrations_of_org` ON `calibrations` (`org_id`,`id`);--> statement-breakpoint
CREATE TABLE `check_problems` (
	`check` text NOT NULL,
	`cause` text NOT NULL,
	`subject` text NOT NULL,
	`state` text NOT NULL,
	`detail` text NOT NULL,
	`since` integer NOT NULL,
	PRIMARY KEY(`check`, `cause`, `subject`)
) STRICT;
--> statement-breakpoint
CREATE TABLE `known_workers` (
	`name` text PRIMARY KEY NOT NULL,
	`credential` text NOT NULL,
	`agents` text NOT NULL,
	`labels` text NOT NULL,
	`away_at` integer
) STRICT;
--> statement-breakpoint
CREATE TABLE `clock` (
	`id` integer PRIMARY KEY NOT NULL,
	`proven_at` integer NOT NULL,
	`ahead_for_ms` integer NOT NULL,
	CONSTRAINT "clock_once" CHECK("clock"."id" = 1)
) STRICT;
--> statement-breakpoint
CREATE TABLE `deleted_orgs` (
	`org_id` text PRIMARY KEY NOT NULL,
	`deletion_id` text NOT NULL
) STRICT;
--> statement-breakpoint
CREATE TABLE `deleted_people` (
	`person_id` text PRIMARY KEY NOT NULL,
	`name` text NOT NULL,
	`email` text NOT NULL
) STRICT;
--> statement-breakpoint
CREATE TABLE `deleted_prompts` (
	`prompt_id` text PRIMARY KEY NOT NULL,
	`deletion_id` text NOT NULL
) STRICT;
--> statement-breakpoint
CREATE INDEX `deleted_prompts_of_deletion` ON `deleted_prompts` (`deletion_id`);--> statement-breakpoint
CREATE TABLE `deletions` (
	`id` text PRIMARY KEY NOT NULL,
	`org_id` text NOT NULL,
	`kind` text NOT NULL,
	`subject_id` text NOT NULL,
	`of_prompt` text,
	`title` text,
	`slug` text,
	`counts` text NOT NULL,
	`status` text NOT NULL,
	`deleted_by` text,
	`created_at` integer NOT NULL,
	`erases_at` integer NOT NULL,
	`completed_at` integer,
	CONSTRAINT "deletions_kind" CHECK("deletions"."kind" in ('organization', 'prompt', 'run')),
	CONSTRAINT "deletions_status" CHECK("deletions"."status" in ('pending', 'erasing', 'erased', 'restored')),
	CONSTRAINT "deletions_completed" CHECK(("deletions"."status" in ('erased', 'restored')) = ("deletions"."completed_at" is not null)),
	CONSTRAINT "deletions_erased" CHECK("deletions"."status" != 'erased' or "deletions"."title" is null)
) STRICT;
--> statement-breakpoint
CREATE INDEX `deletions_of_org` ON `deletions` (`org_id`,`id`);--> statement-breakpoint
CREATE INDEX `deletions_by_completion` ON `deletions` (`completed_at`,`kind`,`subject_id`) WHERE "deletions"."status" != 'restored';--> statement-breakpoint
CREATE INDEX `deletions_open` ON `deletions` (`org_id`,`erases_at`) WHERE "deletions"."completed_at" is null;--> statement-breakpoint
CREATE TABLE `erased_slugs` (
	`digest` blob PRIMARY KEY NOT NULL
) STRICT;
--> statement-breakpoint
CREATE TABLE `retention` (
	`org_id` text NOT NULL,
	`kind` text NOT NULL,
	`days` integer NOT NULL,
	PRIMARY KEY(`org_id`, `kind`),
	CONSTRAINT "retention_kind" CHECK("retention"."kind" in ('sessions', 'artifacts', 'reports', 'deliveries', 'people')),
	CONSTRAINT "retention_days" CHECK("retention"."days" between 1 and 36500)
) STRICT;
--> statement-breakpoint
CREATE TABLE `experiment_runs` (
	`org_id` text NOT NULL,
	`experiment_id` text NOT NULL,
	`run_id` text NOT NULL,
	`arm` text NOT NULL,
	`block` integer NOT NULL,
	`model` text,
	`treatment` text,
	PRIMARY KEY(`org_id`, `experiment_id`, `run_id`),
	FOREIGN KEY (`org_id`,`experiment_id`) REFERENCES `experiments`(`org_id`,`id`) ON UPDATE no action ON DELETE no action,
	FOREIGN KEY (`org_id`,`run_id`) REFERENCES `runs`(`org_id`,`id`) ON UPDATE no action ON DELETE no action
) STRICT;
--> statement-breakpoint
CREATE INDEX `experiment_runs_by_run` ON `experiment_runs` (`org_id`,`run_id`);--> statement-breakpoint
CREATE TABLE `experiments` (
	`id` text PRIMARY KEY NOT NULL,
	`org_id` text NOT NULL,
	`title` text NOT NULL,
	`arms` text NOT NULL,
	`prompt_ids` text NOT NULL,
	`template_args` text,
	`triggering` text,
	`repeats` integer NOT NULL,
	`seed` integer NOT NULL,
	`budget_usd` real,
	`status` text NOT NULL,
	`stop_reason` text,
	`analysis` text,
	`spent_usd` real,
	`every_weeks` integer,
	`drift` text,
	`created_at` integer NOT NULL,
	`completed_at` integer,
	FOREIGN KEY (`org_id`) REFERENCES `orgs`(`id`) ON UPDATE no action ON DELETE no action,
	CONSTRAINT "experiments_drift" CHECK("experiments"."drift" in ('explorer', 'rate', 'spread')),
	CONSTRAINT "experiments_status" CHECK("experiments"."status" in ('running', 'completed', 'stopped')),
	CONSTRAINT "experiments_stop_reason" CHECK("experiments"."status" <> 'stopped' or "experiments"."stop_reason" is not null),
	CONSTRAINT "experiments_completed" CHECK(("experiments"."status" = 'running') = ("experiments"."completed_at" is null)),
	CONSTRAINT "experiments_repeats" CHECK("experiments"."repeats" between 1 and 50)
) STRICT;
--> statement-breakpoint
CREATE INDEX `experiments_running` ON `experiments` (`id`) WHERE "experiments"."status" = 'running';--> statement-breakpoint
CREATE INDEX `experiments_repeated` ON `experiments` (`id`) WHERE "experiments"."every_weeks" is not null;--> statement-breakpoint
CREATE INDEX `experiments_drifted` ON `experiments` (`org_id`) WHERE "experiments"."drift" is not null;--> statement-breakpoint
CREATE UNIQUE INDEX `experiments_of_org` ON `experiments` (`org_id`,`id`);--> statement-breakpoint
CREATE TABLE `field_friction` (
	`id` text PRIMARY KEY NOT NULL,
	`org_id` text NOT NULL,
	`fingerprints` text NOT NULL,
	`fingerprint` text NOT NULL,
	`category` text NOT NULL,
	`place` text NOT NULL,
	`title` text NOT NULL,
	`reports` integer NOT NULL,
	`first_reported_at` integer NOT NULL,
	`last_reported_at` integer NOT NULL,
	`state` text NOT NULL,
	`reason` text,
	`changed_by` text,
	`changed_at` integer,
	FOREIGN KEY (`org_id`) REFERENCES `orgs`(`id`) ON UPDATE no action ON DELETE no action,
	CONSTRAINT "field_friction_state" CHECK("field_friction"."state" in ('open', 'regressed', 'resolved', 'dismissed')),
	CONSTRAINT "field_friction_category" CHECK("field_friction"."category" in ('dead_link', 'missing_docs', 'misleading_docs', 'unreadable_page', 'broken_sample', 'unclear_error', 'silent_failure', 'needs_human', 'auth', 'slow', 'wrong_contract', 'other')),
	CONSTRAINT "field_friction_changed" CHECK(("field_friction"."changed_by" is null) = ("field_friction"."changed_at" is null))
) STRICT;
--> statement-breakpoint
CREATE INDEX `field_friction_by_fingerprint` ON `field_friction` (`org_id`,`fingerprint`);--> statement-breakpoint
CREATE INDEX `field_friction_by_state` ON `field_friction` (`org_id`,`state`,`last_reported_at`);--> statement-breakpoint
CREATE UNIQUE INDEX `field_friction_of_org` ON `field_friction` (`org_id`,`id`);--> statement-breakpoint
CREATE TABLE `field_reports` (
	`id` text PRIMARY KEY NOT NULL,
	`org_id` text NOT NULL,
	`friction_id` text NOT NULL,
	`tried` text NOT NULL,
	`happened` text NOT NULL,
	`agent` text,
	`created_at` integer NOT NULL,
	FOREIGN KEY (`org_id`,`friction_id`) REFERENCES `field_friction`(`org_id`,`id`) ON UPDATE no action ON DELETE no action
) STRICT;
--> statement-breakpoint
CREATE INDEX `field_reports_of_friction` ON `field_reports` (`org_id`,`friction_id`,`id`);--> statement-breakpoint
CREATE TABLE `dismissals` (
	`id` text PRIMARY KEY NOT NULL,
	`org_id` text NOT NULL,
	`fingerprints` text NOT NULL,
	`title` text NOT NULL,
	`reason` text NOT NULL,
	`dismissed_by` text NOT NULL,
	`created_at` integer NOT NULL,
	`withdrawn_by` text,
	`withdrawn_at` integer,
	FOREIGN KEY (`org_id`) REFERENCES `orgs`(`id`) ON UPDATE no action ON DELETE no action,
	CONSTRAINT "dismissals_withdrawn" CHECK(("dismissals"."withdrawn_by" is null) = ("dismissals"."withdrawn_at" is null))
) STRICT;
--> statement-breakpoint
CREATE INDEX `dismissals_of_org` ON `dismissals` (`org_id`,`id`);--> statement-breakpoint
CREATE TABLE `exposures` (
	`report_id` text PRIMARY KEY NOT NULL,
	`org_id` text NOT NULL,
	`visits` text NOT NULL,
	`done` text NOT NULL,
	`is_complete` integer NOT NULL,
	`by_rules` integer NOT NULL,
	FOREIGN KEY (`org_id`,`report_id`) REFERENCES `reports`(`org_id`,`id`) ON UPDATE no action ON DELETE no action
) STRICT;
--> statement-breakpoint
CREATE TABLE `fixes` (
	`id` text PRIMARY KEY NOT NULL,
	`org_id` text NOT NULL,
	`prompt_id` text NOT NULL,
	`title` text NOT NULL,
	`fingerprints` text NOT NULL,
	`done_by` text NOT NULL,
	`note` text,
	`created_at` integer NOT NULL,
	`before_id` text NOT NULL,
	`after_id` text NOT NULL,
	FOREIGN KEY (`org_id`,`prompt_id`) REFERENCES `prompts`(`org_id`,`id`) ON UPDATE no action ON DELETE no action,
	FOREIGN KEY (`org_id`,`before_id`) REFERENCES `eval_requests`(`org_id`,`id`) ON UPDATE no action ON DELETE no action,
	FOREIGN KEY (`org_id`,`after_id`) REFERENCES `eval_requests`(`org_id`,`id`) ON UPDATE no action ON DELETE no action
) STRICT;
--> statement-breakpoint
CREATE INDEX `fixes_by_prompt` ON `fixes` (`org_id`,`prompt_id`,`id`);--> statement-breakpoint
CREATE TABLE `friction_lifecycles` (
	`org_id` text NOT NULL,
	`prompt_id` text NOT NULL,
	`place` text NOT NULL,
	`fingerprint` text NOT NULL,
	`report_id` text NOT NULL,
	`severity` text NOT NULL,
	`state` text NOT NULL,
	`first_seen_at` integer NOT NULL,
	`last_seen_at` integer NOT NULL,
	`fixed_at` integer,
	`met` integer NOT NULL,
	`reached` integer NOT NULL,
	`lost_points` real,
	`lost_seconds` real,
	`lost_usd` real,
	`page` text,
	`met_by` text NOT NULL,
	`preconditions` text NOT NULL,
	`life` text NOT NULL,
	PRIMARY KEY(`org_id`, `prompt_id`, `place`, `fingerprint`),
	FOREIGN KEY (`org_id`,`prompt_id`) REFERENCES `prompts`(`org_id`,`id`) ON UPDATE no action ON DELETE no action,
	FOREIGN KEY (`org_id`,`report_id`) REFERENCES `reports`(`org_id`,`id`) ON UPDATE no action ON DELETE no action,
	CONSTRAINT "friction_lifecycles_state" CHECK("friction_lifecycles"."state" in ('new', 'open', 'fixed', 'regressed')),
	CONSTRAINT "friction_lifecycles_severity" CHECK("friction_lifecycles"."severity" in ('critical', 'high', 'medium', 'low'))
) STRICT;
--> statement-breakpoint
CREATE INDEX `friction_lifecycles_of_report` ON `friction_lifecycles` (`org_id`,`report_id`);--> statement-breakpoint
CREATE INDEX `friction_lifecycles_by_fingerprint` ON `friction_lifecycles` (`org_id`,`fingerprint`);--> statement-breakpoint
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
	`on_path` integer DEFAULT true NOT NULL,
	`events` text NOT NULL,
	`lost_seconds` real,
	`lost_usd` real,
	`lost_points` real,
	`preconditions` text NOT NULL,
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
CREATE TABLE `recommendations` (
	`id` text PRIMARY KEY NOT NULL,
	`org_id` text NOT NULL,
	`report_id` text NOT NULL,
	`priority` integer NOT NULL,
	`title` text NOT NULL,
	`action` text NOT NULL,
	`is_convention` integer NOT NULL,
	`url` text,
	`friction_ids` text NOT NULL,
	`expected_gain` real,
	`gain` text,
	`lost_points` real,
	`evidence` text,
	FOREIGN KEY (`org_id`,`report_id`) REFERENCES `reports`(`org_id`,`id`) ON UPDATE no action ON DELETE no action,
	CONSTRAINT "recommendations_frictions" CHECK(json_array_length("recommendations"."friction_ids") > 0)
) STRICT;
--> statement-breakpoint
CREATE UNIQUE INDEX `recommendations_of_report` ON `recommendations` (`report_id`,`priority`);--> statement-breakpoint
CREATE TABLE `gates` (
	`id` text PRIMARY KEY NOT NULL,
	`org_id` text NOT NULL,
	`prompt_id` text NOT NULL,
	`head_request_id` text NOT NULL,
	`base_request_id` text,
	`base_run_ids` text,
	`model` text,
	`others` text,
	`runs` integer NOT NULL,
	`adaptive` integer NOT NULL,
	`min_score` real,
	`scope` text DEFAULT 'goal' NOT NULL,
	`budget_usd` real,
	`status` text NOT NULL,
	`reason` text,
	`cause` text,
	`comparison` text,
	`agents` text,
	`spent_usd` real,
	`created_at` integer NOT NULL,
	`completed_at` integer,
	FOREIGN KEY (`org_id`,`prompt_id`) REFERENCES `prompts`(`org_id`,`id`) ON UPDATE no action ON DELETE no action,
	FOREIGN KEY (`org_id`,`head_request_id`) REFERENCES `eval_requests`(`org_id`,`id`) ON UPDATE no action ON DELETE no action,
	FOREIGN KEY (`org_id`,`base_request_id`) REFERENCES `eval_requests`(`org_id`,`id`) ON UPDATE no action ON DELETE no action,
	CONSTRAINT "gates_scope" CHECK("gates"."scope" in ('goal', 'conduct_only', 'docs_only')),
	CONSTRAINT "gates_status" CHECK("gates"."status" in ('running', 'passed', 'failed', 'error')),
	CONSTRAINT "gates_completed" CHECK(("gates"."status" = 'running') = ("gates"."completed_at" is null)),
	CONSTRAINT "gates_reason" CHECK(("gates"."status" = 'running') = ("gates"."reason" is null))
) STRICT;
--> statement-breakpoint
CREATE INDEX `gates_by_prompt` ON `gates` (`org_id`,`prompt_id`,`id`);--> statement-breakpoint
CREATE INDEX `gates_of_base` ON `gates` (`org_id`,`base_request_id`) WHERE "gates"."base_request_id" is not null;--> statement-breakpoint
CREATE INDEX `gates_running` ON `gates` (`id`) WHERE "gates"."status" = 'running';--> statement-breakpoint
CREATE UNIQUE INDEX `gates_of_org` ON `gates` (`org_id`,`id`);--> statement-breakpoint
CREATE UNIQUE INDEX `gates_of_request` ON `gates` (`org_id`,`head_request_id`);--> statement-breakpoint
CREATE TABLE `inbox_marks` (
	`org_id` text NOT NULL,
	`item_id` text NOT NULL,
	`snoozed_until` integer,
	`assignee` text,
	`marked_by` text NOT NULL,
	`marked_at` integer NOT NULL,
	PRIMARY KEY(`org_id`, `item_id`),
	FOREIGN KEY (`org_id`) REFERENCES `orgs`(`id`) ON UPDATE no action ON DELETE no action
) STRICT;
--> statement-breakpoint
CREATE TABLE `earlier_attempts` (
	`job_id` text NOT NULL,
	`attempt` integer NOT NULL,
	`owner` text NOT NULL,
	`started_at` integer NOT NULL,
	`completed_at` integer NOT NULL,
	`outcome` text NOT NULL,
	`reason` text,
	`cost_usd` real,
	PRIMARY KEY(`job_id`, `attempt`),
	CONSTRAINT "earlier_attempts_outcome" CHECK("earlier_attempts"."outcome" in ('retried', 'released', 'lost'))
) STRICT;
--> statement-breakpoint
CREATE TABLE `jobs` (
	`id` text PRIMARY KEY NOT NULL,
	`pool` text DEFAULT 'runs' NOT NULL,
	`kind` text NOT NULL,
	`subject` text NOT NULL,
	`org_id` text NOT NULL,
	`host` text NOT NULL,
	`state` text NOT NULL,
	`available_at` integer NOT NULL,
	`attempt` integer NOT NULL,
	`spent` integer NOT NULL,
	`max_attempts` integer NOT NULL,
	`faults` integer NOT NULL,
	`deaths` integer NOT NULL,
	`owner` text,
	`lease_until` integer,
	`last_error` text,
	`created_at` integer NOT NULL,
	`started_at` integer,
	`attempt_started_at` integer,
	`completed_at` integer,
	`cost_usd` real,
	CONSTRAINT "jobs_state" CHECK("jobs"."state" in ('queued', 'held', 'running', 'done', 'failed', 'cancelled')),
	CONSTRAINT "jobs_lease" CHECK(("jobs"."state" = 'running') = ("jobs"."lease_until" is not null)),
	CONSTRAINT "jobs_completed" CHECK(("jobs"."state" in ('done', 'failed', 'cancelled')) = ("jobs"."completed_at" is not null))
) STRICT;
--> statement-breakpoint
CREATE INDEX `jobs_claim` ON `jobs` (`pool`,`org_id`,`host`,`available_at`,`id`) WHERE "jobs"."state" = 'queued';--> statement-breakpoint
CREATE INDEX `jobs_waiting` ON `jobs` (`available_at`) WHERE "jobs"."state" = 'queued' and "jobs"."available_at" > 0;--> statement-breakpoint
CREATE INDEX `jobs_held` ON `jobs` (`org_id`) WHERE "jobs"."state" = 'held';--> statement-breakpoint
CREATE INDEX `jobs_running` ON `jobs` (`lease_until`) WHERE "jobs"."state" = 'running';--> statement-breakpoint
CREATE INDEX `jobs_started` ON `jobs` (`org_id`,`started_at`) WHERE "jobs"."started_at" is not null;--> statement-breakpoint
CREATE UNIQUE INDEX `jobs_subject` ON `jobs` (`kind`,`subject`);--> statement-breakpoint
CREATE TABLE `agent_logins` (
	`org_id` text NOT NULL,
	`agent` text NOT NULL,
	`sealed` blob NOT NULL,
	`expires_at` integer,
	`created_at` integer NOT NULL,
	PRIMARY KEY(`org_id`, `agent`),
	FOREIGN KEY (`org_id`) REFERENCES `orgs`(`id`) ON UPDATE no action ON DELETE no action
) STRICT;
--> statement-breakpoint
CREATE TABLE `api_keys` (
	`hash` blob PRIMARY KEY NOT NULL,
	`id` text NOT NULL,
	`org_id` text NOT NULL,
	`name` text NOT NULL,
	`display` text NOT NULL,
	`scopes` text,
	`created_at` integer NOT NULL,
	`expires_at` integer,
	`revoked_at` integer,
	`last_used_at` integer,
	`created_by` text,
	`trust_id` text,
	`uses_compatibility_mode` integer DEFAULT false NOT NULL,
	FOREIGN KEY (`org_id`) REFERENCES `orgs`(`id`) ON UPDATE no action ON DELETE no action,
	CONSTRAINT "api_keys_hash" CHECK(length("api_keys"."hash") = 32)
) STRICT;
--> statement-breakpoint
CREATE UNIQUE INDEX `api_keys_id_unique` ON `api_keys` (`id`);--> statement-breakpoint
CREATE INDEX `api_keys_newest` ON `api_keys` (`org_id`,`id`);--> statement-breakpoint
CREATE TABLE `check_secrets` (
	`org_id` text NOT NULL,
	`name` text NOT NULL,
	`sealed` blob NOT NULL,
	`hosts` text,
	`updated_at` integer NOT NULL,
	PRIMARY KEY(`org_id`, `name`),
	FOREIGN KEY (`org_id`) REFERENCES `orgs`(`id`) ON UPDATE no action ON DELETE no action
) STRICT;
--> statement-breakpoint
CREATE TABLE `model_keys` (
	`org_id` text NOT NULL,
	`provider` text NOT NULL,
	`base_url` text NOT NULL,
	`sealed` blob NOT NULL,
	`created_at` integer NOT NULL,
	PRIMARY KEY(`org_id`, `provider`),
	FOREIGN KEY (`org_id`) REFERENCES `orgs`(`id`) ON UPDATE no action ON DELETE no action,
	CONSTRAINT "model_keys_provider" CHECK("model_keys"."provider" in ('anthropic', 'openai', 'google', 'openai-compatible'))
) STRICT;
--> statement-breakpoint
CREATE TABLE `trusts` (
	`id` text PRIMARY KEY NOT NULL,
	`org_id` text NOT NULL,
	`provider` text NOT NULL,
	`issuer` text NOT NULL,
	`repository` text NOT NULL,
	`repository_id` text,
	`ref` text,
	`environment` text,
	`scopes` text NOT NULL,
	`minutes` integer NOT NULL,
	`created_at` integer NOT NULL,
	`created_by` text,
	FOREIGN KEY (`org_id`) REFERENCES `orgs`(`id`) ON UPDATE no action ON DELETE no action
) STRICT;
--> statement-breakpoint
CREATE INDEX `trusts_of_org` ON `trusts` (`org_id`,`id`);--> statement-breakpoint
CREATE TABLE `used_tokens` (
	`issuer` text NOT NULL,
	`jti` text NOT NULL,
	`expires_at` integer NOT NULL,
	PRIMARY KEY(`issuer`, `jti`)
) STRICT;
--> statement-breakpoint
CREATE INDEX `used_tokens_expiry` ON `used_tokens` (`expires_at`);--> statement-breakpoint
CREATE TABLE `worker_credentials` (
	`name` text PRIMARY KEY NOT NULL,
	`digest` blob NOT NULL,
	`created_at` integer NOT NULL,
	CONSTRAINT "worker_credentials_digest" CHECK(length("worker_credentials"."digest") = 32)
) STRICT;
--> statement-breakpoint
CREATE TABLE `deliveries` (
	`id` text PRIMARY KEY NOT NULL,
	`org_id` text NOT NULL,
	`notification_id` text NOT NULL,
	`destination_id` text NOT NULL,
	`status` text NOT NULL,
	`failure` text,
	`created_at` integer NOT NULL,
	`completed_at` integer,
	FOREIGN KEY (`org_id`,`notification_id`) REFERENCES `notifications`(`org_id`,`id`) ON UPDATE no action ON DELETE no action,
	FOREIGN KEY (`org_id`,`destination_id`) REFERENCES `destinations`(`org_id`,`id`) ON UPDATE no action ON DELETE no action,
	CONSTRAINT "deliveries_status" CHECK("deliveries"."status" in ('pending', 'delivered', 'failed')),
	CONSTRAINT "deliveries_completed" CHECK(("deliveries"."status" = 'pending') = ("deliveries"."completed_at" is null)),
	CONSTRAINT "deliveries_failure" CHECK(("deliveries"."status" = 'failed') = ("deliveries"."failure" is not null))
) STRICT;
--> statement-breakpoint
CREATE INDEX `deliveries_by_destination` ON `deliveries` (`org_id`,`destination_id`,`id`);--> statement-breakpoint
CREATE INDEX `deliveries_failed` ON `deliveries` (`id`) WHERE "deliveries"."status" = 'failed';--> statement-breakpoint
CREATE INDEX `deliveries_by_notification` ON `deliveries` (`org_id`,`notification_id`);--> statement-breakpoint
CREATE UNIQUE INDEX `deliveries_of_org` ON `deliveries` (`org_id`,`id`);--> statement-breakpoint
CREATE TABLE `delivery_tries` (
	`org_id` text NOT NULL,
	`delivery_id` text NOT NULL,
	`attempt` integer NOT NULL,
	`at` integer NOT NULL,
	`ms` integer NOT NULL,
	`status` integer,
	`body` text,
	`error` text,
	PRIMARY KEY(`delivery_id`, `attempt`),
	FOREIGN KEY (`org_id`,`delivery_id`) REFERENCES `deliveries`(`org_id`,`id`) ON UPDATE no action ON DELETE no action
) STRICT;
--> statement-breakpoint
CREATE TABLE `destinations` (
	`id` text PRIMARY KEY NOT NULL,
	`org_id` text NOT NULL,
	`kind` text NOT NULL,
	`name` text NOT NULL,
	`url` text,
	`sealed` blob,
	`recipients` text,
	`events` text NOT NULL,
	`disabled_at` integer,
	`disable_reason` text,
	`failing_since` integer,
	`overlap_until` integer,
	`created_at` integer NOT NULL,
	FOREIGN KEY (`org_id`) REFERENCES `orgs`(`id`) ON UPDATE no action ON DELETE no action,
	CONSTRAINT "destinations_kind" CHECK("destinations"."kind" in ('webhook', 'slack', 'email')),
	CONSTRAINT "destinations_address" CHECK(("destinations"."kind" = 'email') = ("destinations"."url" is null) and ("destinations"."url" is null) = ("destinations"."sealed" is null)),
	CONSTRAINT "destinations_disabled" CHECK(("destinations"."disabled_at" is null) = ("destinations"."disable_reason" is null)),
	CONSTRAINT "destinations_disable_reason" CHECK("destinations"."disable_reason" in ('request', 'gone', 'failing'))
) STRICT;
--> statement-breakpoint
CREATE UNIQUE INDEX `destinations_of_org` ON `destinations` (`org_id`,`id`);--> statement-breakpoint
CREATE TABLE `notifications` (
	`id` text PRIMARY KEY NOT NULL,
	`org_id` text NOT NULL,
	`type` text NOT NULL,
	`once_key` text,
	`data` text NOT NULL,
	`prompt_id` text,
	`created_at` integer NOT NULL,
	FOREIGN KEY (`org_id`) REFERENCES `orgs`(`id`) ON UPDATE no action ON DELETE no action
) STRICT;
--> statement-breakpoint
CREATE INDEX `notifications_of_prompt` ON `notifications` (`org_id`,`prompt_id`) WHERE "notifications"."prompt_id" is not null;--> statement-breakpoint
CREATE INDEX `notifications_of_several` ON `notifications` (`org_id`,`id`) WHERE "notifications"."prompt_id" is null;--> statement-breakpoint
CREATE UNIQUE INDEX `notifications_of_org` ON `notifications` (`org_id`,`id`);--> statement-breakpoint
CREATE UNIQUE INDEX `notifications_once` ON `notifications` (`org_id`,`once_key`);--> statement-breakpoint
CREATE TABLE `orgs` (
	`id` text PRIMARY KEY NOT NULL,
	`name` text NOT NULL,
	`time_zone` text NOT NULL,
	`max_runs_at_once` integer,
	`max_runs_a_day` integer,
	`max_usd_a_month` real,
	`max_usd_a_run` real,
	`judge_models` text,
	`results_token` text,
	`schedules_paused_at` integer,
	`sign_in_policy` text,
	`created_at` integer NOT NULL,
	CONSTRAINT "orgs_name" CHECK(length("orgs"."name") between 1 and 200)
) STRICT;
--> statement-breakpoint
CREATE UNIQUE INDEX `orgs_name_unique` ON `orgs` (`name`);--> statement-breakpoint
CREATE UNIQUE INDEX `orgs_results_token_unique` ON `orgs` (`results_token`);--> statement-breakpoint
CREATE TABLE `pauses` (
	`kind` text NOT NULL,
	`subject` text NOT NULL,
	`reason` text,
	`paused_by` text NOT NULL,
	`created_at` integer NOT NULL,
	PRIMARY KEY(`kind`, `subject`),
	CONSTRAINT "pauses_kind" CHECK("pauses"."kind" in ('organization', 'agent'))
) STRICT;
--> statement-breakpoint
CREATE TABLE `accounts` (
	`id` text PRIMARY KEY NOT NULL,
	`person_id` text NOT NULL,
	`provider_id` text NOT NULL,
	`account_id` text NOT NULL,
	`password` text,
	`created_at` integer NOT NULL,
	`updated_at` integer NOT NULL,
	FOREIGN KEY (`person_id`) REFERENCES `people`(`id`) ON UPDATE no action ON DELETE cascade
) STRICT;
--> statement-breakpoint
CREATE INDEX `accounts_of_person` ON `accounts` (`person_id`);--> statement-breakpoint
CREATE UNIQUE INDEX `accounts_of_provider` ON `accounts` (`provider_id`,`account_id`);--> statement-breakpoint
CREATE TABLE `former_members` (
	`org_id` text NOT NULL,
	`person_id` text NOT NULL,
	`left_at` integer,
	`forgotten_at` integer,
	PRIMARY KEY(`org_id`, `person_id`),
	FOREIGN KEY (`org_id`) REFERENCES `orgs`(`id`) ON UPDATE no action ON DELETE no action
) STRICT;
--> statement-breakpoint
CREATE INDEX `former_members_of_person` ON `former_members` (`person_id`);--> statement-breakpoint
CREATE TABLE `invitations` (
	`id` text PRIMARY KEY NOT NULL,
	`org_id` text NOT NULL,
	`email` text NOT NULL,
	`role` text NOT NULL,
	`status` text NOT NULL,
	`inviter_id` text NOT NULL,
	`created_at` integer NOT NULL,
	`expires_at` integer NOT NULL,
	FOREIGN KEY (`org_id`) REFERENCES `orgs`(`id`) ON UPDATE no action ON DELETE no action,
	FOREIGN KEY (`inviter_id`) REFERENCES `people`(`id`) ON UPDATE no action ON DELETE cascade,
	CONSTRAINT "invitations_role" CHECK("invitations"."role" in ('owner', 'admin', 'member', 'viewer')),
	CONSTRAINT "invitations_status" CHECK("invitations"."status" in ('pending', 'accepted', 'rejected', 'canceled'))
) STRICT;
--> statement-breakpoint
CREATE INDEX `invitations_newest` ON `invitations` (`org_id`,`id`);--> statement-breakpoint
CREATE TABLE `members` (
	`id` text PRIMARY KEY NOT NULL,
	`org_id` text NOT NULL,
	`person_id` text NOT NULL,
	`role` text NOT NULL,
	`created_at` integer NOT NULL,
	FOREIGN KEY (`org_id`) REFERENCES `orgs`(`id`) ON UPDATE no action ON DELETE no action,
	FOREIGN KEY (`person_id`) REFERENCES `people`(`id`) ON UPDATE no action ON DELETE cascade,
	CONSTRAINT "members_role" CHECK("members"."role" in ('owner', 'admin', 'member', 'viewer'))
) STRICT;
--> statement-breakpoint
CREATE INDEX `members_of_person` ON `members` (`person_id`);--> statement-breakpoint
CREATE UNIQUE INDEX `members_once` ON `members` (`org_id`,`person_id`);--> statement-breakpoint
CREATE TABLE `passkeys` (
	`id` text PRIMARY KEY NOT NULL,
	`person_id` text NOT NULL,
	`name` text NOT NULL,
	`credential_id` text NOT NULL,
	`public_key` text NOT NULL,
	`counter` integer NOT NULL,
	`device_type` text NOT NULL,
	`backed_up` integer NOT NULL,
	`transports` text,
	`aaguid` text,
	`created_at` integer NOT NULL,
	FOREIGN KEY (`person_id`) REFERENCES `people`(`id`) ON UPDATE no action ON DELETE cascade
) STRICT;
--> statement-breakpoint
CREATE UNIQUE INDEX `passkeys_credential_id_unique` ON `passkeys` (`credential_id`);--> statement-breakpoint
CREATE INDEX `passkeys_of_person` ON `passkeys` (`person_id`);--> statement-breakpoint
CREATE TABLE `people` (
	`id` text PRIMARY KEY NOT NULL,
	`name` text NOT NULL,
	`email` text NOT NULL,
	`email_verified` integer NOT NULL,
	`image` text,
	`is_operator` integer DEFAULT false NOT NULL,
	`two_factor_enabled` integer DEFAULT false NOT NULL,
	`created_at` integer NOT NULL,
	`updated_at` integer NOT NULL,
	CONSTRAINT "people_email" CHECK("people"."email" = lower("people"."email"))
) STRICT;
--> statement-breakpoint
CREATE UNIQUE INDEX `people_email_unique` ON `people` (`email`);--> statement-breakpoint
CREATE TABLE `sign_in_failures` (
	`key` text PRIMARY KEY NOT NULL,
	`count` integer NOT NULL,
	`since` integer NOT NULL
) STRICT;
--> statement-breakpoint
CREATE TABLE `sign_ins` (
	`id` text PRIMARY KEY NOT NULL,
	`token` text NOT NULL,
	`person_id` text NOT NULL,
	`org_id` text,
	`ip_address` text,
	`user_agent` text,
	`method` text NOT NULL,
	`created_at` integer NOT NULL,
	`updated_at` integer NOT NULL,
	`expires_at` integer NOT NULL,
	FOREIGN KEY (`person_id`) REFERENCES `people`(`id`) ON UPDATE no action ON DELETE cascade,
	FOREIGN KEY (`org_id`) REFERENCES `orgs`(`id`) ON UPDATE no action ON DELETE no action,
	CONSTRAINT "sign_ins_method" CHECK("sign_ins"."method" in ('password', 'password_and_code', 'passkey', 'sso'))
) STRICT;
--> statement-breakpoint
CREATE UNIQUE INDEX `sign_ins_token_unique` ON `sign_ins` (`token`);--> statement-breakpoint
CREATE INDEX `sign_ins_of_person` ON `sign_ins` (`person_id`);--> statement-breakpoint
CREATE TABLE `two_factors` (
	`id` text PRIMARY KEY NOT NULL,
	`person_id` text NOT NULL,
	`secret` text NOT NULL,
	`backup_codes` text NOT NULL,
	`verified` integer NOT NULL,
	`last_step` integer DEFAULT 0 NOT NULL,
	FOREIGN KEY (`person_id`) REFERENCES `people`(`id`) ON UPDATE no action ON DELETE cascade
) STRICT;
--> statement-breakpoint
CREATE UNIQUE INDEX `two_factors_person_id_unique` ON `two_factors` (`person_id`);--> statement-breakpoint
CREATE TABLE `verifications` (
	`id` text PRIMARY KEY NOT NULL,
	`identifier` text NOT NULL,
	`value` text NOT NULL,
	`created_at` integer NOT NULL,
	`updated_at` integer NOT NULL,
	`expires_at` integer NOT NULL
) STRICT;
--> statement-breakpoint
CREATE UNIQUE INDEX `verifications_identifier_unique` ON `verifications` (`identifier`);--> statement-breakpoint
CREATE TABLE `archives` (
	`id` text PRIMARY KEY NOT NULL,
	`org_id` text NOT NULL,
	`digest` text NOT NULL,
	`bytes` integer NOT NULL,
	`files` integer NOT NULL,
	`kind` text DEFAULT 'workspace' NOT NULL,
	`used_at` integer,
	`data` blob NOT NULL,
	`created_at` integer NOT NULL,
	FOREIGN KEY (`org_id`) REFERENCES `orgs`(`id`) ON UPDATE no action ON DELETE no action,
	CONSTRAINT "archives_digest" CHECK(length("archives"."digest") = 64),
	CONSTRAINT "archives_data" CHECK(length("archives"."data") = "archives"."bytes")
) STRICT;
--> statement-breakpoint
CREATE UNIQUE INDEX `archives_once` ON `archives` (`org_id`,`digest`);--> statement-breakpoint
CREATE TABLE `prompts` (
	`id` text PRIMARY KEY NOT NULL,
	`org_id` text NOT NULL,
	`title` text,
	`text` text NOT NULL,
	`end_goal` text,
	`wordings` text,
	`basis` text,
	`basis_change` text,
	`suite` text,
	`status` text NOT NULL,
	`frequency` text,
	`runs_per_eval` integer,
	`catch_up` text DEFAULT 'automatic' NOT NULL,
	`catch_up_hours` integer,
	`overlap` text DEFAULT 'skip' NOT NULL,
	`target_provider_id` text,
	`additional_urls` text,
	`template_vars` text,
	`template_defaults` text,
	`declared_checks` text,
	`workspace` text,
	`agent` text,
	`model` text,
	`agents` text,
	`limits` text,
	`review_before_publishing` integer NOT NULL,
	`is_canary` integer DEFAULT false NOT NULL,
	`tags` text DEFAULT '[]' NOT NULL,
	`supersedes_by_default` integer DEFAULT false NOT NULL,
	`success_bar` text,
	`is_on_results_page` integer DEFAULT false NOT NULL,
	`worker_labels` text DEFAULT '[]' NOT NULL,
	`badge_token` text,
	`baseline_request_id` text,
	`created_at` integer NOT NULL,
	`next_evaluation_at` integer,
	FOREIGN KEY (`org_id`) REFERENCES `orgs`(`id`) ON UPDATE no action ON DELETE no action,
	FOREIGN KEY (`org_id`,`target_provider_id`) REFERENCES `providers`(`org_id`,`id`) ON UPDATE no action ON DELETE no action,
	CONSTRAINT "prompts_status" CHECK("prompts"."status" in ('active', 'paused', 'archived')),
	CONSTRAINT "prompts_catch_up" CHECK("prompts"."catch_up" in ('automatic', 'skip', 'latest', 'window')),
	CONSTRAINT "prompts_catch_up_hours" CHECK(("prompts"."catch_up" = 'window') = ("prompts"."catch_up_hours" is not null)),
	CONSTRAINT "prompts_overlap" CHECK("prompts"."overlap" in ('skip', 'queue', 'allow')),
	CONSTRAINT "prompts_runs_per_eval" CHECK("prompts"."runs_per_eval" between 1 and 50)
) STRICT;
--> statement-breakpoint
CREATE UNIQUE INDEX `prompts_badge_token_unique` ON `prompts` (`badge_token`);--> statement-breakpoint
CREATE INDEX `prompts_by_status` ON `prompts` (`org_id`,`status`,`id`);--> statement-breakpoint
CREATE INDEX `prompts_by_provider` ON `prompts` (`org_id`,`target_provider_id`,`id`);--> statement-breakpoint
CREATE INDEX `prompts_of_suites` ON `prompts` (`org_id`,`id`) WHERE "prompts"."suite" is not null;--> statement-breakpoint
CREATE INDEX `prompts_due` ON `prompts` (`next_evaluation_at`) WHERE "prompts"."next_evaluation_at" is not null;--> statement-breakpoint
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
CREATE TABLE `proposal_sets` (
	`id` text PRIMARY KEY NOT NULL,
	`org_id` text NOT NULL,
	`status` text NOT NULL,
	`request` text NOT NULL,
	`pages` integer,
	`read_ms` integer,
	`cost_usd` real,
	`proposals` text,
	`dropped` text,
	`accepted` text NOT NULL,
	`failure_code` text,
	`failure_detail` text,
	`created_at` integer NOT NULL,
	`completed_at` integer,
	FOREIGN KEY (`org_id`) REFERENCES `orgs`(`id`) ON UPDATE no action ON DELETE no action,
	CONSTRAINT "proposal_sets_status" CHECK("proposal_sets"."status" in ('pending', 'running', 'completed', 'failed')),
	CONSTRAINT "proposal_sets_completed" CHECK(("proposal_sets"."completed_at" is not null) = ("proposal_sets"."status" in ('completed', 'failed')) and ("proposal_sets"."proposals" is not null) = ("proposal_sets"."status" = 'completed')),
	CONSTRAINT "proposal_sets_failure" CHECK(("proposal_sets"."failure_code" is not null) = ("proposal_sets"."status" = 'failed') and ("proposal_sets"."failure_detail" is null) = ("proposal_sets"."failure_code" is null))
) STRICT;
--> statement-breakpoint
CREATE INDEX `proposal_sets_newest` ON `proposal_sets` (`org_id`,`id`);--> statement-breakpoint
CREATE TABLE `gradings` (
	`id` text PRIMARY KEY NOT NULL,
	`org_id` text NOT NULL,
	`report_id` text NOT NULL,
	`hash` text NOT NULL,
	`repeat` integer NOT NULL,
	`grade` text NOT NULL,
	`judging` text,
	`created_at` integer NOT NULL,
	FOREIGN KEY (`org_id`,`report_id`) REFERENCES `reports`(`org_id`,`id`) ON UPDATE no action ON DELETE no action
) STRICT;
--> statement-breakpoint
CREATE INDEX `gradings_by_hash` ON `gradings` (`org_id`,`hash`,`report_id`);--> statement-breakpoint
CREATE UNIQUE INDEX `gradings_of_org` ON `gradings` (`org_id`,`id`);--> statement-breakpoint
CREATE UNIQUE INDEX `gradings_of_report` ON `gradings` (`report_id`,`hash`,`repeat`);--> statement-breakpoint
CREATE TABLE `regrades` (
	`id` text PRIMARY KEY NOT NULL,
	`org_id` text NOT NULL,
	`prompt_id` text,
	`since` integer NOT NULL,
	`until` integer NOT NULL,
	`methodology` text NOT NULL,
	`judge` text,
	`hash` text NOT NULL,
	`repeats` integer NOT NULL,
	`max_usd` real,
	`status` text NOT NULL,
	`batch` integer NOT NULL,
	`cursor` text NOT NULL,
	`total` integer NOT NULL,
	`graded` integer NOT NULL,
	`unchanged` integer NOT NULL,
	`without_events` integer NOT NULL,
	`failed` integer NOT NULL,
	`spent_usd` real NOT NULL,
	`unpriced` integer NOT NULL,
	`failure_cause` text,
	`failure_detail` text,
	`created_at` integer NOT NULL,
	`completed_at` integer,
	FOREIGN KEY (`org_id`) REFERENCES `orgs`(`id`) ON UPDATE no action ON DELETE no action,
	FOREIGN KEY (`org_id`,`prompt_id`) REFERENCES `prompts`(`org_id`,`id`) ON UPDATE no action ON DELETE no action,
	CONSTRAINT "regrades_status" CHECK("regrades"."status" in ('pending', 'running', 'completed', 'failed', 'cancelled')),
	CONSTRAINT "regrades_terminal" CHECK(("regrades"."completed_at" is not null) = ("regrades"."status" in ('completed', 'failed', 'cancelled'))),
	CONSTRAINT "regrades_failure_cause" CHECK("regrades"."failure_cause" in ('timeout', 'budget', 'credentials', 'infrastructure', 'agent_crashed', 'cancelled')),
	CONSTRAINT "regrades_failure" CHECK(("regrades"."failure_cause" is not null) = ("regrades"."status" in ('failed', 'cancelled')) and ("regrades"."failure_detail" is null) = ("regrades"."failure_cause" is null))
) STRICT;
--> statement-breakpoint
CREATE INDEX `regrades_newest` ON `regrades` (`org_id`,`id`);--> statement-breakpoint
CREATE TABLE `reports` (
	`id` text PRIMARY KEY NOT NULL,
	`org_id` text NOT NULL,
	`run_id` text NOT NULL,
	`prompt_id` text NOT NULL,
	`attempt` integer NOT NULL,
	`slug` text NOT NULL,
	`status` text NOT NULL,
	`outcome` text NOT NULL,
	`scope` text DEFAULT 'docs_only' NOT NULL,
	`evidence` text,
	`score` real,
	`grade` text,
	`null_notice` text,
	`key_finding` text NOT NULL,
	`verdict` text NOT NULL,
	`summary` text NOT NULL,
	`coverage` real NOT NULL,
	`metrics` text NOT NULL,
	`dimensions` text NOT NULL,
	`lost` text,
	`wordings` text,
	`not_checked` text DEFAULT '[]' NOT NULL,
	`methodology` text NOT NULL,
	`judge` text,
	`context` text,
	`grading_id` text,
	`grading_pinned` integer DEFAULT false NOT NULL,
	`agent` text,
	`agent_version` text,
	`created_at` integer NOT NULL,
	FOREIGN KEY (`org_id`,`run_id`) REFERENCES `runs`(`org_id`,`id`) ON UPDATE no action ON DELETE no action,
	CONSTRAINT "reports_status" CHECK("reports"."status" in ('published', 'draft', 'archived')),
	CONSTRAINT "reports_outcome" CHECK("reports"."outcome" in ('succeeded', 'goal_not_met', 'not_judged', 'no_creds', 'excluded', 'scoring_failed')),
	CONSTRAINT "reports_evidence" CHECK("reports"."evidence" in ('verified', 'observed', 'judged')),
	CONSTRAINT "reports_score" CHECK("reports"."score" between 0 and 100),
	CONSTRAINT "reports_null_score" CHECK(("reports"."score" is null) = ("reports"."null_notice" is not null))
) STRICT;
--> statement-breakpoint
CREATE UNIQUE INDEX `reports_run_id_unique` ON `reports` (`run_id`);--> statement-breakpoint
CREATE UNIQUE INDEX `reports_slug_unique` ON `reports` (`slug`);--> statement-breakpoint
CREATE INDEX `reports_by_status` ON `reports` (`org_id`,`status`,`run_id`,`prompt_id`);--> statement-breakpoint
CREATE INDEX `reports_by_prompt` ON `reports` (`org_id`,`prompt_id`,`status`,`run_id`,`scope`,`score`,`outcome`,`created_at`,`agent`,`agent_version`);--> statement-breakpoint
CREATE INDEX `reports_by_agent` ON `reports` (`org_id`,`agent`,`id`,`prompt_id`,`scope`,`score`,`outcome`,`status`,`created_at`,`agent_version`);--> statement-breakpoint
CREATE INDEX `reports_filtered` ON `reports` (`org_id`,`id`,`prompt_id`,`scope`,`score`,`outcome`,`status`,`created_at`,`agent`,`agent_version`);--> statement-breakpoint
CREATE INDEX `reports_by_score` ON `reports` (`org_id`,`score`,`id`,`prompt_id`,`scope`,`outcome`,`status`,`created_at`,`agent`,`agent_version`);--> statement-breakpoint
CREATE UNIQUE INDEX `reports_of_org` ON `reports` (`org_id`,`id`);--> statement-breakpoint
CREATE TABLE `run_counts` (
	`org_id` text NOT NULL,
	`prompt_id` text NOT NULL,
	`report_status` text NOT NULL,
	`count` integer NOT NULL,
	PRIMARY KEY(`org_id`, `prompt_id`, `report_status`)
) STRICT;
--> statement-breakpoint
CREATE TABLE `share_links` (
	`token_hash` blob PRIMARY KEY NOT NULL,
	`id` text NOT NULL,
	`org_id` text NOT NULL,
	`report_id` text NOT NULL,
	`with_session` integer NOT NULL,
	`created_at` integer NOT NULL,
	`expires_at` integer NOT NULL,
	`revoked_at` integer,
	FOREIGN KEY (`org_id`,`report_id`) REFERENCES `reports`(`org_id`,`id`) ON UPDATE no action ON DELETE no action,
	CONSTRAINT "share_links_hash" CHECK(length("share_links"."token_hash") = 32)
) STRICT;
--> statement-breakpoint
CREATE UNIQUE INDEX `share_links_id_unique` ON `share_links` (`id`);--> statement-breakpoint
CREATE INDEX `share_links_by_report` ON `share_links` (`org_id`,`report_id`,`id`);--> statement-breakpoint
CREATE TABLE `artifacts` (
	`org_id` text NOT NULL,
	`run_id` text NOT NULL,
	`attempt` integer NOT NULL,
	`name` text NOT NULL,
	`data` blob NOT NULL,
	PRIMARY KEY(`run_id`, `attempt`, `name`),
	FOREIGN KEY (`org_id`,`run_id`) REFERENCES `runs`(`org_id`,`id`) ON UPDATE no action ON DELETE no action,
	CONSTRAINT "artifacts_data" CHECK(length("artifacts"."data") between 1 and 524288)
) STRICT;
--> statement-breakpoint
CREATE TABLE `eval_counts` (
	`org_id` text NOT NULL,
	`prompt_id` text NOT NULL,
	`status` text NOT NULL,
	`count` integer NOT NULL,
	PRIMARY KEY(`org_id`, `prompt_id`, `status`)
) STRICT;
--> statement-breakpoint
CREATE TABLE `eval_requests` (
	`id` text PRIMARY KEY NOT NULL,
	`org_id` text NOT NULL,
	`prompt_id` text NOT NULL,
	`trigger` text NOT NULL,
	`person_id` text,
	`key_id` text,
	`created_at` integer NOT NULL,
	`status` text DEFAULT 'pending' NOT NULL,
	FOREIGN KEY (`org_id`,`prompt_id`) REFERENCES `prompts`(`org_id`,`id`) ON UPDATE no action ON DELETE no action,
	CONSTRAINT "eval_requests_trigger" CHECK("eval_requests"."trigger" in ('schedule', 'ci', 'api', 'mcp', 'web', 'cli')),
	CONSTRAINT "eval_requests_status" CHECK("eval_requests"."status" in ('pending', 'running', 'completed', 'failed', 'superseded'))
) STRICT;
--> statement-breakpoint
CREATE INDEX `eval_requests_newest` ON `eval_requests` (`org_id`,`id`,`prompt_id`);--> statement-breakpoint
CREATE INDEX `eval_requests_by_status` ON `eval_requests` (`org_id`,`status`,`id`,`prompt_id`);--> statement-breakpoint
CREATE INDEX `eval_requests_by_prompt_and_status` ON `eval_requests` (`org_id`,`prompt_id`,`status`,`id`);--> statement-breakpoint
CREATE INDEX `eval_requests_by_prompt` ON `eval_requests` (`org_id`,`prompt_id`,`id`);--> statement-breakpoint
CREATE INDEX `eval_requests_by_trigger` ON `eval_requests` (`org_id`,`trigger`,`id`);--> statement-breakpoint
CREATE UNIQUE INDEX `eval_requests_of_org` ON `eval_requests` (`org_id`,`id`);--> statement-breakpoint
CREATE TABLE `page_texts` (
	`id` integer PRIMARY KEY NOT NULL,
	`org_id` text NOT NULL,
	`digest` text NOT NULL,
	`data` blob NOT NULL
) STRICT;
--> statement-breakpoint
CREATE UNIQUE INDEX `page_texts_of_org` ON `page_texts` (`org_id`,`id`);--> statement-breakpoint
CREATE UNIQUE INDEX `page_texts_by_digest` ON `page_texts` (`org_id`,`digest`);--> statement-breakpoint
CREATE TABLE `run_hours` (
	`org_id` text NOT NULL,
	`prompt_id` text NOT NULL,
	`agent` text NOT NULL,
	`from` integer NOT NULL,
	`completed` integer NOT NULL,
	`failed` integer NOT NULL,
	PRIMARY KEY(`org_id`, `prompt_id`, `agent`, `from`)
) STRICT;
--> statement-breakpoint
CREATE INDEX `run_hours_failed` ON `run_hours` (`org_id`,`from`,`prompt_id`,`agent`) WHERE "run_hours"."failed" > 0;--> statement-breakpoint
CREATE TABLE `runs` (
	`id` text PRIMARY KEY NOT NULL,
	`org_id` text NOT NULL,
	`prompt_id` text NOT NULL,
	`eval_request_id` text NOT NULL,
	`status` text NOT NULL,
	`url_map` text NOT NULL,
	`edits_digest` text,
	`template_args` text,
	`task` text NOT NULL,
	`agent` text NOT NULL,
	`agent_version` text,
	`context_digest` text,
	`model` text,
	`agent_index` integer DEFAULT 0 NOT NULL,
	`attempt` integer NOT NULL,
	`failure_cause` text,
	`failure_code` text,
	`failure_subject` text,
	`failure_detail` text,
	`created_at` integer NOT NULL,
	`started_at` integer,
	`completed_at` integer,
	`waiting_for` text,
	`reserved_usd` real,
	`spent_usd` real,
	`idempotency_key` text,
	`idempotency_hash` text,
	FOREIGN KEY (`org_id`,`prompt_id`) REFERENCES `prompts`(`org_id`,`id`) ON UPDATE no action ON DELETE no action,
	FOREIGN KEY (`org_id`,`eval_request_id`) REFERENCES `eval_requests`(`org_id`,`id`) ON UPDATE no action ON DELETE no action,
	CONSTRAINT "runs_status" CHECK("runs"."status" in ('pending', 'running', 'completed', 'failed', 'superseded')),
	CONSTRAINT "runs_terminal" CHECK(("runs"."completed_at" is not null) = ("runs"."status" in ('completed', 'failed', 'superseded'))),
	CONSTRAINT "runs_failure_cause" CHECK("runs"."failure_cause" in ('timeout', 'budget', 'credentials', 'infrastructure', 'agent_crashed', 'cancelled', 'superseded')),
	CONSTRAINT "runs_failure_code" CHECK("runs"."failure_code" in ('address_not_allowed', 'url_not_allowed', 'name_not_resolved', 'certificate_invalid', 'site_unreachable', 'site_unavailable', 'site_response_invalid', 'no_start_url', 'agent_not_installed', 'agent_not_available', 'agent_unsuitable', 'agent_login_needed', 'agent_asked_question', 'agent_not_started', 'agent_replaced', 'agent_failed', 'agent_crashed', 'sandbox_unavailable', 'workspace_failed', 'workspace_setup_failed', 'model_key_missing', 'model_key_refused', 'model_payment_required', 'model_not_found', 'model_request_rejected', 'model_rate_limited', 'model_server_error', 'model_unreachable', 'model_answer_incomplete', 'model_price_unknown', 'conversation_too_long', 'prompt_time_limit', 'server_time_limit', 'prompt_idle_limit', 'server_idle_limit', 'prompt_cost_limit', 'organization_cost_limit', 'server_cost_limit', 'month_budget_spent', 'prompt_limit', 'server_limit', 'process_limit', 'session_too_large', 'no_worker', 'worker_lost', 'disk_full', 'session_not_stored', 'grading_failed', 'judge_unreachable', 'service_crashed', 'internal_error', 'cancelled', 'superseded')),
	CONSTRAINT "runs_failure" CHECK(("runs"."failure_cause" is not null) = ("runs"."status" in ('failed', 'superseded')) and ("runs"."failure_detail" is null) = ("runs"."failure_cause" is null) and ("runs"."failure_code" is null) = ("runs"."failure_cause" is null))
) STRICT;
--> statement-breakpoint
CREATE INDEX `runs_newest` ON `runs` (`org_id`,`id`,`prompt_id`);--> statement-breakpoint
CREATE INDEX `runs_by_prompt` ON `runs` (`org_id`,`prompt_id`,`id`,`agent`,`status`,`failure_cause`,`url_map`,`edits_digest`,`model`);--> statement-breakpoint
CREATE INDEX `runs_unfinished` ON `runs` (`org_id`,`prompt_id`) WHERE "runs"."completed_at" is null;--> statement-breakpoint
CREATE INDEX `runs_failed_newest` ON `runs` (`id`,`failure_cause`,`failure_code`) WHERE "runs"."status" = 'failed';--> statement-breakpoint
CREATE INDEX `runs_failed` ON `runs` (`org_id`,`prompt_id`,`agent`,`id`,`failure_cause`,`url_map`,`edits_digest`) WHERE "runs"."status" = 'failed';--> statement-breakpoint
CREATE INDEX `runs_reserved` ON `runs` (`org_id`) WHERE "runs"."reserved_usd" is not null;--> statement-breakpoint
CREATE INDEX `runs_by_agent` ON `runs` (`org_id`,`agent`,`id`);--> statement-breakpoint
CREATE INDEX `runs_without_report` ON `runs` (`org_id`,`status`,`id`) WHERE "runs"."status" in ('failed', 'superseded');--> statement-breakpoint
CREATE INDEX `runs_failed_paid` ON `runs` (`org_id`,`id`,`spent_usd`) WHERE "runs"."status" = 'failed' and "runs"."spent_usd" > 0;--> statement-breakpoint
CREATE INDEX `runs_by_eval_request` ON `runs` (`org_id`,`eval_request_id`,`id`);--> statement-breakpoint
CREATE INDEX `runs_by_duration` ON `runs` (`org_id`,case when "completed_at" > "started_at" then "completed_at" - "started_at" else -1 end,`id`,`prompt_id`,`agent`,`status`,`model`);--> statement-breakpoint
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
--> statement-breakpoint
CREATE INDEX `session_events_usage` ON `session_events` (`run_id`,`attempt`) WHERE "session_events"."type" = 'usage';--> statement-breakpoint
CREATE TABLE `session_pages` (
	`org_id` text NOT NULL,
	`run_id` text NOT NULL,
	`attempt` integer NOT NULL,
	`seq` integer NOT NULL,
	`text_id` integer NOT NULL,
	PRIMARY KEY(`run_id`, `attempt`, `seq`),
	FOREIGN KEY (`org_id`,`run_id`) REFERENCES `runs`(`org_id`,`id`) ON UPDATE no action ON DELETE no action,
	FOREIGN KEY (`org_id`,`text_id`) REFERENCES `page_texts`(`org_id`,`id`) ON UPDATE no action ON DELETE no action
) STRICT;
--> statement-breakpoint
CREATE INDEX `session_pages_by_text` ON `session_pages` (`org_id`,`text_id`);--> statement-breakpoint
CREATE TABLE `scheduled_evaluations` (
	`org_id` text NOT NULL,
	`prompt_id` text NOT NULL,
	`scheduled_at` integer NOT NULL,
	`outcome` text NOT NULL,
	`eval_request_id` text,
	`reason` text,
	`created_at` integer NOT NULL,
	PRIMARY KEY(`prompt_id`, `scheduled_at`),
	FOREIGN KEY (`org_id`,`prompt_id`) REFERENCES `prompts`(`org_id`,`id`) ON UPDATE no action ON DELETE no action,
	FOREIGN KEY (`org_id`,`eval_request_id`) REFERENCES `eval_requests`(`org_id`,`id`) ON UPDATE no action ON DELETE no action,
	CONSTRAINT "scheduled_evaluations_outcome" CHECK("scheduled_evaluations"."outcome" in ('ran', 'missed', 'skipped_overlap', 'failed', 'waiting')),
	CONSTRAINT "scheduled_evaluations_ran" CHECK(("scheduled_evaluations"."outcome" = 'ran') = ("scheduled_evaluations"."eval_request_id" is not null)),
	CONSTRAINT "scheduled_evaluations_reason" CHECK("scheduled_evaluations"."outcome" = 'ran' or "scheduled_evaluations"."reason" is not null)
) STRICT;
--> statement-breakpoint
CREATE INDEX `scheduled_evaluations_newest` ON `scheduled_evaluations` (`org_id`,`scheduled_at`);--> statement-breakpoint
CREATE INDEX `scheduled_evaluations_exceptions` ON `scheduled_evaluations` (`org_id`,`scheduled_at`) WHERE "scheduled_evaluations"."reason" is not null;--> statement-breakpoint
CREATE INDEX `scheduled_evaluations_waiting` ON `scheduled_evaluations` (`prompt_id`) WHERE "scheduled_evaluations"."outcome" = 'waiting';--> statement-breakpoint
CREATE INDEX `scheduled_evaluations_of_request` ON `scheduled_evaluations` (`org_id`,`eval_request_id`) WHERE "scheduled_evaluations"."eval_request_id" is not null;--> statement-breakpoint
CREATE TABLE `budgets` (
	`id` text PRIMARY KEY NOT NULL,
	`org_id` text NOT NULL,
	`prompt_id` text,
	`tag` text,
	`max_usd_a_month` real NOT NULL,
	FOREIGN KEY (`org_id`) REFERENCES `orgs`(`id`) ON UPDATE no action ON DELETE no action,
	FOREIGN KEY (`org_id`,`prompt_id`) REFERENCES `prompts`(`org_id`,`id`) ON UPDATE no action ON DELETE no action,
	CONSTRAINT "budgets_of" CHECK(("budgets"."prompt_id" is null) != ("budgets"."tag" is null)),
	CONSTRAINT "budgets_max" CHECK("budgets"."max_usd_a_month" > 0)
) STRICT;
--> statement-breakpoint
CREATE INDEX `budgets_of_org` ON `budgets` (`org_id`);--> statement-breakpoint
CREATE TABLE `spending` (
	`org_id` text NOT NULL,
	`from` integer NOT NULL,
	`usd` real NOT NULL,
	`estimated_usd` real NOT NULL,
	`unpriced_calls` integer NOT NULL,
	PRIMARY KEY(`org_id`, `from`)
) STRICT;
--> statement-breakpoint
CREATE TABLE `spending_details` (
	`org_id` text NOT NULL,
	`prompt_id` text NOT NULL,
	`length_ms` integer NOT NULL,
	`from` integer NOT NULL,
	`agent` text NOT NULL,
	`model` text NOT NULL,
	`purpose` text NOT NULL,
	`trigger` text NOT NULL,
	`person_id` text NOT NULL,
	`key_id` text NOT NULL,
	`usd` real NOT NULL,
	`estimated_usd` real NOT NULL,
	PRIMARY KEY(`org_id`, `prompt_id`, `length_ms`, `from`, `agent`, `model`, `purpose`, `trigger`, `person_id`, `key_id`),
	FOREIGN KEY (`org_id`,`prompt_id`) REFERENCES `prompts`(`org_id`,`id`) ON UPDATE no action ON DELETE no action,
	CONSTRAINT "spending_details_purpose" CHECK("spending_details"."purpose" in ('agent', 'judge')),
	CONSTRAINT "spending_details_trigger" CHECK("spending_details"."trigger" in ('schedule', 'ci', 'api', 'mcp', 'web', 'cli', 'regrade'))
) STRICT;
--> statement-breakpoint
CREATE INDEX `spending_details_by_time` ON `spending_details` (`org_id`,`length_ms`,`from`);--> statement-breakpoint
CREATE TABLE `suites` (
	`id` text PRIMARY KEY NOT NULL,
	`org_id` text NOT NULL,
	`name` text NOT NULL,
	`version` integer NOT NULL,
	`title` text NOT NULL,
	`slots` text NOT NULL,
	`limits` text,
	`agents` text,
	`created_at` integer NOT NULL,
	FOREIGN KEY (`org_id`) REFERENCES `orgs`(`id`) ON UPDATE no action ON DELETE no action,
	CONSTRAINT "suites_version" CHECK("suites"."version" > 0)
) STRICT;
--> statement-breakpoint
CREATE UNIQUE INDEX `suites_by_version` ON `suites` (`org_id`,`name`,`version`);--> statement-breakpoint
CREATE TABLE `field_traffic` (
	`org_id` text NOT NULL,
	`page` text NOT NULL,
	`month` text NOT NULL,
	`kind` text NOT NULL,
	`name` text NOT NULL,
	`log` text NOT NULL,
	`reads` integer NOT NULL,
	`markdown` integer NOT NULL,
	`missing` integer NOT NULL,
	PRIMARY KEY(`org_id`, `page`, `month`, `kind`, `name`, `log`),
	FOREIGN KEY (`org_id`) REFERENCES `orgs`(`id`) ON UPDATE no action ON DELETE no action,
	CONSTRAINT "field_traffic_kind" CHECK("field_traffic"."kind" in ('coding', 'answer', 'search', 'training', 'program')),
	CONSTRAINT "field_traffic_counts" CHECK("field_traffic"."reads" >= 0 and "field_traffic"."missing" >= 0 and "field_traffic"."markdown" between 0 and "field_traffic"."reads")
) STRICT;
--> statement-breakpoint
CREATE INDEX `field_traffic_by_month` ON `field_traffic` (`month`);--> statement-breakpoint
CREATE TABLE `listed_pages` (
	`org_id` text NOT NULL,
	`prompt_id` text NOT NULL,
	`page` text NOT NULL,
	`url` text NOT NULL,
	`llms_txt_at` integer,
	`sitemap_at` integer,
	`link_at` integer,
	PRIMARY KEY(`org_id`, `prompt_id`, `page`),
	FOREIGN KEY (`org_id`,`prompt_id`) REFERENCES `prompts`(`org_id`,`id`) ON UPDATE no action ON DELETE no action
) STRICT;
--> statement-breakpoint
CREATE TABLE `page_months` (
	`org_id` text NOT NULL,
	`prompt_id` text NOT NULL,
	`month` integer NOT NULL,
	`agent` text NOT NULL,
	`page` text NOT NULL,
	`url` text NOT NULL,
	`runs` integer NOT NULL,
	`reads` integer NOT NULL,
	`misses` integer NOT NULL,
	`guesses` integer NOT NULL,
	`errors` integer NOT NULL,
	`given` integer NOT NULL,
	`llms_txt` integer NOT NULL,
	`sitemap` integer NOT NULL,
	`link` integer NOT NULL,
	`search` integer NOT NULL,
	`guessed` integer NOT NULL,
	PRIMARY KEY(`org_id`, `prompt_id`, `month`, `agent`, `page`),
	FOREIGN KEY (`org_id`,`prompt_id`) REFERENCES `prompts`(`org_id`,`id`) ON UPDATE no action ON DELETE no action
) STRICT;
--> statement-breakpoint
CREATE TABLE `score_changes` (
	`org_id` text NOT NULL,
	`prompt_id` text NOT NULL,
	`is_stale` integer NOT NULL,
	`change` text,
	PRIMARY KEY(`org_id`, `prompt_id`),
	FOREIGN KEY (`org_id`,`prompt_id`) REFERENCES `prompts`(`org_id`,`id`) ON UPDATE no action ON DELETE no action
) STRICT;
--> statement-breakpoint
CREATE INDEX `score_changes_stale` ON `score_changes` (`org_id`) WHERE "score_changes"."is_stale" = 1;--> statement-breakpoint
CREATE TABLE `score_days` (
	`org_id` text NOT NULL,
	`prompt_id` text NOT NULL,
	`day` integer NOT NULL,
	`agent` text NOT NULL,
	`version` text NOT NULL,
	`context_digest` text DEFAULT '' NOT NULL,
	`model` text NOT NULL,
	`methodology` text NOT NULL,
	`scope` text DEFAULT 'docs_only' NOT NULL,
	`times` text NOT NULL,
	`scores` text NOT NULL,
	`seconds` text NOT NULL,
	`costs_usd` text NOT NULL,
	`met` text NOT NULL,
	PRIMARY KEY(`org_id`, `prompt_id`, `day`, `agent`, `version`, `context_digest`, `model`, `methodology`, `scope`),
	FOREIGN KEY (`org_id`,`prompt_id`) REFERENCES `prompts`(`org_id`,`id`) ON UPDATE no action ON DELETE no action
) STRICT;
--> statement-breakpoint
CREATE VIEW `attempts` AS 
  select job_id, attempt, owner, started_at, completed_at, outcome, reason, cost_usd from earlier_attempts
  union all
  select id, attempt, owner, attempt_started_at, completed_at, iif(completed_at is null, null, state),
    iif(completed_at is null, null, last_error), cost_usd
  from jobs where attempt_started_at is not null;--> statement-breakpoint
-- The text of a page is kept as long as a session that read it.
CREATE TRIGGER `page_texts_unread` AFTER DELETE ON `session_pages` BEGIN
	DELETE FROM `page_texts` WHERE `org_id` = old.`org_id` AND `id` = old.`text_id`
		AND NOT EXISTS (SELECT 1 FROM `session_pages` WHERE `org_id` = old.`org_id` AND `text_id` = old.`text_id`);
END;
--> statement-breakpoint
-- Totals of runs and reports, so that a list needs no count over a million rows.
CREATE TRIGGER `members_remembered` AFTER DELETE ON `members` BEGIN
	INSERT OR REPLACE INTO `former_members` (`org_id`, `person_id`) VALUES (old.`org_id`, old.`person_id`);
END;
--> statement-breakpoint
CREATE TRIGGER `members_returned` AFTER INSERT ON `members` BEGIN
	DELETE FROM `former_members` WHERE `org_id` = new.`org_id` AND `person_id` = new.`person_id`;
END;
--> statement-breakpoint
CREATE TRIGGER `runs_counted` AFTER INSERT ON `runs` BEGIN
	INSERT INTO `run_counts` (`org_id`, `prompt_id`, `report_status`, `count`) VALUES (new.`org_id`, new.`prompt_id`, 'any', 1)
	ON CONFLICT (`org_id`, `prompt_id`, `report_status`) DO UPDATE SET `count` = `count` + 1;
END;
--> statement-breakpoint
CREATE TRIGGER `runs_moved` AFTER UPDATE OF `prompt_id` ON `runs` WHEN old.`prompt_id` != new.`prompt_id` BEGIN
	UPDATE `run_counts` SET `count` = `count` - 1
	WHERE `org_id` = old.`org_id` AND `prompt_id` = old.`prompt_id` AND `report_status` = 'any';
	INSERT INTO `run_counts` (`org_id`, `prompt_id`, `report_status`, `count`) VALUES (new.`org_id`, new.`prompt_id`, 'any', 1)
	ON CONFLICT (`org_id`, `prompt_id`, `report_status`) DO UPDATE SET `count` = `count` + 1;
END;
--> statement-breakpoint
CREATE TRIGGER `reports_moved` AFTER UPDATE OF `prompt_id` ON `reports` WHEN old.`prompt_id` != new.`prompt_id` BEGIN
	UPDATE `run_counts` SET `count` = `count` - 1
	WHERE `org_id` = old.`org_id` AND `prompt_id` = old.`prompt_id` AND `report_status` = old.`status`;
	INSERT INTO `run_counts` (`org_id`, `prompt_id`, `report_status`, `count`) VALUES (new.`org_id`, new.`prompt_id`, new.`status`, 1)
	ON CONFLICT (`org_id`, `prompt_id`, `report_status`) DO UPDATE SET `count` = `count` + 1;
END;
--> statement-breakpoint
CREATE TRIGGER `eval_requests_moved` AFTER UPDATE OF `prompt_id` ON `eval_requests` WHEN old.`prompt_id` != new.`prompt_id` BEGIN
	UPDATE `eval_counts` SET `count` = `count` - 1
	WHERE `org_id` = old.`org_id` AND `prompt_id` = old.`prompt_id` AND `status` = old.`status`;
	INSERT INTO `eval_counts` (`org_id`, `prompt_id`, `status`, `count`) VALUES (new.`org_id`, new.`prompt_id`, new.`status`, 1)
	ON CONFLICT (`org_id`, `prompt_id`, `status`) DO UPDATE SET `count` = `count` + 1;
END;
--> statement-breakpoint
CREATE TRIGGER `runs_uncounted` AFTER DELETE ON `runs` BEGIN
	UPDATE `run_counts` SET `count` = `count` - 1
	WHERE `org_id` = old.`org_id` AND `prompt_id` = old.`prompt_id` AND `report_status` = 'any';
END;
--> statement-breakpoint
CREATE TRIGGER `reports_counted` AFTER INSERT ON `reports` BEGIN
	INSERT INTO `run_counts` (`org_id`, `prompt_id`, `report_status`, `count`) VALUES (new.`org_id`, new.`prompt_id`, new.`status`, 1)
	ON CONFLICT (`org_id`, `prompt_id`, `report_status`) DO UPDATE SET `count` = `count` + 1;
END;
--> statement-breakpoint
CREATE TRIGGER `reports_recounted` AFTER UPDATE OF `status` ON `reports` WHEN old.`status` != new.`status` BEGIN
	UPDATE `run_counts` SET `count` = `count` - 1
	WHERE `org_id` = old.`org_id` AND `prompt_id` = old.`prompt_id` AND `report_status` = old.`status`;
	INSERT INTO `run_counts` (`org_id`, `prompt_id`, `report_status`, `count`) VALUES (new.`org_id`, new.`prompt_id`, new.`status`, 1)
	ON CONFLICT (`org_id`, `prompt_id`, `report_status`) DO UPDATE SET `count` = `count` + 1;
END;
--> statement-breakpoint
CREATE TRIGGER `reports_uncounted` AFTER DELETE ON `reports` BEGIN
	UPDATE `run_counts` SET `count` = `count` - 1
	WHERE `org_id` = old.`org_id` AND `prompt_id` = old.`prompt_id` AND `report_status` = old.`status`;
END;
--> statement-breakpoint
-- Lists of reports are filtered by the agent without reading runs.
CREATE TRIGGER `reports_with_agent` AFTER INSERT ON `reports` BEGIN
	UPDATE `reports` SET (`agent`, `agent_version`) = (SELECT `agent`, `agent_version` FROM `runs` WHERE `id` = new.`run_id`)
	WHERE `id` = new.`id`;
END;
--> statement-breakpoint
-- The status of an evaluation follows those of its runs, and evaluations are counted by it.
CREATE TRIGGER `eval_requests_counted` AFTER INSERT ON `eval_requests` BEGIN
	INSERT INTO `eval_counts` (`org_id`, `prompt_id`, `status`, `count`) VALUES (new.`org_id`, new.`prompt_id`, new.`status`, 1)
	ON CONFLICT (`org_id`, `prompt_id`, `status`) DO UPDATE SET `count` = `count` + 1;
END;
--> statement-breakpoint
CREATE TRIGGER `eval_requests_recounted` AFTER UPDATE OF `status` ON `eval_requests` WHEN old.`status` != new.`status` BEGIN
	UPDATE `eval_counts` SET `count` = `count` - 1
	WHERE `org_id` = old.`org_id` AND `prompt_id` = old.`prompt_id` AND `status` = old.`status`;
	INSERT INTO `eval_counts` (`org_id`, `prompt_id`, `status`, `count`) VALUES (new.`org_id`, new.`prompt_id`, new.`status`, 1)
	ON CONFLICT (`org_id`, `prompt_id`, `status`) DO UPDATE SET `count` = `count` + 1;
END;
--> statement-breakpoint
CREATE TRIGGER `eval_requests_uncounted` AFTER DELETE ON `eval_requests` BEGIN
	UPDATE `eval_counts` SET `count` = `count` - 1
	WHERE `org_id` = old.`org_id` AND `prompt_id` = old.`prompt_id` AND `status` = old.`status`;
END;
--> statement-breakpoint
CREATE TRIGGER `runs_settle_added` AFTER INSERT ON `runs` WHEN new.`status` != 'pending' OR (SELECT `status` FROM `eval_requests` WHERE `id` = new.`eval_request_id`) != 'pending' BEGIN
	UPDATE `eval_requests` SET `status` = (
		SELECT CASE
			WHEN sum(`completed_at` IS NULL) > 0 THEN iif(sum(`status` != 'pending') > 0, 'running', 'pending')
			WHEN sum(`status` = 'completed') > 0 THEN 'completed'
			WHEN sum(`status` = 'failed') > 0 THEN 'failed'
			WHEN count(*) > 0 THEN 'superseded'
			ELSE 'pending' END
		FROM `runs` WHERE `org_id` = new.`org_id` AND `eval_request_id` = new.`eval_request_id`)
	WHERE `org_id` = new.`org_id` AND `id` = new.`eval_request_id`;
END;
--> statement-breakpoint
CREATE TRIGGER `runs_settle_changed` AFTER UPDATE OF `status` ON `runs` WHEN old.`status` != new.`status` BEGIN
	UPDATE `eval_requests` SET `status` = (
		SELECT CASE
			WHEN sum(`completed_at` IS NULL) > 0 THEN iif(sum(`status` != 'pending') > 0, 'running', 'pending')
			WHEN sum(`status` = 'completed') > 0 THEN 'completed'
			WHEN sum(`status` = 'failed') > 0 THEN 'failed'
			WHEN count(*) > 0 THEN 'superseded'
			ELSE 'pending' END
		FROM `runs` WHERE `org_id` = new.`org_id` AND `eval_request_id` = new.`eval_request_id`)
	WHERE `org_id` = new.`org_id` AND `id` = new.`eval_request_id`;
END;
--> statement-breakpoint
CREATE TRIGGER `runs_settle_deleted` AFTER DELETE ON `runs` WHEN true BEGIN
	UPDATE `eval_requests` SET `status` = (
		SELECT CASE
			WHEN sum(`completed_at` IS NULL) > 0 THEN iif(sum(`status` != 'pending') > 0, 'running', 'pending')
			WHEN sum(`status` = 'completed') > 0 THEN 'completed'
			WHEN sum(`status` = 'failed') > 0 THEN 'failed'
			WHEN count(*) > 0 THEN 'superseded'
			ELSE 'pending' END
		FROM `runs` WHERE `org_id` = old.`org_id` AND `eval_request_id` = old.`eval_request_id`)
	WHERE `org_id` = old.`org_id` AND `id` = old.`eval_request_id`;
END;
--> statement-breakpoint
-- Runs that ended, by the hour of their creation.
CREATE TRIGGER `run_hours_added` AFTER INSERT ON `runs` WHEN new.`completed_at` IS NOT NULL BEGIN
	INSERT INTO `run_hours` (`org_id`, `prompt_id`, `agent`, `from`, `completed`, `failed`)
	SELECT new.`org_id`, new.`prompt_id`, new.`agent`, new.`created_at` - new.`created_at` % 3600000, new.`status` = 'completed', new.`status` = 'failed'
	WHERE new.`url_map` = '{}' AND new.`edits_digest` IS NULL AND (new.`status` = 'completed' OR (new.`status` = 'failed' AND new.`failure_cause` != 'cancelled'))
	ON CONFLICT (`org_id`, `prompt_id`, `agent`, `from`) DO UPDATE SET
		`completed` = `completed` + excluded.`completed`, `failed` = `failed` + excluded.`failed`;
END;
--> statement-breakpoint
CREATE TRIGGER `run_hours_changed` AFTER UPDATE OF `prompt_id`, `status`, `failure_cause` ON `runs`
WHEN old.`completed_at` IS NOT NULL OR new.`completed_at` IS NOT NULL BEGIN
	UPDATE `run_hours` SET `completed` = `completed` - (old.`status` = 'completed'), `failed` = `failed` - (old.`status` = 'failed')
	WHERE `org_id` = old.`org_id` AND `prompt_id` = old.`prompt_id` AND `agent` = old.`agent` AND `from` = old.`created_at` - old.`created_at` % 3600000
		AND old.`url_map` = '{}' AND old.`edits_digest` IS NULL AND (old.`status` = 'completed' OR (old.`status` = 'failed' AND old.`failure_cause` != 'cancelled'));
	DELETE FROM `run_hours` WHERE `org_id` = old.`org_id` AND `prompt_id` = old.`prompt_id` AND `agent` = old.`agent` AND `from` = old.`created_at` - old.`created_at` % 3600000
		AND `completed` = 0 AND `failed` = 0;
	INSERT INTO `run_hours` (`org_id`, `prompt_id`, `agent`, `from`, `completed`, `failed`)
	SELECT new.`org_id`, new.`prompt_id`, new.`agent`, new.`created_at` - new.`created_at` % 3600000, new.`status` = 'completed', new.`status` = 'failed'
	WHERE new.`url_map` = '{}' AND new.`edits_digest` IS NULL AND (new.`status` = 'completed' OR (new.`status` = 'failed' AND new.`failure_cause` != 'cancelled'))
	ON CONFLICT (`org_id`, `prompt_id`, `agent`, `from`) DO UPDATE SET
		`completed` = `completed` + excluded.`completed`, `failed` = `failed` + excluded.`failed`;
END;
--> statement-breakpoint
CREATE TRIGGER `run_hours_removed` AFTER DELETE ON `runs` WHEN old.`completed_at` IS NOT NULL BEGIN
	UPDATE `run_hours` SET `completed` = `completed` - (old.`status` = 'completed'), `failed` = `failed` - (old.`status` = 'failed')
	WHERE `org_id` = old.`org_id` AND `prompt_id` = old.`prompt_id` AND `agent` = old.`agent` AND `from` = old.`created_at` - old.`created_at` % 3600000
		AND old.`url_map` = '{}' AND old.`edits_digest` IS NULL AND (old.`status` = 'completed' OR (old.`status` = 'failed' AND old.`failure_cause` != 'cancelled'));
	DELETE FROM `run_hours` WHERE `org_id` = old.`org_id` AND `prompt_id` = old.`prompt_id` AND `agent` = old.`agent` AND `from` = old.`created_at` - old.`created_at` % 3600000
		AND `completed` = 0 AND `failed` = 0;
END;
--> statement-breakpoint
-- The audit log is append-only. Entries are deleted only when they are old enough, or after their organization. What was erased is removed from
-- them: the name of a person, and what the entry says of its target.
CREATE TRIGGER `audit_entries_unchanged` BEFORE UPDATE ON `audit_entries`
WHEN new.`id` IS NOT old.`id` OR new.`org_id` IS NOT old.`org_id` OR new.`created_at` IS NOT old.`created_at`
	OR new.`actor_kind` IS NOT old.`actor_kind` OR new.`actor_id` IS NOT old.`actor_id` OR new.`action` IS NOT old.`action`
	OR new.`target_id` IS NOT old.`target_id` OR new.`request_id` IS NOT old.`request_id`
	OR (new.`actor_name` IS NOT old.`actor_name` AND new.`actor_name` NOT IN ('deleted person', 'former member'))
	OR (new.`target_name` IS NOT old.`target_name` AND coalesce(new.`target_name`, 'deleted person') NOT IN ('deleted person', 'former member'))
	OR (new.`changes` IS NOT old.`changes` AND new.`changes` IS NOT NULL)
	OR (new.`ip_address` IS NOT old.`ip_address` AND new.`ip_address` IS NOT NULL)
	OR (new.`user_agent` IS NOT old.`user_agent` AND new.`user_agent` IS NOT NULL)
BEGIN
	SELECT RAISE(ABORT, 'An audit entry never changes.');
END;
--> statement-breakpoint
CREATE TRIGGER `audit_entries_kept` BEFORE DELETE ON `audit_entries`
WHEN old.`created_at` >= coalesce((SELECT `delete_before` FROM `audit_retention`), 0)
	AND (old.`org_id` IS NULL OR EXISTS (SELECT 1 FROM `orgs` WHERE `id` = old.`org_id`)) BEGIN
	SELECT RAISE(ABORT, 'An audit entry is kept until its retention ends.');
END;
