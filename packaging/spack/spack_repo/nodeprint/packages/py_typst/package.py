import platform

from spack.package import *
from spack_repo.builtin.build_systems.python import PythonPackage

#: A wheel of each architecture, as a build from source needs all of Typst's crates.
WHEELS = {
    "x86_64": (
        "typst-0.15.2-cp39-abi3-manylinux2014_x86_64.manylinux_2_17_x86_64.whl",
        "99fe0916980cab453e60332125e133c737bf3b76efd325b60d055c551e5887a1",
    ),
    "aarch64": (
        "typst-0.15.2-cp39-abi3-manylinux2014_aarch64.manylinux_2_17_aarch64.whl",
        "11c6f06b47dd0e3448720d120ab79dd488b83a5c525f66133f8ebc6f909404b1",
    ),
}


class PyTypst(PythonPackage):
    """Typst, which sets PDFs, as a Python module."""

    license("Apache-2.0")

    # no name of the class itself: Spack reads `name` as that of the package
    if platform.machine() in WHEELS:
        version(
            "0.15.2",
            sha256=WHEELS[platform.machine()][1],
            expand=False,
            url=f"https://files.pythonhosted.org/packages/cp39/t/typst/{WHEELS[platform.machine()][0]}",
        )

    depends_on("python@3.9:", type=("build", "run"))
