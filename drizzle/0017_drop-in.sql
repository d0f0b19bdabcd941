ALTER TABLE `api_keys` ADD `is_compatible` integer DEFAULT false NOT NULL;--> statement-breakpoint
ALTER TABLE `orgs` ADD `results_token` text;--> statement-breakpoint
CREATE UNIQUE INDEX `orgs_results_token_unique` ON `orgs` (`results_token`);--> statement-breakpoint
ALTER TABLE `prompts` ADD `supersedes_by_default` integer DEFAULT false NOT NULL;--> statement-breakpoint
ALTER TABLE `prompts` ADD `success_bar` text;--> statement-breakpoint
ALTER TABLE `prompts` ADD `is_on_results_page` integer DEFAULT false NOT NULL;--> statement-breakpoint
ALTER TABLE `trusts` ADD `repository_id` text;