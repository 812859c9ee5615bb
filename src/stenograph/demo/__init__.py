"""A small agent on the bundled model, recorded, checked and shown: what `stenograph demo` runs."""
