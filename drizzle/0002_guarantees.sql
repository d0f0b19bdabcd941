CREATE TABLE `attempts` (
	`job_id` text NOT NULL,
	`attempt` integer NOT NULL,
	`owner` text NOT NULL,
	`begun_at` integer NOT NULL,
	`ended_at` integer,
	`ended` text,
	`reason` text,
	`cost_usd` real,
	PRIMARY KEY(`job_id`, `attempt`),
	CONSTRAINT "attempts_ended" CHECK("attempts"."ended" in ('done', 'failed', 'retried', 'released', 'lost', 'cancelled')),
	CONSTRAINT "attempts_ended_at" CHECK(("attempts"."ended" is null) = ("attempts"."ended_at" is null))
) STRICT;
--> statement-breakpoint
CREATE TABLE `slots` (
	`org_id` text NOT NULL,
	`prompt_id` text NOT NULL,
	`at` integer NOT NULL,
	`outcome` text NOT NULL,
	`eval_request_id` text,
	`reason` text,
	`decided_at` integer NOT NULL,
	PRIMARY KEY(`prompt_id`, `at`),
	FOREIGN KEY (`org_id`,`prompt_id`) REFERENCES `prompts`(`org_id`,`id`) ON UPDATE no action ON DELETE no action,
	FOREIGN KEY (`org_id`,`eval_request_id`) REFERENCES `eval_requests`(`org_id`,`id`) ON UPDATE no action ON DELETE no action,
	CONSTRAINT "slots_outcome" CHECK("slots"."outcome" in ('ran', 'missed', 'skipped_overlap', 'failed')),
	CONSTRAINT "slots_ran" CHECK(("slots"."outcome" = 'ran') = ("slots"."eval_request_id" is not null)),
	CONSTRAINT "slots_reason" CHECK(("slots"."outcome" = 'ran') = ("slots"."reason" is null))
) STRICT;
--> statement-breakpoint
PRAGMA foreign_keys=OFF;--> statement-breakpoint
CREATE TABLE `__new_jobs` (
	`id` text PRIMARY KEY NOT NULL,
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
	`first_begun_at` integer,
	`ended_at` integer,
	CONSTRAINT "jobs_state" CHECK("__new_jobs"."state" in ('queued', 'running', 'done', 'failed', 'cancelled')),
	CONSTRAINT "jobs_lease" CHECK(("__new_jobs"."state" = 'running') = ("__new_jobs"."lease_until" is not null)),
	CONSTRAINT "jobs_ended" CHECK(("__new_jobs"."state" in ('done', 'failed', 'cancelled')) = ("__new_jobs"."ended_at" is not null))
) STRICT;
--> statement-breakpoint
INSERT INTO `__new_jobs`("id", "kind", "subject", "org_id", "host", "state", "available_at", "attempt", "spent", "max_attempts", "faults", "deaths", "owner", "lease_until", "last_error", "created_at", "first_begun_at", "ended_at") SELECT "id", "kind", "subject", (SELECT `org_id` FROM `runs` WHERE `runs`.`id` = "subject"), '', "state", "available_at", max("attempt", "fence"), 0, "max_attempts", 0, 0, "owner", "lease_until", "last_error", "created_at", (SELECT `started_at` FROM `runs` WHERE `runs`.`id` = "subject"), "ended_at" FROM `jobs`;--> statement-breakpoint
DROP TABLE `jobs`;--> statement-breakpoint
ALTER TABLE `__new_jobs` RENAME TO `jobs`;--> statement-breakpoint
PRAGMA foreign_keys=ON;--> statement-breakpoint
CREATE INDEX `jobs_claim` ON `jobs` (`org_id`,`host`,`available_at`,`id`) WHERE "jobs"."state" = 'queued';--> statement-breakpoint
CREATE INDEX `jobs_running` ON `jobs` (`lease_until`) WHERE "jobs"."state" = 'running';--> statement-breakpoint
CREATE INDEX `jobs_begun` ON `jobs` (`org_id`,`first_begun_at`) WHERE "jobs"."first_begun_at" is not null;--> statement-breakpoint
CREATE UNIQUE INDEX `jobs_subject` ON `jobs` (`kind`,`subject`);--> statement-breakpoint
ALTER TABLE `orgs` ADD `max_runs_at_once` integer;--> statement-breakpoint
ALTER TABLE `orgs` ADD `max_runs_a_day` integer;--> statement-breakpoint
ALTER TABLE `prompts` ADD `next_slot_at` integer;--> statement-breakpoint
CREATE INDEX `prompts_due` ON `prompts` (`next_slot_at`) WHERE "prompts"."next_slot_at" is not null;--> statement-breakpoint
CREATE INDEX `runs_unfinished` ON `runs` (`org_id`,`prompt_id`) WHERE "runs"."completed_at" is null;--> statement-breakpoint
CREATE INDEX `session_events_usage` ON `session_events` (`run_id`,`attempt`) WHERE "session_events"."type" = 'usage';