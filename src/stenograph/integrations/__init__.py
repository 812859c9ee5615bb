"""Each field system's own interface: thin rooms over the same gateway, with no recorder of their own."""
