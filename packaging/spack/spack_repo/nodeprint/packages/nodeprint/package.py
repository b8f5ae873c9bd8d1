# Spack 1.0 and newer, whose packages are in a repository of their own (spack-packages). From a checkout:
#   spack repo add packaging/spack/spack_repo/nodeprint
#   spack install nodeprint
# It installs what a login node calls (workflow, kernels, `nodeprint`) and what kernels need on the nodes. msgspec,
# cmcrameri, junitparser and typst, which Spack does not have, are packages of this repository.
from pathlib import Path

from spack.package import *
from spack_repo.builtin.build_systems.python import PythonPackage


class Nodeprint(PythonPackage):
    """Measures every node of a cluster and says whether identically configured nodes really are the same."""

    # the checkout that this recipe is in; a version of a branch needs a repository
    git = Path(__file__).parents[6].as_uri()
    # address: homepage = "@"
    # address: git = "@.git"

    license("MIT")

    version("main", branch="main")

    variant("likwid", default=True, description="pin by likwid-pin")
    variant("mpi", default=True, description="LinkTest: messages between cores and nodes")

    depends_on("c", type="build")
    depends_on("gmake", type="build")
    depends_on("python@3.11:", type=("build", "run"))
    # what pyproject.toml builds with is pinned for a checkout; 77 is the first that knows its license
    depends_on("py-setuptools@77:", type="build")
    # as in pyproject.toml
    depends_on("py-cmcrameri@1.9:", type=("build", "run"))
    depends_on("py-h5netcdf@1.6:", type=("build", "run"))
    depends_on("py-h5py@3.11:", type=("build", "run"))
    depends_on("py-jinja2@3.1:", type=("build", "run"))
    depends_on("py-jsonschema@4.23:", type=("build", "run"))
    depends_on("py-clustershell@1.9:", type=("build", "run"))
    depends_on("py-junitparser@4.0:", type=("build", "run"))
    depends_on("py-matplotlib@3.10:", type=("build", "run"))
    depends_on("py-msgspec@0.19:", type=("build", "run"))
    depends_on("py-numpy@2.0:", type=("build", "run"))
    depends_on("py-pandas@2.2:", type=("build", "run"))
    depends_on("py-pyyaml@6.0:", type=("build", "run"))
    depends_on("py-rich@13:", type=("build", "run"))
    depends_on("py-scipy@1.13:", type=("build", "run"))
    depends_on("py-typer@0.12:", type=("build", "run"))
    depends_on("py-typst@0.13:", type=("build", "run"))
    depends_on("py-xarray@2024.10:", type=("build", "run"))
    depends_on("py-zstandard@0.22:", type=("build", "run"))
    depends_on("snakemake@9.8:9", type="run")
    depends_on("likwid", when="+likwid", type="run")
    depends_on("openmpi", when="+mpi", type=("build", "run"))
    depends_on("py-mpi4py@4.1:", when="+mpi", type="run")

    def patch(self):
        # the pinned build tool is of a checkout's own environment
        filter_file(r"setuptools==[0-9.]+", "setuptools>=77", "pyproject.toml")

    @run_after("install")
    def kernels_and_workflow(self):
        """The sources that `nodeprint sources` copies, with built kernels, in share/nodeprint."""
        share = self.prefix.share.nodeprint
        for room in ("kernels", "workflow", "profiles", "config", "ansible", "reports"):
            install_tree(room, join_path(share, room))
        with working_dir(join_path(share, "kernels")):
            make()

    def setup_run_environment(self, env: EnvironmentModifications) -> None:
        env.set("NODEPRINT_HOME", self.prefix.share.nodeprint)
