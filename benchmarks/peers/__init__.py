"""Other people's programs beside this one, in turn: how long a step takes them, and how much divergence it leaves.

    python -m benchmarks.peers                                   # 3D, all that have three dimensions
    python -m benchmarks.peers --dim 2 --resolution 512 --peer taichi-example-40 --peer warp-example
    python -m benchmarks.peers --resolution 128 --peer phiflow --rounds 5 --json phiflow.json

Everything comes from PyPI: ``pip install -r benchmarks/peers/requirements.txt``. ``registry`` says who is compared,
``turns`` how, and ``docs/performance.md`` what the numbers mean.
"""
