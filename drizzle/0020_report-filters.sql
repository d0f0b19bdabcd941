DROP INDEX `reports_by_prompt`;--> statement-breakpoint
CREATE INDEX `reports_by_agent` ON `reports` (`org_id`,`agent`,`id`,`prompt_id`,`scope`,`score`,`outcome`,`status`,`created_at`,`agent_version`);--> statement-breakpoint
CREATE INDEX `reports_by_prompt` ON `reports` (`org_id`,`prompt_id`,`status`,`run_id`,`scope`,`score`,`outcome`,`created_at`,`agent`,`agent_version`);