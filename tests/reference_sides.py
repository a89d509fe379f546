"""The elliptic problem with any mixture of sides once more, in SciPy float64 and without a line of the engine.

What stands on an axis is written as two letters, lower side first: ``c`` closed, ``o`` open (the value 0 is held one cell
centre beyond the side), ``p`` periodic on both.
"""

import numpy as np
from reference import face_shape, take
from scipy import sparse
from scipy.fft import dct, dst, fft, idct, idst, ifft
from scipy.sparse.csgraph import connected_components
from scipy.sparse.linalg import spsolve

AXES = ("cc", "oo", "co", "oc", "pp")


def sides_of(letters):
    """The engine's ``BoundaryCoefficients`` of these letters."""
    from taichi_fluid.boundaries.coefficients import BoundaryCoefficients

    return BoundaryCoefficients(
        box=tuple(float(c == "o") for pair in letters for c in pair), periodic=[p == "pp" for p in letters]
    )


def all_open(shape):
    """Every face open: one array per axis, ``n + 1`` values along it."""
    return [np.ones(face_shape(shape, axis)) for axis in range(len(shape))]


def without_sides(faces, letters):
    """The same with everything closed that a closed side closes."""
    faces = [f.copy() for f in faces]
    for axis, pair in enumerate(letters):
        for end, part in ((0, slice(0, 1)), (1, slice(-1, None))):
            if pair[end] == "c":
                take(faces[axis], axis, part)[...] = 0
    return faces


def matrix(letters, faces):
    """A of  sum over faces of open · (p - p_neighbour),  as a sparse matrix over all cells."""
    shape = tuple(n - (axis == 0) for axis, n in enumerate(faces[0].shape))
    cell = np.arange(np.prod(shape)).reshape(shape)
    rows, columns, values = [], [], []

    def couple(one, two, weight):
        one, two, weight = one.ravel(), two.ravel(), weight.ravel()
        rows.extend([one, two, one, two])
        columns.extend([one, two, two, one])
        values.extend([weight, weight, -weight, -weight])

    def hold(one, weight):
        rows.append(one.ravel())
        columns.append(one.ravel())
        values.append(weight.ravel())

    for axis, pair in enumerate(letters):
        open, n = faces[axis], shape[axis]
        first, last = slice(0, 1), slice(-1, None)
        couple(take(cell, axis, slice(0, -1)), take(cell, axis, slice(1, None)), take(open, axis, slice(1, -1)))
        if pair == "pp":
            if n > 1:
                couple(take(cell, axis, last), take(cell, axis, first), take(open, axis, first))
            continue
        for end, part in ((0, first), (1, last)):
            if pair[end] == "o":
                hold(take(cell, axis, part), take(open, axis, part))
    rows, columns, values = (np.concatenate(parts) for parts in (rows, columns, values))
    return sparse.coo_matrix((values, (rows, columns)), shape=(cell.size, cell.size)).tocsr()


def box_matrix(shape, letters):
    """A of a box without solids."""
    return matrix(letters, all_open(shape))


def regions(a):
    """Label of each cell's region, and per region whether its pressure is free up to a constant; -1 where no face is open."""
    diagonal = a.diagonal()
    count, label = connected_components(a - sparse.diags(diagonal), directed=False)
    held = np.bincount(label, weights=np.asarray(a.sum(axis=1)).ravel(), minlength=count) > 1e-9
    used = np.bincount(label, weights=diagonal, minlength=count) > 0
    renamed = np.where(used, np.cumsum(used) - 1, -1)
    return renamed[label], ~held[used]


def without_means(values, label, free):
    """``values`` (flat) without its mean in every free region, 0 where nothing is solved for."""
    out = np.where(label >= 0, values, 0.0)
    used, count = label >= 0, len(free)
    if count:
        sums = np.bincount(label[used], weights=out[used], minlength=count)
        means = np.where(free, sums / np.bincount(label[used], minlength=count), 0.0)
        out[used] -= means[label[used]]
    return out


def solve_sparse(a, rhs):
    """Exact solution, flat, of what can be balanced: without a mean in any free region."""
    label, free = regions(a)
    rhs = without_means(np.ravel(rhs), label, free)
    # In a free region one value is given; the mean is taken out afterwards.
    first = np.unique(label, return_index=True)
    pinned = {int(cell) for name, cell in zip(*first, strict=True) if name >= 0 and free[name]}
    kept = np.array([c for c in np.flatnonzero(label >= 0) if c not in pinned], dtype=int)
    out = np.zeros(rhs.size)
    if len(kept):
        out[kept] = spsolve(a[kept][:, kept].tocsc(), rhs[kept])
    return without_means(out, label, free)


def _eigenvalues(pair, n):
    k = np.arange(n)
    if pair == "pp":
        return 2 - 2 * np.cos(2 * np.pi * k / n)
    if pair == "cc":
        return 2 - 2 * np.cos(np.pi * k / n)
    return 2 - 2 * np.cos(np.pi * (k + 1) / (n + 1))


def _one_side_open(pair, n):
    """Eigenvalues and vectors of an axis with one closed and one open side, which has no transform in SciPy."""
    operator = 2 * np.eye(n) - np.eye(n, k=1) - np.eye(n, k=-1)
    closed = 0 if pair == "co" else -1
    operator[closed, closed] -= 1
    return np.linalg.eigh(operator)


def solve_box(rhs, letters):
    """Exact solution in a box without solids, by a Fourier, cosine or sine transform along each axis."""
    modes, total = np.asarray(rhs, complex), 0.0
    back = []
    for axis, pair in enumerate(letters):
        n = rhs.shape[axis]
        if pair in ("co", "oc"):
            values, vectors = _one_side_open(pair, n)
            modes = np.moveaxis(np.tensordot(vectors.T, modes, (1, axis)), 0, axis)
            back.append(lambda x, axis=axis, v=vectors: np.moveaxis(np.tensordot(v, x, (1, axis)), 0, axis))
        else:
            values = _eigenvalues(pair, n)
            there, again, kind = {"pp": (fft, ifft, None), "cc": (dct, idct, 2), "oo": (dst, idst, 1)}[pair]
            options = {"axis": axis} if kind is None else {"axis": axis, "type": kind}
            modes = there(modes, **options)
            back.append(lambda x, again=again, options=options: again(x, **options))
        total = total + values.reshape([-1 if a == axis else 1 for a in range(rhs.ndim)])
    total = np.broadcast_to(total, rhs.shape).copy()
    null = total < 1e-12
    total[null], modes[null] = 1.0, 0.0
    modes = modes / total
    for transform in back:
        modes = transform(modes)
    return modes.real


def random_flow(shape, letters, seed=0):
    """White noise on all faces that a side leaves free, 0 on closed sides, the same on both ends of a periodic axis."""
    rng = np.random.default_rng(seed)
    faces = without_sides([rng.standard_normal(face_shape(shape, axis)) for axis in range(len(shape))], letters)
    for axis, pair in enumerate(letters):
        if pair == "pp":
            take(faces[axis], axis, slice(-1, None))[...] = take(faces[axis], axis, slice(0, 1))
    return [f.astype(np.float32).astype(np.float64) for f in faces]
