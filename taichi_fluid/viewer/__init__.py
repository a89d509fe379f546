"""Fronts: what a person sees of a run. The headless recorder stands here; the window will take the seat beside it."""
