CREATE TABLE meta (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID; -- JSON: format, lineage, counts
CREATE TABLE documents (
    document_key INTEGER PRIMARY KEY, -- the store's
    id TEXT NOT NULL, content_hash TEXT NOT NULL, added INTEGER NOT NULL, removed INTEGER,
    char_count INTEGER NOT NULL, file_size INTEGER NOT NULL, doc_type TEXT NOT NULL,
    cluster INTEGER, -- none where a document has no keyword of the full build
    summary_source TEXT NOT NULL, summary TEXT NOT NULL
);
CREATE INDEX documents_by_id ON documents (id, added, removed, content_hash); -- all that a look-up by id asks for
CREATE INDEX documents_by_cluster ON documents (cluster);
CREATE INDEX documents_removed ON documents (removed) WHERE removed IS NOT NULL;
CREATE TABLE keywords (
    document_key INTEGER NOT NULL REFERENCES documents, place INTEGER NOT NULL, -- from 0, the weightiest first
    term TEXT NOT NULL, shown TEXT NOT NULL, weight REAL NOT NULL,
    PRIMARY KEY (document_key, place)
) WITHOUT ROWID;
CREATE INDEX keywords_by_shown ON keywords (shown);
CREATE TABLE postings ( -- the terms that find a document: its keywords, and the words of those that are pairs
    term TEXT NOT NULL, document_key INTEGER NOT NULL REFERENCES documents, weight REAL NOT NULL,
    PRIMARY KEY (term, document_key)
) WITHOUT ROWID;
CREATE INDEX postings_by_document ON postings (document_key);
CREATE TABLE terms (
    term TEXT PRIMARY KEY, shown TEXT NOT NULL, frequency INTEGER NOT NULL -- documents that held it at the full build
) WITHOUT ROWID;
-- A centre is numbers of four bytes, little-endian, one for each feature.
CREATE TABLE clusters (cluster INTEGER PRIMARY KEY, topic TEXT NOT NULL UNIQUE, centre BLOB NOT NULL);
CREATE TABLE features (place INTEGER PRIMARY KEY, term TEXT NOT NULL); -- what the centres' numbers stand for
CREATE TABLE totals (at_commit INTEGER PRIMARY KEY, documents INTEGER NOT NULL, chars INTEGER NOT NULL);
-- What a model says of a document beside its summary.
CREATE TABLE model_records (
    document_key INTEGER PRIMARY KEY, title TEXT NOT NULL, date TEXT NOT NULL, author TEXT NOT NULL,
    keywords TEXT NOT NULL -- a JSON list
);
CREATE INDEX model_records_by_date ON model_records (date) WHERE date <> '';
CREATE TABLE sections (
    document_key INTEGER PRIMARY KEY REFERENCES documents, made_by TEXT NOT NULL, value TEXT NOT NULL
);
