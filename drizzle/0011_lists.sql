CREATE INDEX `eval_requests_by_trigger` ON `eval_requests` (`org_id`,`trigger`,`id`);--> statement-breakpoint
CREATE INDEX `runs_by_agent` ON `runs` (`org_id`,`agent`,`id`);--> statement-breakpoint
CREATE INDEX `runs_without_report` ON `runs` (`org_id`,`status`,`id`) WHERE "runs"."status" in ('failed', 'superseded');