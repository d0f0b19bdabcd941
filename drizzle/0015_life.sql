CREATE TABLE `fixes` (
	`id` text PRIMARY KEY NOT NULL,
	`org_id` text NOT NULL,
	`prompt_id` text NOT NULL,
	`title` text NOT NULL,
	`fingerprints` text NOT NULL,
	`done_by` text NOT NULL,
	`note` text,
	`created_at` integer NOT NULL,
	`before_id` text NOT NULL,
	`after_id` text NOT NULL,
	FOREIGN KEY (`org_id`,`prompt_id`) REFERENCES `prompts`(`org_id`,`id`) ON UPDATE no action ON DELETE no action,
	FOREIGN KEY (`org_id`,`before_id`) REFERENCES `eval_requests`(`org_id`,`id`) ON UPDATE no action ON DELETE no action,
	FOREIGN KEY (`org_id`,`after_id`) REFERENCES `eval_requests`(`org_id`,`id`) ON UPDATE no action ON DELETE no action
) STRICT;
--> statement-breakpoint
CREATE INDEX `fixes_by_prompt` ON `fixes` (`org_id`,`prompt_id`,`id`);--> statement-breakpoint
CREATE TABLE `friction_lives` (
	`org_id` text NOT NULL,
	`prompt_id` text NOT NULL,
	`place` text NOT NULL,
	`fingerprint` text NOT NULL,
	`report_id` text NOT NULL,
	`severity` text NOT NULL,
	`state` text NOT NULL,
	`first_seen_at` integer NOT NULL,
	`last_seen_at` integer NOT NULL,
	`fixed_at` integer,
	`met` integer NOT NULL,
	`reached` integer NOT NULL,
	`lost_points` real,
	`lost_seconds` real,
	`lost_usd` real,
	`page` text,
	`met_by` text NOT NULL,
	`grounds` text,
	`life` text NOT NULL,
	PRIMARY KEY(`org_id`, `prompt_id`, `place`, `fingerprint`),
	FOREIGN KEY (`org_id`,`prompt_id`) REFERENCES `prompts`(`org_id`,`id`) ON UPDATE no action ON DELETE no action,
	FOREIGN KEY (`org_id`,`report_id`) REFERENCES `reports`(`org_id`,`id`) ON UPDATE no action ON DELETE no action,
	CONSTRAINT "friction_lives_state" CHECK("friction_lives"."state" in ('new', 'open', 'fixed', 'regressed')),
	CONSTRAINT "friction_lives_severity" CHECK("friction_lives"."severity" in ('critical', 'high', 'medium', 'low'))
) STRICT;
--> statement-breakpoint
CREATE TABLE `named_pages` (
	`org_id` text NOT NULL,
	`prompt_id` text NOT NULL,
	`page` text NOT NULL,
	`url` text NOT NULL,
	`llms_txt_at` integer,
	`sitemap_at` integer,
	`link_at` integer,
	PRIMARY KEY(`org_id`, `prompt_id`, `page`),
	FOREIGN KEY (`org_id`,`prompt_id`) REFERENCES `prompts`(`org_id`,`id`) ON UPDATE no action ON DELETE no action
) STRICT;
--> statement-breakpoint
CREATE TABLE `page_months` (
	`org_id` text NOT NULL,
	`prompt_id` text NOT NULL,
	`month` integer NOT NULL,
	`agent` text NOT NULL,
	`page` text NOT NULL,
	`url` text NOT NULL,
	`runs` integer NOT NULL,
	`reads` integer NOT NULL,
	`misses` integer NOT NULL,
	`guesses` integer NOT NULL,
	`errors` integer NOT NULL,
	`given` integer NOT NULL,
	`llms_txt` integer NOT NULL,
	`sitemap` integer NOT NULL,
	`link` integer NOT NULL,
	`search` integer NOT NULL,
	`guessed` integer NOT NULL,
	PRIMARY KEY(`org_id`, `prompt_id`, `month`, `agent`, `page`),
	FOREIGN KEY (`org_id`,`prompt_id`) REFERENCES `prompts`(`org_id`,`id`) ON UPDATE no action ON DELETE no action
) STRICT;
--> statement-breakpoint
CREATE TABLE `reaches` (
	`report_id` text PRIMARY KEY NOT NULL,
	`org_id` text NOT NULL,
	`visits` text NOT NULL,
	`done` text NOT NULL,
	`is_complete` integer NOT NULL,
	`by_rules` integer NOT NULL,
	FOREIGN KEY (`org_id`,`report_id`) REFERENCES `reports`(`org_id`,`id`) ON UPDATE no action ON DELETE no action
) STRICT;
--> statement-breakpoint
CREATE TABLE `score_days` (
	`org_id` text NOT NULL,
	`prompt_id` text NOT NULL,
	`day` integer NOT NULL,
	`agent` text NOT NULL,
	`version` text NOT NULL,
	`model` text NOT NULL,
	`methodology` text NOT NULL,
	`last_at` integer NOT NULL,
	`succeeded` integer NOT NULL,
	`judged` integer NOT NULL,
	`scores` text NOT NULL,
	`seconds` text NOT NULL,
	`costs_usd` text NOT NULL,
	PRIMARY KEY(`org_id`, `prompt_id`, `day`, `agent`, `version`, `model`, `methodology`),
	FOREIGN KEY (`org_id`,`prompt_id`) REFERENCES `prompts`(`org_id`,`id`) ON UPDATE no action ON DELETE no action
) STRICT;
--> statement-breakpoint
ALTER TABLE `friction_points` ADD `lost_points` real;--> statement-breakpoint
ALTER TABLE `friction_points` ADD `grounds` text;--> statement-breakpoint
ALTER TABLE `prompts` ADD `is_canary` integer DEFAULT false NOT NULL;--> statement-breakpoint
CREATE INDEX `prompts_by_provider` ON `prompts` (`org_id`,`target_provider_id`,`id`);--> statement-breakpoint
CREATE INDEX `runs_failed` ON `runs` (`org_id`,`prompt_id`,`id`) WHERE "runs"."status" = 'failed';--> statement-breakpoint
-- What older reports of the live docs met. Nobody knows which of their runs came by and missed it, so none of it is fixed.
INSERT INTO `friction_lives` (`org_id`, `prompt_id`, `place`, `fingerprint`, `report_id`, `severity`, `state`, `first_seen_at`, `last_seen_at`, `met`, `reached`, `lost_seconds`, `lost_usd`, `met_by`, `life`)
SELECT o.`org_id`, o.`prompt_id`, '', o.`fingerprint`, o.`last_id`, f.`severity`, o.`state`, o.`first_at`, o.`last_at`, o.`n`, o.`n`, o.`seconds`, o.`usd`, o.`met_by`,
	json_object('before', json_object('state', o.`state`, 'met', o.`n`, 'of', o.`n`, 'missed', 0, 'byModel', json(iif(o.`model` IS NULL, 'false', 'true')), 'fixedAt', NULL),
		'beforeId', o.`eval_id`, 'evaluations', json_array())
FROM (
	SELECT f.`org_id`, f.`prompt_id`, f.`fingerprint`, max(p.`id`) AS `last_id`, min(p.`created_at`) AS `first_at`, max(p.`created_at`) AS `last_at`, count(*) AS `n`,
		sum(f.`lost_seconds`) AS `seconds`, sum(f.`lost_usd`) AS `usd`, max(r.`model`) AS `model`, max(r.`eval_request_id`) AS `eval_id`,
		json_group_array(DISTINCT r.`agent` || ' ' || coalesce(r.`model`, '')) AS `met_by`, iif(count(DISTINCT r.`eval_request_id`) = 1, 'new', 'open') AS `state`
	FROM `friction_points` f JOIN `reports` p ON p.`id` = f.`report_id` JOIN `runs` r ON r.`id` = p.`run_id`
	WHERE p.`status` = 'published' AND r.`url_map` = '{}'
	GROUP BY f.`org_id`, f.`prompt_id`, f.`fingerprint`
) o JOIN `friction_points` f ON f.`report_id` = o.`last_id` AND f.`fingerprint` = o.`fingerprint`;
--> statement-breakpoint
-- The trends of what older versions counted anew at each look.
INSERT INTO `score_days` (`org_id`, `prompt_id`, `day`, `agent`, `version`, `model`, `methodology`, `last_at`, `succeeded`, `judged`, `scores`, `seconds`, `costs_usd`)
SELECT r.`org_id`, r.`prompt_id`, r.`created_at` / 86400000 * 86400000 AS `d`, r.`agent`, coalesce(r.`agent_version`, '') AS `v`, coalesce(r.`model`, '') AS `m`, p.`methodology`,
	max(r.`created_at`), sum(p.`outcome` = 'succeeded'), sum(p.`outcome` IN ('succeeded', 'goal_not_met')),
	json_group_array(p.`score`) FILTER (WHERE p.`score` IS NOT NULL),
	json_group_array(json_extract(p.`metrics`, '$.timeSeconds')) FILTER (WHERE json_extract(p.`metrics`, '$.timeSeconds') IS NOT NULL),
	json_group_array(json_extract(p.`metrics`, '$.costUsd')) FILTER (WHERE json_extract(p.`metrics`, '$.costUsd') IS NOT NULL)
FROM `reports` p JOIN `runs` r ON r.`id` = p.`run_id`
WHERE p.`status` = 'published' AND r.`url_map` = '{}'
GROUP BY r.`org_id`, r.`prompt_id`, `d`, r.`agent`, `v`, `m`, p.`methodology`;
