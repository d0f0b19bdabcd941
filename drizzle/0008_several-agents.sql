ALTER TABLE `gates` ADD `agents` text;--> statement-breakpoint
ALTER TABLE `prompts` ADD `agents` text;--> statement-breakpoint
ALTER TABLE `runs` ADD `agent_index` integer DEFAULT 0 NOT NULL;