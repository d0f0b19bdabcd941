ALTER TABLE `regrades` RENAME COLUMN `not_judged` TO `failed`;
