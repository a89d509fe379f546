"""What a backend computes on, what fits into it, and what helps where it does not start."""

import re
import sys
from typing import NamedTuple

from ..backend import SOFTWARE, VULKAN_DEVICE, device_name, of_nvidia, vulkan_devices
from ..limits import MAX_ARRAY_BYTES
from ..scene import Scene, preset
from ..scene.memory import bytes_needed, bytes_of_largest_array, memory_of_machine
from ..viewer.parameters import bounds_of

LARGEST = ("plume", "plume2d")
"""Scenes of which a report says how large they may be."""

REASONS = {
    r"Arch=\[.*\] is not supported": "Taichi has found no device or no driver for it",
    r"CUDA_ERROR_NO_DEVICE|no CUDA-capable device": "there is no NVIDIA GPU",
    r"CUDA_ERROR_SYSTEM_DRIVER_MISMATCH": "the driver was updated: restart the machine",
    r"CUDA_ERROR_\w*(DRIVER|FORWARD_COMPAT)\w*": "the NVIDIA driver is too old",
    r"CUDA_ERROR_OUT_OF_MEMORY|VK_ERROR_OUT_OF_\w+_MEMORY|out of memory": "its memory is full: end what else runs on it",
    r"VK_ERROR_INCOMPATIBLE_DRIVER": "there is no Vulkan driver",
    r"VK_ERROR_DEVICE_LOST|CUDA_ERROR_LAUNCH_(FAILED|TIMEOUT)": "the device broke off its work: update its driver",
    r"(lib\S+): cannot open shared object file": r"the system library \1 is missing",
    r"TI_ARCH=": "TI_ARCH is set in the environment and overrules it: unset it",
}
"""What drivers and Taichi say, as patterns, and what that means."""

_OF_MAKER = "It comes with the driver of the GPU: install the newest one of its maker."
REMEDIES = {
    "cuda": {
        "linux": "It needs an NVIDIA GPU and its driver, which nvidia-smi names: install your distribution's package (Ubuntu: "
        "sudo ubuntu-drivers install); a container is started with --gpus all.",
        "win32": "It needs an NVIDIA GPU and its driver: nvidia.com/drivers.",
        "darwin": "There is none on macOS; metal takes its place.",
    },
    "vulkan": {
        "linux": "It needs a Vulkan driver, which vulkaninfo --summary names (package vulkan-tools): that of Mesa for AMD and "
        "Intel (Ubuntu: sudo apt install mesa-vulkan-drivers), NVIDIA's own for theirs. A container may lack "
        "what loads it (libvulkan1, libegl1).",
        "win32": _OF_MAKER,
        "darwin": "It comes with Taichi: pip install --force-reinstall taichi. metal needs nothing.",
    },
    "metal": {"darwin": "It needs a Mac whose GPU has Metal, and macOS 11 or newer."},
    "opengl": {
        "linux": "It needs a display and OpenGL 4.3; vulkan needs neither.",
        "win32": _OF_MAKER,
        "darwin": "There is none on macOS that would do; metal takes its place.",
    },
}
"""What to do where a backend does not start, by arch and ``sys.platform``."""
SOFTWARE_REMEDY = "It computes on the processor, many times slower than cpu: install the driver of your GPU."


class Device(NamedTuple):
    """What a backend computes on.

    Attributes:
        name: Empty where nothing says it.
        driver: Its version; so is this.
        memory: In bytes; None where nothing says it.
    """

    name: str
    driver: str = ""
    memory: int | None = None


def device_of(arch: str, log: str = "") -> Device:
    """The device of a backend that starts here; ``log`` is what it has said of itself then."""
    name = device_name(arch, log)
    if arch == "cuda":
        driver, _, memory = of_nvidia("driver_version,memory.total").partition(", ")
        return Device(name, driver, int(memory) * 2**20 if memory.isdecimal() else None)
    if arch == "vulkan":
        named = VULKAN_DEVICE.search(log)
        same = [device for device in vulkan_devices() if named and device.name == named.group(1)]
        return Device(name, same[0].driver, same[0].memory) if same else Device(name)
    return Device(name, memory=memory_of_machine()) if arch in ("cpu", "metal") else Device(name)


def largest(scene: Scene, memory: int | None) -> int:
    """Most cells along the longest edge with which a scene fits into a device; 0 if it never does.

    Its arrays must be such as a backend holds, and all it needs fit into the memory, where that is known, if nothing else
    is in it.
    """
    _, most = bounds_of(type(scene.domain).model_fields["resolution"])
    assert most is not None
    low, high = 0, int(most)
    while low < high:
        middle = (low + high + 1) // 2
        domain = scene.domain.model_copy(update={"resolution": middle})
        sized = scene.model_copy(update={"domain": domain})
        fits = bytes_of_largest_array(sized) <= MAX_ARRAY_BYTES and (memory is None or bytes_needed(sized) <= memory)
        low, high = (middle, high) if fits else (low, middle - 1)
    return low


def largest_of(memory: int | None) -> dict[str, int]:
    """How large the scenes of a report may be."""
    return {name: largest(preset(name), memory) for name in LARGEST}


def remedy(arch: str, name: str = "") -> str:
    """What helps where a backend does not start; where it does, what would make it faster. Empty if nothing."""
    if name:
        return SOFTWARE_REMEDY if arch == "vulkan" and SOFTWARE.search(name) else ""
    system = "linux" if sys.platform.startswith("linux") else sys.platform
    return REMEDIES.get(arch, {}).get(system, "")


def reason(text: str) -> str:
    """What a driver or Taichi has said, in words for a person; empty where they are not known."""
    for pattern, words in REASONS.items():
        if found := re.search(pattern, text):
            return found.expand(words)
    return ""
