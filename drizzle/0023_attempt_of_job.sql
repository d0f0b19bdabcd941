-- The row of a job has its last attempt, so that a job that ends at its first attempt writes no other row.
CREATE TABLE `earlier_attempts` (
	`job_id` text NOT NULL,
	`attempt` integer NOT NULL,
	`owner` text NOT NULL,
	`started_at` integer NOT NULL,
	`completed_at` integer NOT NULL,
	`outcome` text NOT NULL,
	`reason` text,
	`cost_usd` real,
	PRIMARY KEY(`job_id`, `attempt`),
	CONSTRAINT "earlier_attempts_outcome" CHECK("earlier_attempts"."outcome" in ('retried', 'released', 'lost'))
) STRICT, WITHOUT ROWID;
--> statement-breakpoint
INSERT INTO `earlier_attempts`
SELECT `job_id`, `attempt`, `owner`, `started_at`, `completed_at`, `outcome`, `reason`, `cost_usd` FROM `attempts`
WHERE `outcome` in ('retried', 'released', 'lost') ORDER BY `job_id`, `attempt`;
--> statement-breakpoint
ALTER TABLE `jobs` ADD `attempt_started_at` integer;--> statement-breakpoint
ALTER TABLE `jobs` ADD `cost_usd` real;--> statement-breakpoint
UPDATE `jobs` SET `attempt` = last.`attempt`, `owner` = last.`owner`, `attempt_started_at` = last.`started_at`, `cost_usd` = last.`cost_usd`
FROM `attempts` last WHERE last.`job_id` = `jobs`.`id` AND (last.`outcome` is null OR last.`outcome` not in ('retried', 'released', 'lost'));
--> statement-breakpoint
DROP TABLE `attempts`;--> statement-breakpoint
CREATE VIEW `attempts` AS 
  select job_id, attempt, owner, started_at, completed_at, outcome, reason, cost_usd from earlier_attempts
  union all
  select id, attempt, owner, attempt_started_at, completed_at, iif(completed_at is null, null, state),
    iif(completed_at is null, null, last_error), cost_usd
  from jobs where attempt_started_at is not null;
