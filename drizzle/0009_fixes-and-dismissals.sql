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
ALTER TABLE `recommendations` ADD `lost_points` real;