"""The table of the keys of sealed bodies, and the operations of `apply` that know it.

The constant is a step of the migrations, and as every released step never edited.
"""

from __future__ import annotations

from typing import Final

_TABLES = (
    "ALTER TABLE threads ADD COLUMN off_record boolean NOT NULL DEFAULT false",
    "ALTER TABLE inbox ADD COLUMN seals boolean NOT NULL DEFAULT false",
    "CREATE INDEX inbox_seals ON inbox(thread) WHERE seals AND outcome IS NULL",
    # Not in the write-ahead log, so not in its archive, on replicas or in base backups either.
    """CREATE UNLOGGED TABLE seal_keys (
        name text COLLATE "C" PRIMARY KEY,
        thread bigint NOT NULL REFERENCES threads(id),
        key bytea NOT NULL
    )""",
    """UPDATE threads SET off_record = true FROM (
            SELECT DISTINCT ON (thread) thread, body FROM log WHERE kind = 'session' ORDER BY thread, id DESC
        ) AS newest
        WHERE newest.thread = threads.id AND body_json(newest.body)->>'mode' = 'otr'""",
    """CREATE FUNCTION put_seal_key(of_message text, of_thread bigint, in_base64 text) RETURNS void
    LANGUAGE plpgsql AS $$
    BEGIN
        IF in_base64 IS NULL THEN RETURN; END IF;
        INSERT INTO seal_keys (name, thread, key) VALUES (of_message, of_thread, decode(in_base64, 'base64'))
            ON CONFLICT (name) DO UPDATE SET key = excluded.key;
    END $$""",
    # A deleted row stays in its file until another one takes its place; an empty table gets a new file.
    """CREATE FUNCTION overwrite_seal_keys() RETURNS void LANGUAGE plpgsql AS $$
    BEGIN
        LOCK TABLE seal_keys IN ACCESS EXCLUSIVE MODE NOWAIT;
        IF NOT EXISTS (SELECT 1 FROM seal_keys) THEN TRUNCATE seal_keys; END IF;
    EXCEPTION WHEN lock_not_available THEN
        RETURN;
    END $$""",
)

_ACCEPT = """
CREATE OR REPLACE FUNCTION op_accept(op jsonb) RETURNS jsonb LANGUAGE plpgsql AS $$
DECLARE
    found_seq bigint; found_message text; of_thread bigint; waiting bigint; begins integer; off boolean;
BEGIN
    LOOP
        SELECT seq, message_id INTO found_seq, found_message FROM inbox WHERE dedupe_key = op->>'key';
        IF FOUND THEN
            RETURN jsonb_build_object('r', jsonb_build_array(found_seq, found_message, true, false));
        END IF;
        SELECT id, off_record INTO of_thread, off FROM threads WHERE key = op->>'thread';
        -- No more are counted than matter.
        SELECT count(*) INTO waiting FROM (
            SELECT 1 FROM inbox WHERE thread = of_thread AND outcome IS NULL
            LIMIT coalesce((op->>'limit')::bigint, 1)) AS open;
        IF waiting >= (op->>'limit')::bigint THEN RETURN '{"r": null}'; END IF;
        -- An older program knows no seals, and its operations do not name them.
        IF op->'sealed_by' = 'null' AND (off OR EXISTS (
                SELECT 1 FROM inbox WHERE thread = of_thread AND outcome IS NULL AND seals)) THEN
            RETURN '{"e": "seal"}';
        END IF;
        begins := CASE WHEN (op->>'begin')::boolean AND waiting = 0 THEN 1 ELSE 0 END;
        INSERT INTO inbox (dedupe_key, thread, message_id, kind, body, received_at, attempts,
                seals)
            VALUES (op->>'key', of_thread, op->>'message', op->>'kind', op->>'body', (op->>'at')::float8,
                begins, coalesce((op->>'seals')::boolean, false))
            ON CONFLICT (dedupe_key) DO NOTHING RETURNING seq INTO found_seq;
        -- Where it conflicts, another process has accepted it under another thread: look again.
        IF FOUND THEN
            PERFORM put_seal_key(op->>'message', of_thread, op->>'sealed_by');
            RETURN jsonb_build_object('r', jsonb_build_array(found_seq, op->>'message', false, begins = 1));
        END IF;
    END LOOP;
END $$"""

_COMMIT = """
CREATE OR REPLACE FUNCTION op_commit(op jsonb) RETURNS jsonb LANGUAGE plpgsql AS $$
DECLARE
    of_thread bigint := leased(op); one jsonb; records bigint[]; replies bigint[];
BEGIN
    IF of_thread IS NULL THEN RETURN '{"e": "fence_lost"}'; END IF;
    FOR one IN SELECT value FROM jsonb_array_elements(op->'entries') LOOP
        IF NOT EXISTS (SELECT 1 FROM inbox
                WHERE seq = (one->>0)::bigint AND thread = of_thread AND outcome IS NULL) THEN
            RETURN jsonb_build_object('e', 'not_open', 'seq', one->0);
        END IF;
    END LOOP;
    FOR one IN SELECT value FROM jsonb_array_elements(op->'states') LOOP
        IF NOT state_is(one) THEN
            RETURN jsonb_build_object('e', 'state_changed', 'graph', one->>'graph');
        END IF;
    END LOOP;
    FOR one IN SELECT value FROM jsonb_array_elements(op->'entries') LOOP
        UPDATE inbox SET outcome = op->>'outcome', finished_at = (op->>'at')::float8,
                body = coalesce(one->>1, body)
            WHERE seq = (one->>0)::bigint;
    END LOOP;
    records := add_records(of_thread, op->'records');
    replies := add_replies(of_thread, coalesce(records[array_upper(records, 1)], 0), op->'outbox');
    IF EXISTS (SELECT 1 FROM seal_keys) THEN
        DELETE FROM seal_keys USING inbox, jsonb_array_elements(op->'entries') AS ended
            WHERE inbox.seq = (ended->>0)::bigint AND seal_keys.name = inbox.message_id;
    END IF;
    PERFORM put_seal_key(op->>'sealed_as', of_thread, op->>'sealed_by');
    IF op->>'mode' IS NOT NULL THEN
        UPDATE threads SET off_record = (op->>'mode' = 'otr') WHERE id = of_thread;
    END IF;
    IF op->>'forget' <> '' THEN
        DELETE FROM seal_keys USING interactions
            WHERE seal_keys.name = interactions.id AND interactions.session_id = op->>'forget';
        DELETE FROM interactions WHERE session_id = op->>'forget';
    END IF;
    PERFORM add_question(value) FROM jsonb_array_elements(op->'questions');
    PERFORM add_job(value) FROM jsonb_array_elements(op->'jobs');
    PERFORM put_state(value) FROM jsonb_array_elements(op->'states');
    RETURN jsonb_build_object('r', jsonb_build_array(to_jsonb(records), to_jsonb(replies)));
END $$"""

_REPLY = """
CREATE OR REPLACE FUNCTION op_reply(op jsonb) RETURNS jsonb LANGUAGE plpgsql AS $$
DECLARE refused jsonb := refused_reply(op); row_id bigint := (op->>'row')::bigint; gone text := '{"text":""}';
BEGIN
    IF refused IS NOT NULL THEN RETURN refused; END IF;
    UPDATE outbox SET
            state = op->>'state',
            attempts = attempts + (op->>'attempts')::integer,
            receipt = coalesce(op->>'receipt', receipt),
            error = coalesce(op->>'error', error),
            not_before = coalesce((op->>'not_before')::float8, not_before),
            sent_at = coalesce((op->>'sent_at')::float8, sent_at)
        WHERE id = row_id;
    IF op->>'state' IN ('sent', 'failed') THEN
        DELETE FROM shown WHERE key = (SELECT key FROM outbox WHERE id = row_id);
    END IF;
    IF (op->>'forget')::boolean THEN
        DELETE FROM seal_keys WHERE name = (SELECT message_id FROM outbox WHERE id = row_id);
        UPDATE log SET body = gone FROM outbox
            WHERE outbox.id = row_id AND log.thread = outbox.thread AND log.message_id = outbox.message_id;
        UPDATE outbox SET body = gone WHERE id = row_id;
    END IF;
    RETURN '{"r": null}';
END $$"""

SEAL_TABLES: Final = (*_TABLES, _ACCEPT, _COMMIT, _REPLY)
