"""What a run is asked for beside its pictures: files of numbers, checkpoints; and one that goes on from a checkpoint."""

from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from ..io.files import OutputError, require_free, require_writable
from ..io.numbered import SURFACES, VOLUMES, Numbered
from ..io.outputs import Outputs, require_apart, require_surfaces
from ..io.rhythm import rhythm_of
from ..io.series import require_series
from ..io.stored import before, read
from ..scene import Scene, SceneError
from .measuring import require_plot

if TYPE_CHECKING:
    from ..simulation import Simulation

CHECKPOINT = ".checkpoint"
"""Suffix of one whose name nobody gave."""


class Numbers(NamedTuple):
    """Files of numbers that a run is asked for.

    Attributes:
        json: Of the run as a whole.
        probes: What the scene's probes measure, a line for each time.
        plot: A picture of that.
        overwrite: Whether files that are there already are replaced, those of the recording too.
        checkpoint: Where the state is kept.
        every: How often it is, in words; see ``io.rhythm``.
        surfaces: A folder for the surface of a liquid at each picture.
        volumes: A folder for what the cells hold at each picture.
        volume_format: How that is written: "vdb" or "vti".
        up: The axis that points up in meshes and in OpenVDB.
        log: How the run is doing, a line at each picture.
        on_blow_up: What becomes of a flow that blows up: "stop", or "halve", which tries again with half the time step.
    """

    json: Path | None
    probes: Path | None
    plot: Path | None
    overwrite: bool = False
    checkpoint: Path | None = None
    every: str | None = None
    surfaces: Path | None = None
    volumes: Path | None = None
    volume_format: str = "vdb"
    up: str = "y"
    log: Path | None = None
    on_blow_up: str = "stop"

    @property
    def any(self) -> bool:
        """Whether there are any."""
        files = (self.json, self.probes, self.plot, self.checkpoint, self.every, self.log)
        return any(file is not None for file in files) or bool(self.folders) or self.on_blow_up != "stop"

    @property
    def folders(self) -> list[tuple[Path, Numbered]]:
        """Folders of files, one for each picture, and how these are called."""
        both = ((self.surfaces, SURFACES), (self.volumes, VOLUMES[self.volume_format]))
        return [(folder, names) for folder, names in both if folder is not None]

    def placed(self, name: str, outputs: Outputs | None, begun: "Begun | None") -> "Numbers":
        """With a place for checkpoints where only their rhythm was given: that a run began from, or beside the recording."""
        if self.checkpoint is not None or self.every is None or outputs is None:
            return self
        if begun is not None:
            return self._replace(checkpoint=begun.path)
        if outputs.folder is None:
            return self._replace(checkpoint=outputs.poster.with_suffix(CHECKPOINT))
        return self._replace(checkpoint=outputs.folder.parent / f"{outputs.folder.name or name}{CHECKPOINT}")

    def _require_checkpoint(self, scene: Scene, begun: "Begun | None") -> None:
        """Raise OutputError for a place or a rhythm that cannot be, and for a scene of two flows."""
        if self.checkpoint is None:
            return
        if scene.look.compare:
            raise OutputError("look.compare is true: a checkpoint holds one flow, and not both grids.")
        require_writable(self.checkpoint, "the checkpoint")
        require_writable(before(self.checkpoint), "the checkpoint before the last one")
        try:
            rhythm_of(self.every)
        except ValueError as error:
            raise OutputError(f"{error}.") from None

    def make_room(self, begun: "Begun | None") -> None:
        """Remove what is not replaced when it is done, but written on the way: rows, and checkpoints of another run."""
        of_another = None if begun and begun.is_at(self.checkpoint) else self.checkpoint
        for path in (self.probes, self.log, of_another, of_another and before(of_another)):
            if path is not None:
                path.unlink(missing_ok=True)

    def require(self, scene: Scene, outputs: Outputs | None, begun: "Begun | None", file: Path | None = None) -> None:
        """Raise OutputError, in one sentence, for a file that cannot be made, has nothing to hold, or is another: ``file`` is the scene's."""
        if scene.look.compare and self.on_blow_up != "stop":
            raise OutputError("look.compare is true: --on-blow-up halve takes back one flow, and not both grids.")
        if self.surfaces:
            require_surfaces(scene.liquid is not None and scene.dim == 3)
        if not self.volumes and self.volume_format != "vdb":
            raise OutputError(
                "--volume-format is given and --volumes is not: give --volumes FOLDER too, or leave that out."
            )
        if self.volumes and self.volume_format == "vdb" and scene.dim != 3:
            raise OutputError(
                "--volumes is given and the scene is in 2D, where OpenVDB is of 3D: give --volume-format vti too."
            )
        turned = [names.suffix for _, names in self.folders]
        if self.up != "y" and (not turned or VOLUMES["vti"].suffix in turned):
            raise OutputError(
                f"--up {self.up} is given, which is of meshes and OpenVDB: give --surfaces or --volumes too, and no "
                "--volume-format vti, or leave that out."
            )
        for folder, names in self.folders:
            names.require(folder, f"the folder of {names.stem}s", overwrite=self.overwrite)
        if self.log:
            require_series(self.log, "the log", self.overwrite)
        names = {"--json": "the JSON file", "--probes": "the file of the probes", "--plot": "the plot"}
        wanted = [(option, what, path) for (option, what), path in zip(names.items(), self, strict=False) if path]
        for option, what, path in wanted:
            if option == "--plot" and not scene.probes and not self.log:
                raise OutputError(
                    "--plot is given and there is nothing to draw: give --log, or the scene [[probes]], or leave that out."
                )
            if option == "--probes" and not scene.probes:
                raise OutputError(
                    "--probes is given and the scene has no probes: give it [[probes]], or leave that out."
                )
            if option == "--json":
                require_writable(path, what)
            elif option == "--probes":
                require_series(path, what, self.overwrite)
            else:
                require_plot(path)
        others = [(what, path) for _, what, path in wanted]
        self._require_checkpoint(scene, begun)
        others += [("the log", self.log), ("the checkpoint", self.checkpoint)]
        require_apart([("the scene", file), *others], outputs, self.folders)
        for what, path in others:
            if path is not None and not (begun and begun.is_at(path)):
                require_free(path, what, self.overwrite)


class Begun:
    """A run that goes on from a checkpoint.

    Args:
        path: The file.

    Raises:
        CheckpointError: if it is none.
    """

    def __init__(self, path: Path):
        self.path = path
        self.scene, self._arrays, self._numbers = read(path)
        self._built = False

    def is_at(self, path: Path | None) -> bool:
        """Whether that is its file."""
        return path is not None and path.resolve() == self.path.resolve()

    def pictures(self, scene: Scene) -> int:
        """How many pictures of a scene's recording have been taken before."""
        return round(self._numbers["time"] * scene.output.fps)

    def require_grid(self, scene: Scene) -> None:
        """Raise SceneError if a scene has other cells than the checkpoint."""
        own, other = self.scene.domain, scene.domain
        if (own.shape, own.grid) != (other.shape, other.grid):
            cells = [f"{' x '.join(map(str, each.shape))} on the {each.grid} grid" for each in (own, other)]
            raise SceneError(
                f"the checkpoint has {cells[0]} and the scene {cells[1]}: leave out what of --resolution and --set "
                "changes that."
            )

    def require_rest(self, scene: Scene) -> None:
        """Raise SceneError if no pictures of a scene's recording are left."""
        if scene.output.frames <= self.pictures(scene):
            raise SceneError(
                f"output.frames is {scene.output.frames}, and the checkpoint stands at picture {self.pictures(scene)}: "
                "ask for more by --frames."
            )

    def build(self, scene: Scene) -> "Simulation":
        """The flow of the checkpoint; when asked again, for another grid, a new one."""
        from ..io.checkpoint import restored
        from ..simulation import Simulation

        if self._built:
            return Simulation(scene)
        self._built = True
        return restored(self.path, scene, self._arrays, self._numbers)
