"""A reply's row may begin in state sent. A step of the migrations, never edited once it is released."""

from __future__ import annotations

from typing import Final

REPLY_STATES: Final = (
    """CREATE OR REPLACE FUNCTION add_replies(of_thread bigint, shows bigint, replies jsonb) RETURNS bigint[]
LANGUAGE plpgsql AS $$
DECLARE one jsonb; is_sent boolean; new_id bigint; ids bigint[] := '{}';
BEGIN
    FOR one IN SELECT value FROM jsonb_array_elements(replies) LOOP
        SELECT id INTO new_id FROM outbox WHERE key = one->>0;
        IF NOT FOUND THEN
            -- A process of the release before says nothing of it.
            is_sent := coalesce((one->>5)::boolean, false);
            INSERT INTO outbox
                    (key, thread, message_id, entry_id, body, created_at, state, attempts, receipt, sent_at)
                VALUES (one->>0, of_thread, one->>1, shows, one->>2, (one->>3)::float8,
                    CASE WHEN is_sent THEN 'sent' WHEN (one->>4)::boolean THEN 'sending' ELSE 'ready' END,
                    CASE WHEN (one->>4)::boolean THEN 1 ELSE 0 END,
                    CASE WHEN is_sent THEN shows::text ELSE '' END,
                    CASE WHEN is_sent THEN (one->>3)::float8 END)
                RETURNING id INTO new_id;
        END IF;
        ids := ids || new_id;
    END LOOP;
    RETURN ids;
END $$""",
)
