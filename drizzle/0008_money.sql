CREATE TABLE `spending` (
	`org_id` text NOT NULL,
	`from` integer NOT NULL,
	`usd` real NOT NULL,
	`unpriced_calls` integer NOT NULL,
	PRIMARY KEY(`org_id`, `from`)
) STRICT;
--> statement-breakpoint
ALTER TABLE `orgs` ADD `max_usd_a_month` real;--> statement-breakpoint
ALTER TABLE `orgs` ADD `max_usd_a_run` real;--> statement-breakpoint
ALTER TABLE `orgs` ADD `judge_models` text;--> statement-breakpoint
ALTER TABLE `prompts` ADD `limits` text;--> statement-breakpoint
ALTER TABLE `runs` ADD `reserved_usd` real;--> statement-breakpoint
CREATE INDEX `runs_reserved` ON `runs` (`org_id`) WHERE "runs"."reserved_usd" is not null;--> statement-breakpoint
INSERT INTO `spending` (`org_id`, `from`, `usd`, `unpriced_calls`)
SELECT `org_id`, `at` - `at` % 900000, coalesce(sum(json_extract(`data`, '$.costUsd')), 0), count(*) - count(json_extract(`data`, '$.costUsd'))
FROM `session_events` WHERE `type` = 'usage' AND `source` != 'agent' GROUP BY 1, 2;
--> statement-breakpoint
CREATE TRIGGER `session_events_paid` AFTER INSERT ON `session_events` WHEN new.`type` = 'usage' AND new.`source` != 'agent' BEGIN
	INSERT INTO `spending` (`org_id`, `from`, `usd`, `unpriced_calls`)
	VALUES (new.`org_id`, new.`at` - new.`at` % 900000, coalesce(json_extract(new.`data`, '$.costUsd'), 0), json_extract(new.`data`, '$.costUsd') IS NULL)
	ON CONFLICT (`org_id`, `from`) DO UPDATE SET `usd` = `usd` + excluded.`usd`, `unpriced_calls` = `unpriced_calls` + excluded.`unpriced_calls`;
END;
