"""Pointwise operators: ``ti.func`` that know an index and nothing of loops, sizes or walls."""
