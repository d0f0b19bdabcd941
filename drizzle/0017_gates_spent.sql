ALTER TABLE `gates` ADD `spent_usd` real;--> statement-breakpoint
UPDATE `gates` SET `spent_usd` = (
	SELECT CASE WHEN count(*) = count(a.cost_usd) THEN total(a.cost_usd) END
	FROM `runs` r JOIN `jobs` j ON j.kind = 'run' AND j.subject = r.id JOIN `attempts` a ON a.job_id = j.id
	WHERE r.org_id = `gates`.org_id AND r.eval_request_id IN (`gates`.head_request_id, `gates`.base_request_id) AND a.ended_at IS NOT NULL
) WHERE `decided_at` IS NOT NULL;
