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
    # All that the process had at work died with it, also what a third one takes later.
    """CREATE FUNCTION note_deaths() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF is_abandoned(OLD) THEN
        DELETE FROM deaths USING inbox WHERE inbox.seq = deaths.seq AND outcome IS NOT NULL;
        INSERT INTO deaths (seq, total, alone)
            SELECT seq, begun, alone + CASE count(*) OVER () WHEN 1 THEN 1 ELSE 0 END
            FROM (
                SELECT inbox.seq, attempts - excused AS begun, coalesce(deaths.alone, 0) AS alone
                FROM inbox JOIN threads ON threads.id = inbox.thread LEFT JOIN deaths USING (seq)
                WHERE threads.owner = OLD.owner AND outcome IS NULL
                    AND attempts - excused > coalesce(total, 0)) AS cut_off
            ON CONFLICT (seq) DO UPDATE SET total = excluded.total, alone = excluded.alone;
    END IF;
    RETURN NEW;
END $$""",
    # The condition leaves out the leases of a gateway that is alone, which expire.
    """CREATE TRIGGER taken_over BEFORE UPDATE OF owner ON threads FOR EACH ROW
        WHEN (OLD.expires_at >= 5e17 AND OLD.owner IS NOT NULL AND NEW.owner IS NOT NULL
            AND NEW.owner <> OLD.owner)
        EXECUTE FUNCTION note_deaths()""",
)
