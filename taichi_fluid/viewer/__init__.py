"""Two fronts of one engine: the recorder, which needs no display, and the live window."""
