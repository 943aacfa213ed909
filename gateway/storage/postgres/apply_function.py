"""`parlour.apply(ops)`: the frequent writes of a gateway as one function in the database.

One round trip carries a batch of operations and brings one result for each: `{"r": value}`, or `{"e": code}`
for a refusal, which has changed nothing. Each operation makes all its checks before its first write, so that
none needs a savepoint. The threads that a batch names are locked first, ordered by their keys: two processes
cannot wait for each other, and what is written to one thread is committed in the order of its ids.

`operations.py` makes the operations and reads the results. A released function is never edited: a change is a
new migration step that replaces it.
"""

from __future__ import annotations

from typing import Final

STATE_CHANGED: Final = "PL001"
"""The code of the error that undoes a batch because another process has written a state since the check."""

# The id of the thread if the lease of the operation is current.
_LEASED = """
CREATE FUNCTION leased(op jsonb) RETURNS bigint LANGUAGE sql STABLE AS $$
    SELECT id FROM threads
    WHERE key = op->>'thread' AND fence = (op->>'fence')::bigint AND owner = op->>'owner'
$$"""

_ACCEPT = """
CREATE FUNCTION op_accept(op jsonb) RETURNS jsonb LANGUAGE plpgsql AS $$
DECLARE
    found_seq bigint; found_message text; of_thread bigint; waiting bigint; begins integer;
BEGIN
    LOOP
        SELECT seq, message_id INTO found_seq, found_message FROM inbox WHERE dedupe_key = op->>'key';
        IF FOUND THEN
            RETURN jsonb_build_object('r', jsonb_build_array(found_seq, found_message, true, false));
        END IF;
        SELECT id INTO of_thread FROM threads WHERE key = op->>'thread';
        -- No more are counted than matter.
        SELECT count(*) INTO waiting FROM (
            SELECT 1 FROM inbox WHERE thread = of_thread AND outcome IS NULL
            LIMIT coalesce((op->>'limit')::bigint, 1)) AS open;
        IF waiting >= (op->>'limit')::bigint THEN RETURN '{"r": null}'; END IF;
        begins := CASE WHEN (op->>'begin')::boolean AND waiting = 0 THEN 1 ELSE 0 END;
        INSERT INTO inbox (dedupe_key, thread, message_id, kind, body, received_at, attempts)
            VALUES (op->>'key', of_thread, op->>'message', op->>'kind', op->>'body', (op->>'at')::float8,
                begins)
            ON CONFLICT (dedupe_key) DO NOTHING RETURNING seq INTO found_seq;
        -- Where it conflicts, another process has accepted it under another thread: look again.
        IF FOUND THEN
            RETURN jsonb_build_object('r', jsonb_build_array(found_seq, op->>'message', false, begins = 1));
        END IF;
    END LOOP;
END $$"""

_ATTEMPTS = (
    """
CREATE FUNCTION op_start(op jsonb) RETURNS jsonb LANGUAGE plpgsql AS $$
DECLARE of_thread bigint := leased(op); counted integer;
BEGIN
    IF of_thread IS NULL THEN RETURN '{"e": "fence_lost"}'; END IF;
    UPDATE inbox SET attempts = attempts + 1
        WHERE seq = (op->>'seq')::bigint AND thread = of_thread AND outcome IS NULL
        RETURNING attempts INTO counted;
    IF NOT FOUND THEN RETURN jsonb_build_object('e', 'not_open', 'seq', op->'seq'); END IF;
    RETURN jsonb_build_object('r', counted);
END $$""",
    """
CREATE FUNCTION op_discount(op jsonb) RETURNS jsonb LANGUAGE plpgsql AS $$
DECLARE of_thread bigint := leased(op);
BEGIN
    IF of_thread IS NULL THEN RETURN '{"e": "fence_lost"}'; END IF;
    UPDATE inbox SET excused = least(attempts, excused + 1)
        WHERE seq = (op->>'seq')::bigint AND thread = of_thread AND outcome IS NULL;
    IF NOT FOUND THEN RETURN jsonb_build_object('e', 'not_open', 'seq', op->'seq'); END IF;
    RETURN '{"r": null}';
END $$""",
    """
CREATE FUNCTION op_cancel(op jsonb) RETURNS jsonb LANGUAGE plpgsql AS $$
DECLARE marked bigint;
BEGIN
    UPDATE inbox SET cancelled = true
        WHERE thread = (SELECT id FROM threads WHERE key = op->>'thread') AND outcome IS NULL
            AND NOT cancelled AND seq BETWEEN (op->>'first')::bigint AND (op->>'last')::bigint;
    GET DIAGNOSTICS marked = ROW_COUNT;
    RETURN jsonb_build_object('r', marked);
END $$""",
    """
CREATE FUNCTION op_join(op jsonb) RETURNS jsonb LANGUAGE plpgsql AS $$
DECLARE
    of_thread bigint := leased(op); turn bigint := (op->>'turn')::bigint; joining bigint;
BEGIN
    IF of_thread IS NULL THEN RETURN '{"e": "fence_lost"}'; END IF;
    IF NOT EXISTS (SELECT 1 FROM inbox WHERE seq = turn AND thread = of_thread AND outcome IS NULL) THEN
        RETURN jsonb_build_object('e', 'no_turn', 'seq', turn);
    END IF;
    FOR joining IN SELECT value::bigint FROM jsonb_array_elements_text(op->'seqs') LOOP
        IF NOT EXISTS (SELECT 1 FROM inbox WHERE seq = joining AND seq > turn AND thread = of_thread
                AND outcome IS NULL AND joined IN (0, turn)) THEN
            RETURN jsonb_build_object('e', 'cannot_join', 'seq', joining);
        END IF;
    END LOOP;
    UPDATE inbox SET joined = turn,
            steered = CASE joined WHEN turn THEN steered ELSE (op->>'steered')::boolean END
        WHERE seq IN (SELECT value::bigint FROM jsonb_array_elements_text(op->'seqs'));
    RETURN '{"r": null}';
END $$""",
)

_LEASES = (
    """
CREATE FUNCTION op_acquire(op jsonb) RETURNS jsonb LANGUAGE plpgsql AS $$
DECLARE next_fence bigint;
BEGIN
    UPDATE threads SET fence = fence + 1, owner = op->>'owner', expires_at = (op->>'until')::float8
        WHERE key = op->>'thread'
            AND (owner IS NULL OR owner = op->>'owner' OR expires_at <= (op->>'now')::float8)
        RETURNING fence INTO next_fence;
    RETURN jsonb_build_object('r', next_fence);
END $$""",
    """
CREATE FUNCTION op_renew(op jsonb) RETURNS jsonb LANGUAGE plpgsql AS $$
BEGIN
    UPDATE threads SET expires_at = (op->>'until')::float8 WHERE id = leased(op);
    IF NOT FOUND THEN RETURN '{"e": "fence_lost"}'; END IF;
    RETURN '{"r": null}';
END $$""",
    """
CREATE FUNCTION op_release(op jsonb) RETURNS jsonb LANGUAGE plpgsql AS $$
BEGIN
    UPDATE threads SET owner = NULL WHERE id = leased(op);
    RETURN '{"r": null}';
END $$""",
)

# The ids of the records, which are added in their order; the id of the known user record of a message.
_ADD_RECORDS = """
CREATE FUNCTION add_records(of_thread bigint, records jsonb) RETURNS bigint[] LANGUAGE plpgsql AS $$
DECLARE one jsonb; new_id bigint; ids bigint[] := '{}';
BEGIN
    FOR one IN SELECT value FROM jsonb_array_elements(records) LOOP
        new_id := NULL;
        IF one->>0 = 'user' THEN
            SELECT id INTO new_id FROM log
                WHERE thread = of_thread AND message_id = one->>2 AND kind = 'user';
        END IF;
        IF new_id IS NULL THEN
            INSERT INTO log (thread, kind, session_id, message_id, body, at)
                VALUES (of_thread, one->>0, one->>1, one->>2, one->>3, (one->>4)::float8)
                RETURNING id INTO new_id;
        END IF;
        ids := ids || new_id;
    END LOOP;
    RETURN ids;
END $$"""

_APPEND = """
CREATE FUNCTION op_append(op jsonb) RETURNS jsonb LANGUAGE plpgsql AS $$
DECLARE of_thread bigint := leased(op);
BEGIN
    IF of_thread IS NULL THEN RETURN '{"e": "fence_lost"}'; END IF;
    IF op->'attempt' <> 'null' THEN
        UPDATE inbox SET attempts = attempts + 1
            WHERE seq = (op->>'attempt')::bigint AND thread = of_thread AND outcome IS NULL;
        IF NOT FOUND THEN RETURN jsonb_build_object('e', 'not_open', 'seq', op->'attempt'); END IF;
    END IF;
    RETURN jsonb_build_object('r', to_jsonb(add_records(of_thread, op->'records')));
END $$"""

_ADD_REPLIES = """
CREATE FUNCTION add_replies(of_thread bigint, shows bigint, replies jsonb) RETURNS bigint[]
LANGUAGE plpgsql AS $$
DECLARE one jsonb; new_id bigint; ids bigint[] := '{}';
BEGIN
    FOR one IN SELECT value FROM jsonb_array_elements(replies) LOOP
        SELECT id INTO new_id FROM outbox WHERE key = one->>0;
        IF NOT FOUND THEN
            INSERT INTO outbox (key, thread, message_id, entry_id, body, created_at, state, attempts)
                VALUES (one->>0, of_thread, one->>1, shows, one->>2, (one->>3)::float8,
                    CASE WHEN (one->>4)::boolean THEN 'sending' ELSE 'ready' END,
                    CASE WHEN (one->>4)::boolean THEN 1 ELSE 0 END)
                RETURNING id INTO new_id;
        END IF;
        ids := ids || new_id;
    END LOOP;
    RETURN ids;
END $$"""

_ADD_QUESTION = """
CREATE FUNCTION add_question(one jsonb) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE of_thread bigint;
BEGIN
    IF EXISTS (SELECT 1 FROM interactions WHERE id = one->>'id') THEN RETURN false; END IF;
    INSERT INTO threads (key) SELECT one->>'thread'
        WHERE NOT EXISTS (SELECT 1 FROM threads WHERE key = one->>'thread') ON CONFLICT DO NOTHING;
    SELECT id INTO of_thread FROM threads WHERE key = one->>'thread';
    INSERT INTO interactions (id, thread, session_id, kind, options, allowed_users, action_hash, created_at,
            expires_at, body)
        VALUES (one->>'id', of_thread, one->>'session', one->>'kind', one->>'options', one->>'users',
            one->>'hash', (one->>'created')::float8, (one->>'expires')::float8, one->>'body')
        ON CONFLICT (id) DO NOTHING;
    RETURN FOUND;
END $$"""

_ADD_JOB = """
CREATE FUNCTION add_job(one jsonb) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    DELETE FROM jobs WHERE kind = one->>'kind' AND key = one->>'key' AND state = 'dead';
    INSERT INTO jobs (kind, key, due, ready, thread, owner, body)
        SELECT one->>'kind', one->>'key', (one->>'due')::float8, (one->>'due')::float8, one->>'thread',
            one->>'owner', one->>'body'
        WHERE NOT EXISTS (SELECT 1 FROM jobs WHERE kind = one->>'kind' AND key = one->>'key')
        ON CONFLICT (kind, key) DO NOTHING;
END $$"""

# Raises what undoes the whole batch where another process has written the state since the check.
_STATES = (
    """
CREATE FUNCTION state_is(one jsonb) RETURNS boolean LANGUAGE sql AS $$
    SELECT coalesce((SELECT revision FROM states WHERE owner = one->>'owner' AND graph = one->>'graph'), 0)
        = (one->>'revision')::bigint
$$""",
    """
CREATE FUNCTION put_state(one jsonb) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    IF one->>'revision' = '0' THEN
        INSERT INTO states (owner, graph, revision, body)
            VALUES (one->>'owner', one->>'graph', 1, one->>'body') ON CONFLICT DO NOTHING;
    ELSE
        UPDATE states SET revision = revision + 1, body = one->>'body'
            WHERE owner = one->>'owner' AND graph = one->>'graph' AND revision = (one->>'revision')::bigint;
    END IF;
    IF NOT FOUND THEN RAISE EXCEPTION USING ERRCODE = 'PL001', MESSAGE = one->>'graph'; END IF;
END $$""",
)

_COMMIT = """
CREATE FUNCTION op_commit(op jsonb) RETURNS jsonb LANGUAGE plpgsql AS $$
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
    IF op->>'forget' <> '' THEN DELETE FROM interactions WHERE session_id = op->>'forget'; END IF;
    PERFORM add_question(value) FROM jsonb_array_elements(op->'questions');
    PERFORM add_job(value) FROM jsonb_array_elements(op->'jobs');
    PERFORM put_state(value) FROM jsonb_array_elements(op->'states');
    RETURN jsonb_build_object('r', jsonb_build_array(to_jsonb(records), to_jsonb(replies)));
END $$"""

# The code of the refusal, or null: the row is open, and the lease is that of its thread or account.
_REFUSED = """
CREATE FUNCTION refused_reply(op jsonb) RETURNS jsonb LANGUAGE plpgsql AS $$
DECLARE of_row text;
BEGIN
    IF leased(op) IS NULL THEN RETURN '{"e": "fence_lost"}'; END IF;
    SELECT key INTO of_row FROM threads WHERE id =
        (SELECT thread FROM outbox WHERE id = (op->>'row')::bigint AND state IN ('ready', 'sending'));
    IF NOT FOUND THEN RETURN '{"e": "row_done"}'; END IF;
    IF NOT starts_with(of_row || ':', (op->>'thread') || ':') THEN RETURN '{"e": "foreign_row"}'; END IF;
    RETURN NULL;
END $$"""

_REPLY = """
CREATE FUNCTION op_reply(op jsonb) RETURNS jsonb LANGUAGE plpgsql AS $$
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
        UPDATE log SET body = gone FROM outbox
            WHERE outbox.id = row_id AND log.thread = outbox.thread AND log.message_id = outbox.message_id;
        UPDATE outbox SET body = gone WHERE id = row_id;
    END IF;
    RETURN '{"r": null}';
END $$"""

_PART = """
CREATE FUNCTION op_part(op jsonb) RETURNS jsonb LANGUAGE plpgsql AS $$
BEGIN
    IF leased(op) IS NULL THEN RETURN '{"e": "fence_lost"}'; END IF;
    INSERT INTO shown (key, part, native_id, final, at)
        VALUES (op->>'key', (op->>'part')::bigint, op->>'native', (op->>'final')::boolean,
            (op->>'at')::float8)
        ON CONFLICT (key, part)
            DO UPDATE SET native_id = excluded.native_id, final = excluded.final, at = excluded.at;
    RETURN '{"r": null}';
END $$"""

_APPLY = """
CREATE FUNCTION apply(ops jsonb) RETURNS jsonb LANGUAGE plpgsql AS $$
DECLARE
    op jsonb; result jsonb; results jsonb[] := '{}'; keys text[];
BEGIN
    SELECT array_agg(DISTINCT value->>'thread') INTO keys FROM jsonb_array_elements(ops);
    INSERT INTO threads (key)
        SELECT key FROM (
            SELECT DISTINCT value->>'thread' COLLATE "C" AS key FROM jsonb_array_elements(ops)
            WHERE value->>'op' IN ('accept', 'acquire')) AS named
        WHERE NOT EXISTS (SELECT 1 FROM threads WHERE threads.key = named.key) ORDER BY key
        ON CONFLICT DO NOTHING;
    PERFORM 1 FROM threads WHERE key = ANY (keys) ORDER BY key FOR NO KEY UPDATE;
    FOR op IN SELECT value FROM jsonb_array_elements(ops) LOOP
        CASE op->>'op'
            WHEN 'accept' THEN result := op_accept(op);
            WHEN 'append' THEN result := op_append(op);
            WHEN 'commit' THEN result := op_commit(op);
            WHEN 'reply' THEN result := op_reply(op);
            WHEN 'part' THEN result := op_part(op);
            WHEN 'start' THEN result := op_start(op);
            WHEN 'discount' THEN result := op_discount(op);
            WHEN 'cancel' THEN result := op_cancel(op);
            WHEN 'join' THEN result := op_join(op);
            WHEN 'acquire' THEN result := op_acquire(op);
            WHEN 'renew' THEN result := op_renew(op);
            WHEN 'release' THEN result := op_release(op);
        END CASE;
        results := array_append(results, result);
    END LOOP;
    RETURN to_jsonb(results);
END $$"""

APPLY_FUNCTION = (
    _LEASED,
    _ACCEPT,
    *_ATTEMPTS,
    *_LEASES,
    _ADD_RECORDS,
    _APPEND,
    _ADD_REPLIES,
    _ADD_QUESTION,
    _ADD_JOB,
    *_STATES,
    _COMMIT,
    _REFUSED,
    _REPLY,
    _PART,
    _APPLY,
)
