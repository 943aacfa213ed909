-- Removes one person's private chat from the store, with what is kept of the person beside it.
-- Stop the gateway first. Fill in the three values, then: sqlite3 data/parlour.sqlite3 < deploy/erase-person.sql
-- The ids are those that `parlour pair` and the log show. docs/guides/deploy.md says what else to remove.

PRAGMA foreign_keys = ON;
PRAGMA secure_delete = ON;
CREATE TEMP TABLE person AS SELECT 'telegram' AS channel, 'main' AS account, '1001' AS user, '1001' AS chat;

BEGIN IMMEDIATE;
CREATE TEMP TABLE gone AS
    SELECT threads.id, threads.key FROM threads, person
    WHERE threads.key = channel || ':' || account || ':' || chat
        OR threads.key LIKE channel || ':' || account || ':' || chat || ':%';
-- The keys under which the person's things are kept. What linked chats share stays until the last is removed.
CREATE TEMP TABLE linked AS
    SELECT identities.* FROM identities, person
    WHERE identities.channel = person.channel AND identities.account = person.account
        AND identities.user = person.user;
CREATE TEMP TABLE owners AS
    SELECT channel || ':' || account || ':user:' || user AS key FROM person
    UNION SELECT person FROM linked UNION SELECT own FROM linked;
DELETE FROM identities WHERE EXISTS (SELECT 1 FROM linked
    WHERE linked.channel = identities.channel AND linked.account = identities.account
        AND linked.user = identities.user);
UPDATE identities SET came_from = '' WHERE came_from IN (SELECT key FROM owners);
DELETE FROM owners WHERE key IN (SELECT person FROM identities UNION SELECT own FROM identities);
DELETE FROM link_codes WHERE EXISTS (SELECT 1 FROM person
    WHERE person.channel = link_codes.channel AND person.account = link_codes.account
        AND person.user = link_codes.user);
DELETE FROM link_tries WHERE identity IN (SELECT channel || ':' || account || ':user:' || user FROM person);
DELETE FROM file_changes WHERE EXISTS (SELECT 1 FROM file_changes AS own
    WHERE own.owner IN (SELECT key FROM owners) AND own.root = file_changes.root AND own.path = file_changes.path);
DELETE FROM made_folders WHERE NOT EXISTS (SELECT 1 FROM file_changes
    WHERE file_changes.root = made_folders.root AND instr(file_changes.path, made_folders.path || '/') = 1);
DELETE FROM asked WHERE person IN (SELECT key FROM owners);
DELETE FROM states WHERE owner IN (SELECT key FROM owners);
DELETE FROM states WHERE owner IN (SELECT 'session:' || session_id FROM log WHERE thread IN (SELECT id FROM gone));
DELETE FROM taints WHERE session_id IN (SELECT session_id FROM log WHERE thread IN (SELECT id FROM gone));
DELETE FROM permissions WHERE thread IN (SELECT key FROM gone);
DELETE FROM shown WHERE key IN (SELECT key FROM outbox WHERE thread IN (SELECT id FROM gone));
DELETE FROM interactions WHERE thread IN (SELECT id FROM gone);
UPDATE page_chats SET name = '' WHERE thread IN (SELECT key FROM gone);
DELETE FROM feedback WHERE thread IN (SELECT key FROM gone) OR EXISTS (SELECT 1 FROM person
    WHERE person.channel = feedback.channel AND person.account = feedback.account AND person.user = feedback.user);
-- The records of crisis responses stay, without the person.
UPDATE crises SET user = NULL WHERE user IN (SELECT channel || ':' || account || ':user:' || user FROM person);
DELETE FROM outbox WHERE thread IN (SELECT id FROM gone);
-- The newest row of the log stays, emptied: its number must not be used again.
DELETE FROM log WHERE thread IN (SELECT id FROM gone) AND id < (SELECT max(id) FROM log);
UPDATE log SET kind = 'step', body = '{}' WHERE thread IN (SELECT id FROM gone);
-- The rows of the inbox stay, emptied: a message that the platform delivers once more is still recognised.
UPDATE inbox SET body = '{}', outcome = coalesce(outcome, 'cancelled'),
        finished_at = coalesce(finished_at, received_at) WHERE thread IN (SELECT id FROM gone);
DELETE FROM jobs WHERE thread IN (SELECT key FROM gone)
    OR owner IN (SELECT channel || ':' || account || ':user:' || user FROM person);
DELETE FROM speech_buffers WHERE EXISTS (SELECT 1 FROM gone WHERE instr(speech_buffers.key, gone.key) > 0);
DELETE FROM transcripts;
DELETE FROM usage WHERE EXISTS (SELECT 1 FROM person, gone
    WHERE instr(usage.scope, gone.key) > 0 OR instr(usage.scope, channel || ':' || account || ':user:' || user) > 0);
DELETE FROM usage WHERE scope IN (SELECT key FROM owners);
DELETE FROM speakers WHERE channel = 'person:' AND 'person:' || user IN (SELECT key FROM owners);
DELETE FROM speakers WHERE EXISTS (SELECT 1 FROM person
    WHERE person.channel = speakers.channel AND person.account = speakers.account AND person.user = speakers.user);
DELETE FROM pairings WHERE EXISTS (SELECT 1 FROM person
    WHERE person.channel = pairings.channel AND person.account = pairings.account AND person.user = pairings.user);
DELETE FROM pairing_requests WHERE EXISTS (SELECT 1 FROM person
    WHERE person.channel = pairing_requests.channel AND person.account = pairing_requests.account
        AND person.user = pairing_requests.user);
-- Triggers have taken the deleted words out of the index; this rewrites it without them.
INSERT INTO said (said) VALUES ('optimize');
COMMIT;
VACUUM;
PRAGMA wal_checkpoint(TRUNCATE);
