"""What carries messages: the components that MPI has selected, asked by its tool interface (MPI_T).

Open MPI has a category for each framework and component. When it selects a component, it closes the others and
withdraws their categories. Neither loaded libraries nor `ompi_info` know that: Open MPI 5 has its components in
libmpi, and an installed component may be unusable here.
"""

from __future__ import annotations

import ctypes
import re
from collections.abc import Iterable, Iterator
from types import ModuleType

#: `ompi_pml_ob1`: a project, a framework of transports and a component; `ompi_pml_base` is the framework itself.
_CATEGORY = re.compile(r"[a-z]+_(pml|btl|mtl|smsc)_(?!base$)(\w+)")
#: Which frameworks a PML sends by. UCX has transports of its own, and components of a framework stay open without use.
_BELOW = {"ob1": {"btl", "smsc"}, "cm": {"mtl"}}
_NAME_BYTES = 256


def components(mpi: ModuleType) -> dict[str, list[str]]:
    """The selected components of each framework, from mpi4py's `MPI` after MPI_Init; empty lists for another MPI."""
    return selected(_categories(ctypes.CDLL(str(mpi.__file__))))


def selected(categories: Iterable[str]) -> dict[str, list[str]]:
    """Which components carry messages, from the names of MPI_T's categories."""
    found: dict[str, list[str]] = {"pml": [], "btl": [], "mtl": [], "smsc": []}
    for name in sorted(categories):
        if match := _CATEGORY.fullmatch(name):
            found[match[1]].append(match[2])
    if "sm" in found["btl"] and "vader" in found["btl"]:
        found["btl"].remove("vader")  # the former name of sm, which Open MPI 5 keeps as another name for its settings
    used = {"pml"}.union(*(_BELOW.get(pml, set()) for pml in found["pml"]))
    return {framework: names if framework in used else [] for framework, names in found.items()}


def _categories(library: ctypes.CDLL) -> Iterator[str]:
    """The names of all categories. The calls take plain integers and text, so that they are the same in every MPI."""
    if library.MPI_T_init_thread(0, ctypes.byref(ctypes.c_int())) != 0:
        return
    count = ctypes.c_int()
    library.MPI_T_category_get_num(ctypes.byref(count))
    for index in range(count.value):
        name, room = ctypes.create_string_buffer(_NAME_BYTES), ctypes.c_int(_NAME_BYTES)
        no_description, numbers = ctypes.c_int(0), [ctypes.c_int() for _ in range(3)]
        error = library.MPI_T_category_get_info(
            index, name, ctypes.byref(room), None, ctypes.byref(no_description), *map(ctypes.byref, numbers)
        )
        if error == 0:  # else it has been withdrawn
            yield name.value.decode()
    library.MPI_T_finalize()
