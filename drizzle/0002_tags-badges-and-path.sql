ALTER TABLE `friction_points` ADD `on_path` integer DEFAULT true NOT NULL;--> statement-breakpoint
ALTER TABLE `prompts` ADD `tags` text DEFAULT '[]' NOT NULL;--> statement-breakpoint
ALTER TABLE `prompts` ADD `has_public_badge` integer DEFAULT false NOT NULL;