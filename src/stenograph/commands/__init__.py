"""One file a command: what `cli` calls, with its imports."""
