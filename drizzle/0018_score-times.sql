CREATE TABLE `__new_score_days` (
	`org_id` text NOT NULL,
	`prompt_id` text NOT NULL,
	`day` integer NOT NULL,
	`agent` text NOT NULL,
	`version` text NOT NULL,
	`context_digest` text DEFAULT '' NOT NULL,
	`model` text NOT NULL,
	`methodology` text NOT NULL,
	`scope` text DEFAULT 'docs_only' NOT NULL,
	`times` text NOT NULL,
	`scores` text NOT NULL,
	`seconds` text NOT NULL,
	`costs_usd` text NOT NULL,
	`met` text NOT NULL,
	PRIMARY KEY(`org_id`, `prompt_id`, `day`, `agent`, `version`, `context_digest`, `model`, `methodology`, `scope`),
	FOREIGN KEY (`org_id`,`prompt_id`) REFERENCES `prompts`(`org_id`,`id`) ON UPDATE no action ON DELETE no action
) STRICT;
--> statement-breakpoint
INSERT INTO `__new_score_days` SELECT
	u.`org_id`, u.`prompt_id`, u.`created_at` / 86400000 * 86400000 AS `at_day`, u.`agent`,
	coalesce(u.`agent_version`, '') AS `of_version`, coalesce(u.`context_digest`, '') AS `of_context`, coalesce(u.`model`, '') AS `of_model`, p.`methodology`,
	CASE WHEN p.`scope` = 'conduct_only' AND json_extract(p.`methodology`, '$.judge') IS NOT NULL THEN 'goal' ELSE p.`scope` END AS `of_scope`,
	json_group_array(u.`created_at` % 86400000 ORDER BY u.`created_at`, u.`id`),
	json_group_array(p.`score` ORDER BY u.`created_at`, u.`id`),
	json_group_array(json_extract(p.`metrics`, '$.timeSeconds') ORDER BY u.`created_at`, u.`id`),
	json_group_array(json_extract(p.`metrics`, '$.costUsd') ORDER BY u.`created_at`, u.`id`),
	json_group_array(CASE p.`outcome` WHEN 'succeeded' THEN 1 WHEN 'goal_not_met' THEN 0 END ORDER BY u.`created_at`, u.`id`)
FROM `reports` p JOIN `runs` u ON u.`id` = p.`run_id`
WHERE p.`status` = 'published' AND u.`url_map` = '{}'
GROUP BY u.`org_id`, u.`prompt_id`, `at_day`, u.`agent`, `of_version`, `of_context`, `of_model`, p.`methodology`, `of_scope`;--> statement-breakpoint
DROP TABLE `score_days`;--> statement-breakpoint
ALTER TABLE `__new_score_days` RENAME TO `score_days`;
