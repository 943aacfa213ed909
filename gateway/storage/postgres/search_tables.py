"""The tables of the search in what was said, and the function that reads fields of bodies.

Each constant is a step of the migrations, and as every released step never edited.
"""

from __future__ import annotations

from typing import Final

JSON_TABLES: Final = (
    # The body as JSON, to look fields up in it. Postgres refuses two escapes that JSON allows, NUL and half a
    # surrogate pair: they become the replacement character. None where the body is no JSON.
    r"""CREATE FUNCTION body_json(body text) RETURNS jsonb
        LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE AS $$
        BEGIN
            IF strpos(body, '\u') = 0 THEN
                RETURN body::jsonb;
            END IF;
            RETURN regexp_replace(body, '\\u(0000|d[89a-f][0-9a-f]{2})', '\\ufffd', 'gi')::jsonb;
        EXCEPTION WHEN data_exception THEN
            RETURN NULL;
        END $$""",
)

SEARCH_TABLES: Final = (
    "CREATE TABLE said (id bigint PRIMARY KEY, thread bigint NOT NULL, words tsvector NOT NULL)",
    "CREATE INDEX said_words ON said USING gin (words)",
    "CREATE INDEX said_thread ON said(thread)",
    # The newest record of a thread that was looked at. By thread, because only there are ids committed in
    # their order.
    "CREATE TABLE said_upto (thread bigint PRIMARY KEY, upto bigint NOT NULL)",
    """CREATE FUNCTION forget_said() RETURNS trigger LANGUAGE plpgsql AS $$
        BEGIN
            DELETE FROM said WHERE id = old.id;
            RETURN NULL;
        END $$""",
    """CREATE TRIGGER said_forget AFTER UPDATE OF body ON log
        FOR EACH ROW EXECUTE FUNCTION forget_said()""",
    "CREATE TRIGGER said_delete AFTER DELETE ON log FOR EACH ROW EXECUTE FUNCTION forget_said()",
)
