"""``taichi-fluid bench``: what a step costs on a backend, stage by stage; see docs/performance.md."""
