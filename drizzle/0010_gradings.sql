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
	`not_judged` integer NOT NULL,
	`spent_usd` real NOT NULL,
	`unpriced` integer NOT NULL,
	`failure_reason` text,
	`created_at` integer NOT NULL,
	`completed_at` integer,
	FOREIGN KEY (`org_id`) REFERENCES `orgs`(`id`) ON UPDATE no action ON DELETE no action,
	FOREIGN KEY (`org_id`,`prompt_id`) REFERENCES `prompts`(`org_id`,`id`) ON UPDATE no action ON DELETE no action,
	CONSTRAINT "regrades_status" CHECK("regrades"."status" in ('pending', 'running', 'completed', 'failed', 'cancelled')),
	CONSTRAINT "regrades_terminal" CHECK(("regrades"."completed_at" is not null) = ("regrades"."status" in ('completed', 'failed', 'cancelled')))
) STRICT;
--> statement-breakpoint
CREATE INDEX `regrades_newest` ON `regrades` (`org_id`,`id`);--> statement-breakpoint
ALTER TABLE `reports` ADD `grading_id` text;--> statement-breakpoint
ALTER TABLE `reports` ADD `grading_pinned` integer DEFAULT false NOT NULL;