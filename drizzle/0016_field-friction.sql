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
CREATE INDEX `friction_lifecycles_by_fingerprint` ON `friction_lifecycles` (`org_id`,`fingerprint`);