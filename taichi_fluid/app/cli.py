"""The process of the command line, ``taichi-fluid`` or ``python -m taichi_fluid``; the commands stand in ``commands``.

What is imported before it listens to Ctrl-C is little: until then Python ends in its own way.
"""

import sys

try:
    from .interrupts import end_at_once
except KeyboardInterrupt:
    print("taichi-fluid: stopped by the keyboard.", file=sys.stderr)
    raise SystemExit(130) from None


def main(*arguments: object, **options: object) -> None:
    """Run the command line; arguments and options are those of ``click.Command.main``."""
    end_at_once()
    from .streams import unfailing

    with unfailing():
        from .commands import main as command

        command(*arguments, **options)
