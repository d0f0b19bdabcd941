CREATE TABLE `archives` (
	`id` text PRIMARY KEY NOT NULL,
	`org_id` text NOT NULL,
	`digest` text NOT NULL,
	`bytes` integer NOT NULL,
	`files` integer NOT NULL,
	`data` blob NOT NULL,
	`created_at` integer NOT NULL,
	FOREIGN KEY (`org_id`) REFERENCES `orgs`(`id`) ON UPDATE no action ON DELETE no action,
	CONSTRAINT "archives_digest" CHECK(length("archives"."digest") = 64),
	CONSTRAINT "archives_data" CHECK(length("archives"."data") = "archives"."bytes")
) STRICT;
--> statement-breakpoint
CREATE UNIQUE INDEX `archives_once` ON `archives` (`org_id`,`digest`);--> statement-breakpoint
ALTER TABLE `prompts` ADD `workspace` text;