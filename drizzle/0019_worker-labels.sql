ALTER TABLE `prompts` ADD `worker_labels` text DEFAULT '[]' NOT NULL;--> statement-breakpoint
ALTER TABLE `runs` ADD `waiting_for` text;