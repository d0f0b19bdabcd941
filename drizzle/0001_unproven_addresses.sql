-- Whoever had an invitation link could set a password for its address. A sign-in through the identity provider or a link by email proves the address.
UPDATE `people` SET `email_verified` = 0 WHERE `id` IN (SELECT `person_id` FROM `accounts` WHERE `provider_id` = 'credential');
