-- One B-tree in place of a table and the index of its key: each start and end of a job writes a page less.
CREATE TABLE `__new_attempts` (
	`job_id` text NOT NULL,
	`attempt` integer NOT NULL,
	`owner` text NOT NULL,
	`started_at` integer NOT NULL,
	`completed_at` integer,
	`outcome` text,
	`reason` text,
	`cost_usd` real,
	PRIMARY KEY(`job_id`, `attempt`),
	CONSTRAINT "attempts_outcome" CHECK("__new_attempts"."outcome" in ('done', 'failed', 'retried', 'released', 'lost', 'cancelled')),
	CONSTRAINT "attempts_completed_at" CHECK(("__new_attempts"."outcome" is null) = ("__new_attempts"."completed_at" is null))
) STRICT, WITHOUT ROWID;
--> statement-breakpoint
INSERT INTO `__new_attempts`
SELECT `job_id`, `attempt`, `owner`, `started_at`, `completed_at`, `outcome`, `reason`, `cost_usd` FROM `attempts` ORDER BY `job_id`, `attempt`;
--> statement-breakpoint
DROP TABLE `attempts`;
--> statement-breakpoint
ALTER TABLE `__new_attempts` RENAME TO `attempts`;
