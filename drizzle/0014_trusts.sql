CREATE TABLE `trusts` (
	`id` text PRIMARY KEY NOT NULL,
	`org_id` text NOT NULL,
	`provider` text NOT NULL,
	`issuer` text NOT NULL,
	`repository` text NOT NULL,
	`ref` text,
	`environment` text,
	`scopes` text NOT NULL,
	`minutes` integer NOT NULL,
	`created_at` integer NOT NULL,
	`created_by` text,
	FOREIGN KEY (`org_id`) REFERENCES `orgs`(`id`) ON UPDATE no action ON DELETE no action
) STRICT;
--> statement-breakpoint
CREATE INDEX `trusts_of_org` ON `trusts` (`org_id`,`id`);--> statement-breakpoint
CREATE TABLE `used_tokens` (
	`issuer` text NOT NULL,
	`jti` text NOT NULL,
	`expires_at` integer NOT NULL,
	PRIMARY KEY(`issuer`, `jti`)
) STRICT;
--> statement-breakpoint
CREATE INDEX `used_tokens_expiry` ON `used_tokens` (`expires_at`);--> statement-breakpoint
ALTER TABLE `api_keys` ADD `trust_id` text;