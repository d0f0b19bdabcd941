CREATE TABLE `__new_score_days` (
	`org_id` text NOT NULL,
	`prompt_id` text NOT NULL,
	`day` integer NOT NULL,
	`agent` text NOT NULL,
	`version` text NOT NULL,
	`context_digest` text DEFAULT '' NOT NULL,
	`model` text NOT NULL,
	`methodology` text NOT NULL,
	`scope` text DEFAULT 'docs_only' NOT NULL,
	`last_at` integer NOT NULL,
	`succeeded` integer NOT NULL,
	`judged` integer NOT NULL,
	`scores` text NOT NULL,
	`seconds` text NOT NULL,
	`costs_usd` text NOT NULL,
	PRIMARY KEY(`org_id`, `prompt_id`, `day`, `agent`, `version`, `context_digest`, `model`, `methodology`, `scope`),
	FOREIGN KEY (`org_id`,`prompt_id`) REFERENCES `prompts`(`org_id`,`id`) ON UPDATE no action ON DELETE no action
) STRICT;
--> statement-breakpoint
INSERT INTO `__new_score_days`("org_id", "prompt_id", "day", "agent", "version", "context_digest", "model", "methodology", "scope", "last_at", "succeeded", "judged", "scores", "seconds", "costs_usd") SELECT "org_id", "prompt_id", "day", "agent", "version", '', "model", "methodology", "scope", "last_at", "succeeded", "judged", "scores", "seconds", "costs_usd" FROM `score_days`;--> statement-breakpoint
DROP TABLE `score_days`;--> statement-breakpoint
ALTER TABLE `__new_score_days` RENAME TO `score_days`;--> statement-breakpoint
ALTER TABLE `runs` ADD `context_digest` text;