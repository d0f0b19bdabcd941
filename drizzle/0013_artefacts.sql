CREATE TABLE `artefacts` (
	`org_id` text NOT NULL,
	`run_id` text NOT NULL,
	`attempt` integer NOT NULL,
	`name` text NOT NULL,
	`data` blob NOT NULL,
	PRIMARY KEY(`run_id`, `attempt`, `name`),
	FOREIGN KEY (`org_id`,`run_id`) REFERENCES `runs`(`org_id`,`id`) ON UPDATE no action ON DELETE no action,
	CONSTRAINT "artefacts_data" CHECK(length("artefacts"."data") between 1 and 524288)
) STRICT;
