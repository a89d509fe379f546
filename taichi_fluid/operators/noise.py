"""Noise that is the same on every arch: a hash of integer lattice points, smoothly interpolated.

Taichi's own ``ti.random`` ignores the seed on Vulkan and Metal.
"""

from .._ti import impl, local, subscript, ti, traced


@traced
def _wrapped_product(a, b):
    """The last 32 bits of a product; ``ti.init(debug=True)`` would print a line at each one that has more."""
    if impl.current_cfg().debug:
        return ti.cast(ti.cast(a, ti.u64) * ti.cast(b, ti.u64), ti.u32)
    return a * b


@traced
def hash_01(I):
    """A number in [0, 1) for an integer lattice point."""
    h = ti.cast(-1640531527, ti.u32)  # the golden ratio; below, MurmurHash3's mixing, as i32 literals
    for axis in range(I.n):
        h = h ^ ti.cast(subscript(I, axis), ti.u32)
        for factor, shift in ((-2048144789, 13), (-1028477387, 16)):
            h = local(_wrapped_product(h, ti.cast(factor, ti.u32)))
            h = h ^ (h >> shift)
    return ti.cast(h >> 8, ti.f32) * ti.cast(1.0 / 16777216.0, ti.f32)


@ti.func
def value_noise(x):
    """Noise in [0, 1) with features of size 1, its mean 1/2."""
    corner = ti.cast(ti.floor(x), ti.i32)
    f = x - ti.floor(x)
    f = f * f * (ti.f32(3.0) - ti.f32(2.0) * f)
    total = ti.f32(0.0)
    for vertex in ti.static(range(2**x.n)):
        I = corner
        w = ti.f32(1.0)
        for axis in ti.static(range(x.n)):
            if ti.static((vertex >> axis) & 1):
                I[axis] += ti.i32(1)
                w *= f[axis]
            else:
                w *= ti.f32(1.0) - f[axis]
        total += w * hash_01(I)
    return total
