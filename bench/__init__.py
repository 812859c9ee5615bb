"""What the recorder costs, measured beside what it is compared with. `python -m bench`; how to read it: README.md."""
