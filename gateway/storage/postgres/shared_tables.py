"""What only a store of several processes needs: who has claimed a job, and how often a book was changed.

A step of the migrations, and as every released step never edited.
"""

from __future__ import annotations

from typing import Final

from gateway.storage.changes import WATCHED_KINDS
from gateway.storage.erasure import FULL_ERASURE
from gateway.storage.heartbeats import HEARTBEAT_SETTINGS

_KINDS: Final = ", ".join(f"'{kind}'" for kind in WATCHED_KINDS)

SHARED_TABLES: Final = (
    """ALTER TABLE jobs ADD COLUMN claimed_by text COLLATE "C" NOT NULL DEFAULT ''""",
    "CREATE INDEX jobs_claimed ON jobs(claimed_by) WHERE claimed",
    "CREATE TABLE revisions (book text PRIMARY KEY, n bigint NOT NULL)",
    """CREATE FUNCTION raise_revision() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO parlour.revisions AS known (book, n) VALUES (TG_ARGV[0], 1)
        ON CONFLICT (book) DO UPDATE SET n = known.n + 1;
    RETURN NULL;
END $$""",
    """CREATE TRIGGER revised AFTER INSERT OR UPDATE OR DELETE ON identities
        FOR EACH ROW EXECUTE FUNCTION raise_revision('identities')""",
    """CREATE TRIGGER revised AFTER INSERT OR DELETE ON page_people
        FOR EACH ROW EXECUTE FUNCTION raise_revision('people')""",
    """CREATE TRIGGER revised AFTER INSERT OR UPDATE OR DELETE ON page_chats
        FOR EACH ROW EXECUTE FUNCTION raise_revision('chats')""",
    # Jobs are written all the time; the conditions keep the function from being called for others.
    f"""CREATE TRIGGER watched AFTER INSERT ON jobs FOR EACH ROW WHEN (NEW.kind IN ({_KINDS}))
        EXECUTE FUNCTION raise_revision('watches')""",
    f"""CREATE TRIGGER unwatched AFTER DELETE ON jobs FOR EACH ROW WHEN (OLD.kind IN ({_KINDS}))
        EXECUTE FUNCTION raise_revision('watches')""",
    f"""CREATE TRIGGER set_otherwise AFTER UPDATE ON jobs FOR EACH ROW
        WHEN (NEW.kind = '{HEARTBEAT_SETTINGS}') EXECUTE FUNCTION raise_revision('watches')""",
    f"""CREATE TRIGGER erasure_added AFTER INSERT ON jobs FOR EACH ROW WHEN (NEW.kind = '{FULL_ERASURE}')
        EXECUTE FUNCTION raise_revision('erasures')""",
    f"""CREATE TRIGGER erasure_done AFTER DELETE ON jobs FOR EACH ROW WHEN (OLD.kind = '{FULL_ERASURE}')
        EXECUTE FUNCTION raise_revision('erasures')""",
)
