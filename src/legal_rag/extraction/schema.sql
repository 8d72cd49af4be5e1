CREATE TABLE IF NOT EXISTS recipes (
    recipe_key TEXT PRIMARY KEY, schema_name TEXT NOT NULL, schema_version TEXT NOT NULL, model_id TEXT NOT NULL,
    passes INTEGER NOT NULL, prompt_hash TEXT NOT NULL, max_char_buffer INTEGER NOT NULL
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS results (
    text_hash TEXT NOT NULL, recipe_key TEXT NOT NULL, result BLOB NOT NULL, PRIMARY KEY (text_hash, recipe_key)
);
CREATE TABLE IF NOT EXISTS held (
    doc_id TEXT PRIMARY KEY, content_hash TEXT NOT NULL, text_hash TEXT NOT NULL, recipe_key TEXT NOT NULL
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS held_by_text ON held (text_hash, recipe_key);
CREATE TABLE IF NOT EXISTS terms (
    term TEXT NOT NULL, doc_id TEXT NOT NULL, class TEXT NOT NULL, PRIMARY KEY (term, doc_id, class)
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS terms_by_document ON terms (doc_id);
-- The words of entities; `numbers` are positions in the document's entities.
CREATE TABLE IF NOT EXISTS worded (
    document_key INTEGER PRIMARY KEY, doc_id TEXT NOT NULL UNIQUE, words TEXT NOT NULL
);
CREATE TABLE IF NOT EXISTS words (
    word TEXT NOT NULL, document_key INTEGER NOT NULL, numbers TEXT NOT NULL, PRIMARY KEY (word, document_key)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS made_by (schema_name TEXT NOT NULL, model_id TEXT NOT NULL);
