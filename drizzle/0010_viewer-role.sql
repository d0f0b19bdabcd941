PRAGMA foreign_keys=OFF;--> statement-breakpoint
CREATE TABLE `__new_invitations` (
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
	CONSTRAINT "invitations_role" CHECK("__new_invitations"."role" in ('owner', 'admin', 'member', 'viewer')),
	CONSTRAINT "invitations_status" CHECK("__new_invitations"."status" in ('pending', 'accepted', 'rejected', 'canceled'))
) STRICT;
--> statement-breakpoint
INSERT INTO `__new_invitations`("id", "org_id", "email", "role", "status", "inviter_id", "created_at", "expires_at") SELECT "id", "org_id", "email", "role", "status", "inviter_id", "created_at", "expires_at" FROM `invitations`;--> statement-breakpoint
DROP TABLE `invitations`;--> statement-breakpoint
ALTER TABLE `__new_invitations` RENAME TO `invitations`;--> statement-breakpoint
PRAGMA foreign_keys=ON;--> statement-breakpoint
CREATE INDEX `invitations_newest` ON `invitations` (`org_id`,`id`);--> statement-breakpoint
CREATE TABLE `__new_members` (
	`id` text PRIMARY KEY NOT NULL,
	`org_id` text NOT NULL,
	`person_id` text NOT NULL,
	`role` text NOT NULL,
	`created_at` integer NOT NULL,
	FOREIGN KEY (`org_id`) REFERENCES `orgs`(`id`) ON UPDATE no action ON DELETE no action,
	FOREIGN KEY (`person_id`) REFERENCES `people`(`id`) ON UPDATE no action ON DELETE cascade,
	CONSTRAINT "members_role" CHECK("__new_members"."role" in ('owner', 'admin', 'member', 'viewer'))
) STRICT;
--> statement-breakpoint
INSERT INTO `__new_members`("id", "org_id", "person_id", "role", "created_at") SELECT "id", "org_id", "person_id", "role", "created_at" FROM `members`;--> statement-breakpoint
DROP TABLE `members`;--> statement-breakpoint
ALTER TABLE `__new_members` RENAME TO `members`;--> statement-breakpoint
CREATE INDEX `members_of_person` ON `members` (`person_id`);--> statement-breakpoint
CREATE UNIQUE INDEX `members_once` ON `members` (`org_id`,`person_id`);