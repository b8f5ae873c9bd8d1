# A Spack recipe. In a repository of your own:
#   spack repo create site && mkdir -p site/packages/nodeprint && cp package.py site/packages/nodeprint/
#   spack repo add site && spack install nodeprint
# It installs what a login node calls (workflow, kernels, `nodeprint`) and what kernels need on the nodes.
from spack.package import *


class Nodeprint(PythonPackage):
    """Measures every node of a cluster and says whether identically configured nodes really are the same."""

    homepage = "https://example.org/nodeprint"
    # A release's archive, or a checkout: `git = "/path/of/your/clone"`.
    git = homepage + ".git"

    license("MIT")

    version("main", branch="main")

    variant("likwid", default=True, description="pin by likwid-pin")
    variant("mpi", default=True, description="LinkTest: messages between cores and nodes")

    depends_on("c", type="build")
    depends_on("gmake", type="build")
    depends_on("python@3.11:", type=("build", "run"))
    depends_on("py-setuptools@77:", type="build")
    # as in pyproject.toml; what Spack does not have (cmcrameri, typst) is installed beside it by pip
    depends_on("py-cmcrameri@1.9:", type=("build", "run"))
    depends_on("py-h5netcdf@1.6:", type=("build", "run"))
    depends_on("py-h5py@3.11:", type=("build", "run"))
    depends_on("py-jinja2@3.1:", type=("build", "run"))
    depends_on("py-jsonschema@4.23:", type=("build", "run"))
    depends_on("py-clustershell@1.9:", type=("build", "run"))
    depends_on("py-junitparser@4.0:", type=("build", "run"))
    depends_on("py-matplotlib@3.9:", type=("build", "run"))
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
    depends_on("py-mpi4py", when="+mpi", type="run")

    @run_after("install")
    def kernels_and_workflow(self):
        """The sources that `nodeprint sources` copies, with built kernels, in share/nodeprint."""
        share = self.prefix.share.nodeprint
        for room in ("kernels", "workflow", "profiles", "config", "ansible", "reports"):
            install_tree(room, join_path(share, room))
        with working_dir(join_path(share, "kernels")):
            make()

    def setup_run_environment(self, env):
        env.set("NODEPRINT_HOME", self.prefix.share.nodeprint)
