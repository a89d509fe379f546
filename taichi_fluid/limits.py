"""What the backends are called and what they can hold: known before Taichi is imported."""

ARCHS = ("cuda", "vulkan", "metal", "opengl", "cpu")
MAX_ARRAY_BYTES = 2**31 - 4
"""Taichi computes byte offsets in 32 bits on Vulkan and Metal, and element counts in 32 bits everywhere."""
