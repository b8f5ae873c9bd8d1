"""The timed section: the library that mpicc built from pingpong.c, or mpi4py's own messages where there is none."""

from __future__ import annotations

import ctypes
import importlib
import mmap
import resource
import time
from pathlib import Path
from typing import Any

from linktest.settings import BATCH_S, LEAST_BYTES_OF_PYTHON, MODES, NO_GPU_PACKAGE, RefusalError, gpu_package

LIBRARY = Path(__file__).parent.parent / "build/linktest.so"
#: Open MPI 4 and 5 name it so.
_SINGLE_COPY = (b"btl_vader_single_copy_mechanism", b"btl_sm_single_copy_mechanism")


class Pair(ctypes.Structure):
    """struct link_pair of pingpong.c."""

    _fields_ = (
        ("mode", ctypes.c_int),
        ("first", ctypes.c_int),
        ("partner", ctypes.c_int),
        ("bytes", ctypes.c_int),
        ("warm_up", ctypes.c_int),
        ("samples", ctypes.c_int),
        ("messages", ctypes.c_int),
        ("together", ctypes.c_int),
        ("batch_ns", ctypes.c_double),
        ("took_ns", ctypes.c_double),
        ("lost_ns", ctypes.c_double),
        ("send", ctypes.c_void_p),
        ("receive", ctypes.c_void_p),
    )


class Buffers:
    """Two page-aligned buffers, every page first written here: by the rank that uses them, on its CPU."""

    def __init__(self, size: int) -> None:
        self.send, self.receive = (mmap.mmap(-1, max(size, mmap.PAGESIZE)) for _ in range(2))
        for buffer in (self.send, self.receive):
            for at in range(0, len(buffer), mmap.PAGESIZE):
                buffer[at] = 1

    def addresses(self) -> tuple[int, int]:
        """Where they begin."""
        first, second = (ctypes.addressof(ctypes.c_char.from_buffer(one)) for one in (self.send, self.receive))
        return first, second

    def parts(self, size: int) -> tuple[Any, Any]:
        """The first `size` bytes of both, as mpi4py takes them."""
        return memoryview(self.send)[:size], memoryview(self.receive)[:size]


class CudaBuffers:
    """Two buffers in a GPU's memory, by CuPy or else torch; the ranks take the GPUs that they see in turn.

    Raises RefusalError where there is no such package, no GPU, or an MPI that knows of no GPUs.
    """

    def __init__(self, size: int, rank: int) -> None:
        package = gpu_package()
        if not package:
            raise RefusalError(NO_GPU_PACKAGE)
        if not _has_cuda_mpi():
            raise RefusalError("--buffers cuda: this MPI is built without CUDA; load one that has it (ompi_info)")
        try:
            gpu = importlib.import_module(package)
            count = gpu.cuda.runtime.getDeviceCount() if package == "cupy" else gpu.cuda.device_count()
            if not count:
                raise RefusalError(f"--buffers cuda: {package} sees no GPU here; leave --buffers out")
            if package == "cupy":
                gpu.cuda.Device(rank % count).use()
                self._arrays = [gpu.ones(size, dtype=gpu.uint8) for _ in range(2)]
                gpu.cuda.Device().synchronize()
            else:
                gpu.cuda.set_device(rank % count)
                self._arrays = [gpu.ones(size, dtype=gpu.uint8, device="cuda") for _ in range(2)]
                gpu.cuda.synchronize()
        except (ImportError, RuntimeError) as error:
            raise RefusalError(f"--buffers cuda: {package} cannot use a GPU here ({error})") from error
        self._is_cupy = package == "cupy"

    def addresses(self) -> tuple[int, int]:
        """Where they begin in the GPU's memory."""
        first, second = (one.data.ptr if self._is_cupy else one.data_ptr() for one in self._arrays)
        return first, second

    def parts(self, size: int) -> tuple[Any, Any]:
        """The first `size` bytes of both, as mpi4py takes them."""
        return self._arrays[0][:size], self._arrays[1][:size]


def _has_cuda_mpi() -> bool:
    """Whether Open MPI says that it takes addresses of a GPU; another MPI is not asked."""
    try:
        return bool(ctypes.CDLL(None).MPIX_Query_cuda_support())
    except AttributeError:
        return False


class InC:
    """Timed in C, on the communicator whose handle mpi4py gives."""

    name = "c"

    def __init__(self, comm: Any, handle: int, library: ctypes.CDLL) -> None:
        self._library, self._handle = library, ctypes.c_void_p(handle)
        library.link_compiler.restype = ctypes.c_char_p
        self.compiler = library.link_compiler().decode()

    def measure(self, pair: Pair, buffers: Buffers | CudaBuffers) -> list[float]:
        """The samples in ns a message on the first rank; on the other its part is done."""
        pair.send, pair.receive = buffers.addresses()
        pair.batch_ns = BATCH_S * 1e9
        times = (ctypes.c_double * pair.samples)()
        error = self._library.link_measure(self._handle, ctypes.byref(pair), times)
        if error:
            raise RefusalError(f"MPI ended a message with error {error}")
        return list(times)

    def single_copy(self) -> str:
        """How a message is copied between processes of a node, as MPI has it set now."""
        word = ctypes.create_string_buffer(64)
        known = any(self._library.link_setting(name, word, len(word)) == 0 for name in _SINGLE_COPY)
        return word.value.decode() if known else "unknown"


class InPython:
    """Timed with mpi4py's own calls, for messages that are so large that these do not show."""

    name = "python"
    compiler = "none"

    def __init__(self, comm: Any) -> None:
        self._comm = comm

    def single_copy(self) -> str:
        """Not known without the library."""
        return "unknown"

    def measure(self, pair: Pair, buffers: Buffers | CudaBuffers) -> list[float]:
        """As InC's."""
        if pair.together:
            self._comm.Barrier()
        if pair.partner < 0:
            return []
        pair.messages = pair.messages or 1
        send, receive = buffers.parts(pair.bytes)
        ways = 2 if MODES[pair.mode] == "semidirectional" else 1
        self._batch(pair, pair.warm_up, send, receive)
        times = []
        slept, began, ran = _had()
        for _ in range(pair.samples):
            start = time.perf_counter_ns()
            self._batch(pair, pair.messages, send, receive)
            times.append((time.perf_counter_ns() - start) / ways / pair.messages)
        slept_then, ended, ran_then = _had()
        if slept_then == slept:
            pair.took_ns = ended - began
            pair.lost_ns = max(0, ended - began - (ran_then - ran))
        return times

    def _batch(self, pair: Pair, count: int, send: Any, receive: Any) -> None:
        comm, other, mode = self._comm, pair.partner, MODES[pair.mode]
        for _ in range(count):
            if mode == "bidirectional":
                comm.Sendrecv(send, other, 1, receive, other, 1)
                continue
            if pair.first:
                comm.Send(send, other, 1)
            else:
                comm.Recv(receive, other, 1)
            if mode == "semidirectional" and pair.first:
                comm.Recv(receive, other, 1)
            elif mode == "semidirectional":
                comm.Send(send, other, 1)
        if mode == "unidirectional":
            # an empty message back when all have arrived
            (comm.Recv if pair.first else comm.Send)(bytearray(0), other, 1)


def _had() -> tuple[int, int, int]:
    """How often this thread has slept, the time, and how long it has run, in ns."""
    return resource.getrusage(resource.RUSAGE_THREAD).ru_nvcsw, time.perf_counter_ns(), time.thread_time_ns()


def choose(mpi: Any, comm: Any, sizes: tuple[int, ...]) -> InC | InPython:
    """The library where it is built for this MPI. Raises RefusalError for small messages where it is not."""
    why = f"{LIBRARY} is not there"
    if LIBRARY.exists():
        try:
            library = ctypes.CDLL(str(LIBRARY))
            library.link_compiled_for.restype = ctypes.c_char_p
            built_for = library.link_compiled_for().decode()
            if mpi.Get_library_version().startswith(built_for):
                return InC(comm, mpi._addressof(comm), library)
            why = f"{LIBRARY} is built for {built_for}, and mpi4py runs on another MPI"
        except (OSError, AttributeError) as error:
            why = f"{LIBRARY} cannot be used ({error})"
    if min(sizes) < LEAST_BYTES_OF_PYTHON:
        raise RefusalError(
            f"{why}: messages below 64 KiB are timed in C only; build it with mpicc (make -C kernels), or use "
            "--sizes 64K or more"
        )
    return InPython(comm)
