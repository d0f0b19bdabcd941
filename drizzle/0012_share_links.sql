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
CREATE INDEX `share_links_by_report` ON `share_links` (`org_id`,`report_id`,`id`);