ALTER TABLE `prompts` ADD `badge_token` text;--> statement-breakpoint
CREATE UNIQUE INDEX `prompts_badge_token_unique` ON `prompts` (`badge_token`);--> statement-breakpoint
UPDATE `prompts` SET `badge_token` = `id` WHERE `has_public_badge` = 1;--> statement-breakpoint
ALTER TABLE `prompts` DROP COLUMN `has_public_badge`;