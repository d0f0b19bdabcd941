-- run_counts is kept by these triggers, so that a list can give its total without counting a million rows.
CREATE TRIGGER `runs_counted` AFTER INSERT ON `runs` BEGIN
	INSERT INTO `run_counts` (`org_id`, `prompt_id`, `report_status`, `count`) VALUES (new.`org_id`, new.`prompt_id`, 'any', 1)
	ON CONFLICT (`org_id`, `prompt_id`, `report_status`) DO UPDATE SET `count` = `count` + 1;
END;
--> statement-breakpoint
CREATE TRIGGER `runs_uncounted` AFTER DELETE ON `runs` BEGIN
	UPDATE `run_counts` SET `count` = `count` - 1
	WHERE `org_id` = old.`org_id` AND `prompt_id` = old.`prompt_id` AND `report_status` = 'any';
END;
--> statement-breakpoint
CREATE TRIGGER `reports_counted` AFTER INSERT ON `reports` BEGIN
	INSERT INTO `run_counts` (`org_id`, `prompt_id`, `report_status`, `count`) VALUES (new.`org_id`, new.`prompt_id`, new.`status`, 1)
	ON CONFLICT (`org_id`, `prompt_id`, `report_status`) DO UPDATE SET `count` = `count` + 1;
END;
--> statement-breakpoint
CREATE TRIGGER `reports_recounted` AFTER UPDATE OF `status` ON `reports` WHEN old.`status` != new.`status` BEGIN
	UPDATE `run_counts` SET `count` = `count` - 1
	WHERE `org_id` = old.`org_id` AND `prompt_id` = old.`prompt_id` AND `report_status` = old.`status`;
	INSERT INTO `run_counts` (`org_id`, `prompt_id`, `report_status`, `count`) VALUES (new.`org_id`, new.`prompt_id`, new.`status`, 1)
	ON CONFLICT (`org_id`, `prompt_id`, `report_status`) DO UPDATE SET `count` = `count` + 1;
END;
--> statement-breakpoint
CREATE TRIGGER `reports_uncounted` AFTER DELETE ON `reports` BEGIN
	UPDATE `run_counts` SET `count` = `count` - 1
	WHERE `org_id` = old.`org_id` AND `prompt_id` = old.`prompt_id` AND `report_status` = old.`status`;
END;
