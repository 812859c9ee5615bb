"""The laws, checked on what is there: a record and its samples, beside the engine's own log."""
