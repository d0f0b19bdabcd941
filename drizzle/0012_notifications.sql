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
	`created_at` integer NOT NULL,
	FOREIGN KEY (`org_id`) REFERENCES `orgs`(`id`) ON UPDATE no action ON DELETE no action
) STRICT;
--> statement-breakpoint
CREATE UNIQUE INDEX `notifications_of_org` ON `notifications` (`org_id`,`id`);--> statement-breakpoint
CREATE UNIQUE INDEX `notifications_once` ON `notifications` (`org_id`,`once_key`);--> statement-breakpoint
DROP INDEX `jobs_claim`;--> statement-breakpoint
ALTER TABLE `jobs` ADD `pool` text DEFAULT 'runs' NOT NULL;--> statement-breakpoint
CREATE INDEX `jobs_claim` ON `jobs` (`pool`,`org_id`,`host`,`available_at`,`id`) WHERE "jobs"."state" = 'queued';