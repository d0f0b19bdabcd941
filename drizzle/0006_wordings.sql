ALTER TABLE `prompts` ADD `wordings` text;--> statement-breakpoint
ALTER TABLE `reports` ADD `wordings` text;