CREATE TABLE `gates` (
	`id` text PRIMARY KEY NOT NULL,
	`org_id` text NOT NULL,
	`prompt_id` text NOT NULL,
	`head_request_id` text NOT NULL,
	`base_request_id` text,
	`base_run_ids` text,
	`model` text,
	`runs` integer NOT NULL,
	`adaptive` integer NOT NULL,
	`min_score` real,
	`budget_usd` real,
	`status` text NOT NULL,
	`reason` text,
	`comparison` text,
	`created_at` integer NOT NULL,
	`decided_at` integer,
	FOREIGN KEY (`org_id`,`prompt_id`) REFERENCES `prompts`(`org_id`,`id`) ON UPDATE no action ON DELETE no action,
	FOREIGN KEY (`org_id`,`head_request_id`) REFERENCES `eval_requests`(`org_id`,`id`) ON UPDATE no action ON DELETE no action,
	FOREIGN KEY (`org_id`,`base_request_id`) REFERENCES `eval_requests`(`org_id`,`id`) ON UPDATE no action ON DELETE no action,
	CONSTRAINT "gates_status" CHECK("gates"."status" in ('running', 'passed', 'failed', 'error')),
	CONSTRAINT "gates_decided" CHECK(("gates"."status" = 'running') = ("gates"."decided_at" is null)),
	CONSTRAINT "gates_reason" CHECK(("gates"."status" = 'running') = ("gates"."reason" is null))
) STRICT;
--> statement-breakpoint
CREATE INDEX `gates_by_prompt` ON `gates` (`org_id`,`prompt_id`,`id`);--> statement-breakpoint
CREATE INDEX `gates_running` ON `gates` (`id`) WHERE "gates"."status" = 'running';--> statement-breakpoint
CREATE UNIQUE INDEX `gates_of_org` ON `gates` (`org_id`,`id`);--> statement-breakpoint
CREATE UNIQUE INDEX `gates_of_request` ON `gates` (`org_id`,`head_request_id`);--> statement-breakpoint
ALTER TABLE `prompts` ADD `baseline_request_id` text;