"""Late-interaction retrieval: shards in fast-plaid's format, written and searched on the processor."""
