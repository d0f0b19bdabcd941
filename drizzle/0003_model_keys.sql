CREATE TABLE `model_keys` (
	`org_id` text NOT NULL,
	`provider` text NOT NULL,
	`base_url` text NOT NULL,
	`sealed` blob NOT NULL,
	`created_at` integer NOT NULL,
	PRIMARY KEY(`org_id`, `provider`),
	FOREIGN KEY (`org_id`) REFERENCES `orgs`(`id`) ON UPDATE no action ON DELETE no action,
	CONSTRAINT "model_keys_provider" CHECK("model_keys"."provider" in ('anthropic', 'openai', 'google', 'openai-compatible'))
) STRICT;
