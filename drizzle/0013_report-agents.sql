DROP INDEX `reports_filtered`;--> statement-breakpoint
DROP INDEX `reports_by_score`;--> statement-breakpoint
ALTER TABLE `reports` ADD `agent` text;--> statement-breakpoint
ALTER TABLE `reports` ADD `agent_version` text;--> statement-breakpoint
UPDATE `reports` SET (`agent`, `agent_version`) = (SELECT `agent`, `agent_version` FROM `runs` WHERE `runs`.`id` = `reports`.`run_id`);--> statement-breakpoint
CREATE INDEX `reports_filtered` ON `reports` (`org_id`,`id`,`prompt_id`,`scope`,`score`,`outcome`,`status`,`created_at`,`agent`,`agent_version`);--> statement-breakpoint
CREATE INDEX `reports_by_score` ON `reports` (`org_id`,`score`,`id`,`prompt_id`,`scope`,`outcome`,`status`,`created_at`,`agent`,`agent_version`);--> statement-breakpoint
CREATE TRIGGER `reports_with_agent` AFTER INSERT ON `reports` BEGIN
	UPDATE `reports` SET (`agent`, `agent_version`) = (SELECT `agent`, `agent_version` FROM `runs` WHERE `id` = new.`run_id`)
	WHERE `id` = new.`id`;
END;
