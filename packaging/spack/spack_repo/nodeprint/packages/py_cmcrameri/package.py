from spack.package import *
from spack_repo.builtin.build_systems.python import PythonPackage


class PyCmcrameri(PythonPackage):
    """Perceptual color maps for matplotlib, by Fabio Crameri."""

    url = "https://files.pythonhosted.org/packages/py3/c/cmcrameri/cmcrameri-1.10-py3-none-any.whl"

    license("MIT")

    version("1.10", sha256="0ccc9970fe35d74543bb8aeca5a5a97d8a09de71d2237d1bb714c9968cc2018d", expand=False)

    depends_on("python@3.8:", type=("build", "run"))
    depends_on("py-matplotlib", type=("build", "run"))
    depends_on("py-numpy", type=("build", "run"))
    depends_on("py-packaging", type=("build", "run"))
