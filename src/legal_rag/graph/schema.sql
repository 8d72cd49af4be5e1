CREATE TABLE IF NOT EXISTS texts (
    text_key INTEGER PRIMARY KEY, doc_id TEXT NOT NULL, content_hash TEXT NOT NULL, UNIQUE (doc_id, content_hash)
);
-- What edges come from: the text or the entities of a document, or an answer.
CREATE TABLE IF NOT EXISTS sources (
    source_key INTEGER PRIMARY KEY, kind TEXT NOT NULL, text_key INTEGER, answer_id TEXT UNIQUE,
    made_by TEXT NOT NULL, recorded TEXT NOT NULL, UNIQUE (text_key, kind)
);
CREATE TABLE IF NOT EXISTS nodes (
    node_key INTEGER PRIMARY KEY, key TEXT NOT NULL UNIQUE, type TEXT NOT NULL, name TEXT NOT NULL,
    cited INTEGER NOT NULL DEFAULT 0, degree INTEGER NOT NULL DEFAULT 0 -- edges that a text supports
);
CREATE INDEX IF NOT EXISTS nodes_by_cited ON nodes (type, cited DESC) WHERE cited > 0;
CREATE INDEX IF NOT EXISTS nodes_by_name ON nodes (name COLLATE NOCASE);
CREATE TABLE IF NOT EXISTS edges (
    from_key INTEGER NOT NULL, type TEXT NOT NULL, to_key INTEGER NOT NULL, source_key INTEGER NOT NULL,
    support TEXT NOT NULL, text_key INTEGER, -- of the text that supports it
    char_start INTEGER NOT NULL, char_end INTEGER NOT NULL, n INTEGER NOT NULL,
    confidence REAL NOT NULL, detail TEXT NOT NULL,
    PRIMARY KEY (from_key, type, to_key, source_key)
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS edges_to ON edges (to_key, type);
CREATE INDEX IF NOT EXISTS edges_by_source ON edges (source_key);
-- Laws that a text names by number and day, without their kind of node: 'loi 1989-07-06', 'loi 89-462'.
CREATE TABLE IF NOT EXISTS laws (
    by_day TEXT NOT NULL, numbered TEXT NOT NULL, source_key INTEGER NOT NULL,
    PRIMARY KEY (by_day, numbered, source_key)
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS laws_by_number ON laws (numbered, by_day);
CREATE INDEX IF NOT EXISTS laws_by_source ON laws (source_key);
-- Where an answer's names stand in what was read; text_key is NULL where none does.
CREATE TABLE IF NOT EXISTS mentions (
    node_key INTEGER NOT NULL, source_key INTEGER NOT NULL, text_key INTEGER,
    char_start INTEGER NOT NULL, char_end INTEGER NOT NULL, confidence REAL NOT NULL, description TEXT NOT NULL
);
CREATE INDEX IF NOT EXISTS mentions_by_node ON mentions (node_key);
CREATE INDEX IF NOT EXISTS mentions_by_source ON mentions (source_key);
CREATE TABLE IF NOT EXISTS episodes (
    episode_key INTEGER PRIMARY KEY, source_key INTEGER NOT NULL, decision TEXT NOT NULL, context TEXT NOT NULL,
    status TEXT NOT NULL, lessons TEXT NOT NULL, nodes TEXT NOT NULL -- JSON lists of texts, of node keys
);
CREATE INDEX IF NOT EXISTS episodes_by_source ON episodes (source_key);
-- An answer that repeats what a text says adds nothing to the counts.
CREATE TRIGGER IF NOT EXISTS edge_added AFTER INSERT ON edges
WHEN NEW.support = 'text' AND (SELECT answer_id IS NULL FROM sources WHERE source_key = NEW.source_key) BEGIN
    UPDATE nodes SET degree = degree + 1 WHERE node_key = NEW.from_key;
    UPDATE nodes SET degree = degree + 1, cited = cited + (NEW.type IN ('cites', 'applies'))
    WHERE node_key = NEW.to_key;
END;
CREATE TRIGGER IF NOT EXISTS edge_deleted AFTER DELETE ON edges
WHEN OLD.support = 'text' AND (SELECT answer_id IS NULL FROM sources WHERE source_key = OLD.source_key) BEGIN
    UPDATE nodes SET degree = degree - 1 WHERE node_key = OLD.from_key;
    UPDATE nodes SET degree = degree - 1, cited = cited - (OLD.type IN ('cites', 'applies'))
    WHERE node_key = OLD.to_key;
END;
