"""Choice and start of a Taichi backend: for the command line, the demos and programs that leave the choice to us.

The library starts none; of what stands here it only asks whether one computes in software.
"""

import ctypes
import functools
import os
import platform
import re
import struct
import subprocess
import sys
import warnings
from typing import Any, NamedTuple

from ._ti import impl, ti
from .limits import ARCHS

AUTO_ORDER = ("cuda", "vulkan", "metal", "cpu")
"""What ``auto`` tries. OpenGL is only started when asked for: Taichi aborts the process on what it lacks there."""
COMPILING = "Kernels compile first, which can take a minute or two."
"""What to tell somebody who waits for the first step."""
PROBE_SECONDS = 60
FEW_PROCESSORS = 4
"""As many as this, and Taichi's threads have one each: where there are more, nearly all of them find an idle one by themselves."""
VULKAN_DEVICE = re.compile(r"Found Vulkan Device \d+ \((.+)\)")
"""How Taichi's trace names the device that it takes."""
SOFTWARE = re.compile("llvmpipe|lavapipe|SwiftShader", re.IGNORECASE)
VULKAN_LOADERS = {"linux": "libvulkan.so.1", "win32": "vulkan-1.dll"}
"""The library that knows the Vulkan devices; macOS has none, and no device that is software."""
CPU_DEVICE, OWN_HEAP = 4, 1
"""``VK_PHYSICAL_DEVICE_TYPE_CPU`` and ``VK_MEMORY_HEAP_DEVICE_LOCAL_BIT``."""
NVIDIA, INTEL = 0x10DE, 0x8086
"""Makers of GPUs, as PCI numbers them."""
_started: Any = None
"""The Taichi that ``start_here`` has started last: who has named an arch to it knows what runs."""


class BackendError(RuntimeError):
    """A backend that does not start here; the message says which, and what does."""


def start_log(arch: str) -> str | None:
    """What another process says while it starts ``arch``; None if it does not start.

    Another process, because a missing driver can end the one that asks.
    """
    if arch == "metal" and sys.platform != "darwin":
        return None
    code = (
        "from taichi_fluid._ti import ti\n"
        f"ti.init(arch=ti.{arch}, log_level=ti.TRACE, enable_fallback=False)\n"
        "a = ti.ndarray(ti.f32, 1)\n"
        "a.fill(1.0)\n"
        "ti.sync()\n"
    )
    try:
        probe = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, timeout=PROBE_SECONDS, env=probe_environment()
        )
    except subprocess.TimeoutExpired:
        return None
    return (probe.stdout + probe.stderr).decode(errors="replace") if probe.returncode == 0 else None


def starts(arch: str, hardware: bool = False) -> bool:
    """Whether ``arch`` starts. With ``hardware`` a Vulkan driver that computes on the processor does not count."""
    log = start_log(arch)
    device = VULKAN_DEVICE.search(log or "")
    software = device is not None and SOFTWARE.search(device.group(1)) is not None
    return log is not None and not (hardware and software)


def probe_environment() -> dict[str, str]:
    """This process's environment, with the package importable wherever it was imported from."""
    here = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    path = os.pathsep.join(part for part in (here, os.environ.get("PYTHONPATH", "")) if part)
    return {**os.environ, "PYTHONPATH": path}


def start(arch: str = "auto", announce: bool = False, **options) -> str:
    """Call ``ti.init`` for the named arch, or for the first of cuda, vulkan, metal and cpu that starts here.

    This is what a program calls in place of ``ti.init(arch=ti.gpu)`` that wants the fastest there is. Software Vulkan
    (Mesa's lavapipe) loses to the CPU backend by an order of magnitude, so ``auto`` passes it over.

    Args:
        arch: ``"auto"`` or one of ``ARCHS``.
        announce: Say on stderr what runs and that the first step waits for kernels.
        **options: Given to ``ti.init``, over the ``recommended_options``.

    Returns:
        The arch that runs.

    Raises:
        BackendError: if the named arch does not start here.
    """
    if arch not in ("auto", *ARCHS):
        raise BackendError(f"arch is {arch!r}; it must be auto or one of {', '.join(ARCHS)}.")
    if arch == "opengl" and sys.platform.startswith("linux") and not os.environ.get("DISPLAY"):
        raise BackendError("opengl does not start without a display (DISPLAY is not set): try vulkan or cpu.")
    if arch == "auto":
        arch = best()
    elif arch != "cpu" and not starts(arch):
        raise BackendError(f"{arch} does not start on this machine; 'taichi-fluid doctor' shows what does.")
    with _quiet_stdout():
        start_here(arch, **options)
    if announce:
        print(f"Starting on {arch}. {COMPILING}", file=sys.stderr, flush=True)
    return arch


def best() -> str:
    """The arch that ``auto`` means here."""
    return next((arch for arch in AUTO_ORDER[:-1] if _worth_trying(arch) and starts(arch, hardware=True)), "cpu")


def recommended_options(arch: str = "cpu") -> dict[str, Any]:
    """Options of ``ti.init`` with which kernels compile sooner on ``arch`` and a step takes as long as without.

    Taichi leaves out its analysis of control flow and its search of the whole kernel for what is computed twice, which LLVM or
    a driver does again: a third of a first start on the CPU, from which no step here gains, half of the compiling for CUDA, where
    as many instructions come out, and a tenth of a first start on Vulkan with Mesa's software driver. LLVM then rounds a few
    sums otherwise. And it compiles on one thread, as each of several reads its own copy of Taichi's runtime first. For Metal
    and OpenGL, where nobody has measured, there are none.

    ``start`` gives them, below the options of its caller. A program that calls ``ti.init`` itself may do the same:
    ``ti.init(arch=ti.cpu, **backend.recommended_options("cpu"))``. Nothing here changes what it has called it with.

    Args:
        arch: One of ``ARCHS``.
    """
    if arch not in ("cpu", "cuda", "vulkan"):
        return {}
    return {"cfg_optimization": False, "opt_level": 0, "num_compile_threads": 1}


def start_here(arch: str, apart: bool = True, **options) -> None:
    """Call ``ti.init`` for one arch without asking another process first whether it ends this one.

    Args:
        arch: One of ``ARCHS``.
        apart: Whether each thread of a CPU of few processors has one of its own; not where several such programs run at once.
        **options: Given to ``ti.init``, over the ``recommended_options``.

    Raises:
        BackendError: if another arch runs in its place.
    """
    global _started
    ours = {"log_level": ti.ERROR, "enable_fallback": False, "random_seed": 0, **recommended_options(arch)}
    ti.init(arch=getattr(ti, arch), **{**ours, **options})
    if impl.current_cfg().arch != getattr(ti, arch):
        raise BackendError(
            f"{arch} was asked for and TI_ARCH={os.environ.get('TI_ARCH')!r} overrules it: unset TI_ARCH."
        )
    _started = impl.get_runtime()
    if arch == "cpu" and apart:
        _keep_apart()


def _keep_apart() -> None:
    """Bind those of Taichi's threads that compute, the newest of the process, each to a processor of its own, if it has one for each of a few.

    All are woken by a thread that runs itself, so one of them finds no idle processor, is put on that of another, and stays there for
    as long as loops are short: on two processors two threads were as fast as one (docs/performance.md). Who starts the process with
    fewer processors, as by ``taskset``, has them free to go where there is room.
    """
    if sys.platform == "linux":
        processors = sorted(os.sched_getaffinity(0))
        if len(processors) == impl.current_cfg().cpu_max_num_threads <= FEW_PROCESSORS:
            threads = sorted(int(name) for name in os.listdir("/proc/self/task"))[-len(processors) :]
            for thread, processor in zip(threads, processors, strict=True):
                os.sched_setaffinity(thread, {processor})


def warn_of_software() -> None:
    """Warn, once in a process, where the Taichi that is running is a Vulkan driver that computes on the processor.

    ``ti.init(arch=ti.gpu)`` takes one where there is no other device.
    """
    if impl.current_cfg().arch == ti.vulkan and impl.get_runtime() is not _started:
        _warn_of_vulkan()


@functools.cache
def software_that_runs() -> str:
    """Name of the device, if the Vulkan that is running computes on the processor; else empty. Asked once in a process."""
    return software_device(vulkan_devices())


@functools.cache
def _warn_of_vulkan() -> None:
    name = software_that_runs()
    if name:
        warnings.warn(
            f"Taichi runs on {name}, a Vulkan driver that computes on the processor, many times slower than Taichi's own "
            "CPU backend: call ti.init(arch=ti.cpu), or taichi_fluid.backend.start(), which finds the fastest one.",
            stacklevel=4,  # where the simulation is built
        )


class VulkanDevice(NamedTuple):
    """A Vulkan device.

    Attributes:
        name: What its driver calls it.
        kind: Its ``VkPhysicalDeviceType``.
        driver: Version of the driver.
        memory: Of the largest heap of its own, in bytes.
    """

    name: str
    kind: int
    driver: str = ""
    memory: int = 0


def software_device(devices: list[VulkanDevice]) -> str:
    """Name of the one of all Vulkan devices that Taichi takes, if that computes on the processor; else empty.

    Taichi takes any other one before it, unless ``TI_VISIBLE_DEVICE`` is the number of one.
    """
    visible = os.environ.get("TI_VISIBLE_DEVICE", "")
    if visible.isdecimal() and int(visible) < len(devices):
        devices = [devices[int(visible)]]
    software = bool(devices) and all(device.kind == CPU_DEVICE for device in devices)
    return devices[0].name if software else ""


def vulkan_devices() -> list[VulkanDevice]:
    """Every Vulkan device; none where the loader cannot be asked."""
    try:
        vulkan = ctypes.CDLL(VULKAN_LOADERS[sys.platform])
    except (KeyError, OSError):
        return []
    instance, count = ctypes.c_void_p(), ctypes.c_uint32(0)
    # VkInstanceCreateInfo: its own number, 1, and nothing else.
    create = (ctypes.c_uint64 * 8)(1)
    if vulkan.vkCreateInstance(create, None, ctypes.byref(instance)) != 0:
        return []
    devices = []
    try:
        vulkan.vkEnumeratePhysicalDevices(instance, ctypes.byref(count), None)
        handles = (ctypes.c_void_p * count.value)()
        vulkan.vkEnumeratePhysicalDevices(instance, ctypes.byref(count), handles)
        for handle in handles[: count.value]:
            # VkPhysicalDeviceProperties, 824 bytes: version of Vulkan and of the driver, vendor, device, type, the name in 256
            # bytes, and more.
            properties, memory = (ctypes.create_string_buffer(4096) for _ in range(2))
            vulkan.vkGetPhysicalDeviceProperties(ctypes.c_void_p(handle), properties)
            vulkan.vkGetPhysicalDeviceMemoryProperties(ctypes.c_void_p(handle), memory)
            _, driver, vendor, _, kind = struct.unpack_from("=5I", properties)
            name = ctypes.string_at(ctypes.addressof(properties) + 20).decode(errors="replace")
            devices.append(VulkanDevice(name, kind, _version(driver, vendor), _largest_heap(memory)))
    finally:
        vulkan.vkDestroyInstance(instance, None)
    return devices


def _version(number: int, vendor: int) -> str:
    """Version of a driver; makers pack theirs in their own ways."""
    if vendor == NVIDIA:
        parts = [number >> 22, number >> 14 & 0xFF, number >> 6 & 0xFF]
    elif vendor == INTEL and sys.platform == "win32":
        parts = [number >> 14, number & 0x3FFF]
    else:
        parts = [number >> 22, number >> 12 & 0x3FF, number & 0xFFF]
    return ".".join(map(str, parts))


def _largest_heap(properties: ctypes.Array) -> int:
    """Bytes of the largest heap of a device's own, of its ``VkPhysicalDeviceMemoryProperties``.

    They are a count, 32 types of 8 bytes, a count of heaps, and 16 heaps: a size in 8 bytes, flags in 4, and 4 between.
    """
    (count,) = struct.unpack_from("=I", properties, 260)
    heaps = [struct.unpack_from("=QI", properties, 264 + 16 * i) for i in range(count)]
    return max((size for size, flags in heaps if flags & OWN_HEAP), default=0)


def _worth_trying(arch: str) -> bool:
    """Cheap signs that a GPU may be there, so that a machine without one does not pay for starting two processes."""
    if sys.platform == "darwin":
        return arch in ("metal", "vulkan")
    if arch == "metal":
        return False
    if sys.platform.startswith("linux"):
        if arch == "cuda":
            return os.path.exists("/dev/nvidiactl") or os.path.exists("/dev/dxg")
        return os.path.isdir("/dev/dri")
    return True


def device_name(arch: str, log: str = "") -> str:
    """What ``arch`` computes on; of several Vulkan devices Taichi's own log says which. Empty where nothing says it."""
    if arch == "cpu":
        return _processor()
    if arch == "cuda":
        return of_nvidia("name")
    found = VULKAN_DEVICE.search(log)
    if found is None and arch == "vulkan":
        devices = vulkan_devices()
        return devices[0].name if len(devices) == 1 else ""
    return found.group(1) if found else ""


def of_nvidia(fields: str) -> str:
    """What ``nvidia-smi`` says of the first GPU, without units; empty where it is not there or fails."""
    command = ["nvidia-smi", f"--query-gpu={fields}", "--format=csv,noheader,nounits"]
    try:
        said = subprocess.run(command, capture_output=True, text=True, timeout=30)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return said.stdout.partition("\n")[0].strip() if said.returncode == 0 else ""


def _processor() -> str:
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as info:
            names = [line.split(":", 1)[1].strip() for line in info if line.startswith("model name")]
        return f"{names[0]}, {os.cpu_count()} threads"
    except (OSError, IndexError):
        return f"{platform.processor() or platform.machine()}, {os.cpu_count()} threads"


class _quiet_stdout:  # noqa: N801 - reads as a verb where it is used
    """Keeps what native code prints on stdout off it: results stand there."""

    def __enter__(self):
        self._python, self._null = sys.stdout, os.open(os.devnull, os.O_WRONLY)
        if self._python is not None:
            self._python.flush()
        try:
            self._saved = os.dup(1)
        except OSError:  # nobody listens: standard output was closed before we began
            self._saved = None
        else:
            os.dup2(self._null, 1)
        sys.stdout = open(os.devnull, "w")

    def __exit__(self, *error):
        sys.stdout.close()
        sys.stdout = self._python
        os.close(self._null)
        if self._saved is not None:
            os.dup2(self._saved, 1)
            os.close(self._saved)
