"""Set-up where packages come from a site's mirror: a package index behind TLS with a private certificate, and a proxy.

The checkout lies in a path with a space and a letter that is not ASCII, as a user's may. The index holds made-up
packages and the setuptools that set-up asks for, packed from the environment of the tests: nothing is fetched from
elsewhere.
"""

from __future__ import annotations

import contextlib
import functools
import io
import os
import re
import select
import shutil
import socket
import ssl
import subprocess
import tarfile
import threading
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, SimpleHTTPRequestHandler, ThreadingHTTPServer
from importlib import metadata
from pathlib import Path

import pytest

from tests.support.real_parts import ROOT, missing, need

WHEEL, SOURCE = "nodeprint-trial-wheel", "nodeprint-trial-source"
LOCK = f"{SOURCE}==1.0\n{WHEEL}==1.0\n    # via {SOURCE}\n"
PROJECT = """[build-system]
requires = ["setuptools"]
build-backend = "setuptools.build_meta"
[project]
name = "nodeprint"
version = "0"
[project.scripts]
trial = "nodeprint_trial_wheel:main"
"""


class Index(SimpleHTTPRequestHandler):
    """A folder for each package: the server's listing of it is what pip reads."""

    def log_message(self, *_: object) -> None:
        pass


class Proxy(BaseHTTPRequestHandler):
    """CONNECT for any host ends at the index; each is counted."""

    connected: list[str]
    port: int

    def do_CONNECT(self) -> None:
        self.connected.append(self.path)
        with socket.create_connection(("127.0.0.1", self.port)) as index:
            self.send_response(200)
            self.end_headers()
            other = {self.connection: index, index: self.connection}
            while True:
                for ready in select.select(list(other), [], [])[0]:
                    data = ready.recv(1 << 16)
                    if not data:
                        return
                    other[ready].sendall(data)

    def log_message(self, *_: object) -> None:
        pass


@contextlib.contextmanager
def serving(server: ThreadingHTTPServer) -> Iterator[int]:
    """The port on loopback where `server` answers."""
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield server.server_address[1]
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@dataclass(frozen=True)
class Site:
    """A checkout without network but a mirror, which only who knows its certificate can use."""

    checkout: Path
    home: Path
    certificate: Path
    port: int
    proxy: str
    connected: list[str] = field(default_factory=list)

    @property
    def index(self) -> str:
        return f"https://localhost:{self.port}/simple"

    def call(self, *command: str | Path, **environment: str) -> subprocess.CompletedProcess[str]:
        """`command` in the checkout, with nothing in its environment but `environment`."""
        clean = {"PATH": os.environ["PATH"], "HOME": str(self.home), "PIP_NO_CACHE_DIR": "1", "PIP_RETRIES": "1"}
        return subprocess.run(
            command,
            cwd=self.checkout,
            env=clean | environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )

    def downloaded(self, out: Path, **environment: str) -> str:
        """What set-up's pip prints; it must have downloaded the trial's wheel."""
        done = self.call(ROOT / "setup/pip", "download", "--no-deps", "--dest", out, WHEEL, **environment)
        assert done.returncode == 0, done.stderr
        assert [path.name.split("-")[0] for path in out.iterdir()] == [WHEEL.replace("-", "_")]
        return done.stderr

    def refused(self, **environment: str) -> str:
        """The one sentence where a download fails."""
        done = self.call(ROOT / "setup/pip", "download", "--no-deps", WHEEL, **environment)
        assert done.returncode == 1
        (sentence,) = done.stderr.splitlines()
        assert "step: the package index gave no valid answer, trying again\n" in done.stdout
        assert sentence.startswith("setup: ") and "Traceback" not in sentence
        return sentence


def packages(folder: Path) -> None:
    """A mirror of three packages: a wheel, a source distribution, and setuptools as it is here."""
    name = WHEEL.replace("-", "_")
    (folder / WHEEL).mkdir(parents=True)
    with zipfile.ZipFile(folder / WHEEL / f"{name}-1.0-py3-none-any.whl", "w") as wheel:
        wheel.writestr(f"{name}.py", "def main():\n    print('it starts')\n")
        wheel.writestr(f"{name}/tests/test_x.py", "")
        wheel.writestr(f"{name}-1.0.dist-info/METADATA", f"Metadata-Version: 2.1\nName: {WHEEL}\nVersion: 1.0\n")
        wheel.writestr(f"{name}-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        wheel.writestr(f"{name}-1.0.dist-info/RECORD", "")
    (folder / SOURCE).mkdir()
    files = {
        "setup.py": f"from setuptools import setup\nsetup(name={SOURCE!r}, version='1.0', py_modules=['of_source'])\n",
        "of_source.py": "",
        "PKG-INFO": f"Metadata-Version: 2.1\nName: {SOURCE}\nVersion: 1.0\n",
    }
    with tarfile.open(folder / SOURCE / f"{SOURCE}-1.0.tar.gz", "w:gz") as tar:
        for path, text in files.items():
            info = tarfile.TarInfo(f"{SOURCE}-1.0/{path}")
            info.size = len(text)
            tar.addfile(info, io.BytesIO(text.encode()))
    setuptools = metadata.distribution("setuptools")
    (folder / "setuptools").mkdir()
    with zipfile.ZipFile(folder / "setuptools" / f"setuptools-{setuptools.version}-py3-none-any.whl", "w") as wheel:
        for file in setuptools.files or ():
            installed = Path(file.locate())
            if file.suffix != ".pyc" and installed.is_file():
                wheel.write(installed, file.as_posix())


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """A site whose checkout has an environment, made through pip.conf alone."""
    need("openssl")
    if (ROOT / ".venv/conda-meta").exists():
        missing("the environment is conda's")
    top = tmp_path_factory.mktemp("site")
    checkout, home, certificate = top / "a b ü", top / "home", top / "site's own.pem"
    checkout.mkdir()
    (checkout / "pyproject.toml").write_text(PROJECT)
    (checkout / "requirements.lock").write_text(LOCK)
    (checkout / "setup").symlink_to(ROOT / "setup")
    packages(top / "mirror/simple")
    key = top / "key.pem"
    subprocess.run(
        [
            "openssl",
            "req",
            "-x509",
            "-newkey",
            "ec",
            "-pkeyopt",
            "ec_paramgen_curve:prime256v1",
            "-nodes",
            "-days",
            "2",
            "-subj",
            "/CN=site",
            "-addext",
            "subjectAltName=DNS:localhost,DNS:mirror.invalid,IP:127.0.0.1",
            "-keyout",
            key,
            "-out",
            certificate,
        ],
        check=True,
        capture_output=True,
    )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    index = ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Index, directory=str(top / "mirror")))
    # the handshake belongs to the thread of its connection
    index.socket = context.wrap_socket(index.socket, server_side=True, do_handshake_on_connect=False)
    connected: list[str] = []
    with serving(index) as port:
        proxy = type("CountingProxy", (Proxy,), {"connected": connected, "port": port})
        with serving(ThreadingHTTPServer(("127.0.0.1", 0), proxy)) as proxy_port:
            found = Site(checkout, home, certificate, port, f"http://127.0.0.1:{proxy_port}", connected)
            (home / ".config/pip").mkdir(parents=True)
            configuration = home / ".config/pip/pip.conf"
            configuration.write_text(
                f"[global]\nindex-url = {found.index}\ncert = {certificate}\n[install]\nuser = true\n"
            )
            done = found.call("setup/venv", "requirements.lock")
            configuration.unlink()
            assert done.returncode == 0, done.stderr
            (top / "printed").write_text(done.stdout)
            yield found


def test_pip_conf_alone_is_enough(site: Site) -> None:
    assert f"step: {WHEEL}\n" in (site.checkout.parent / "printed").read_text()
    versions = site.call(".venv/bin/python", "-m", "pip", "list", "--format=freeze").stdout
    assert f"{WHEEL}==1.0" in versions and f"{SOURCE}==1.0" in versions


def test_a_program_starts_in_a_path_with_a_space(site: Site) -> None:
    done = site.call(site.checkout / ".venv/bin/trial")
    assert (done.stdout, done.stderr) == ("it starts\n", "")


def test_the_tests_of_packages_are_not_kept(site: Site) -> None:
    assert not list(site.checkout.glob(".venv/lib/*/site-packages/*/tests"))


@pytest.mark.parametrize("variable", ["PIP_CERT", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "SSL_CERT_FILE"])
def test_the_environment_alone_is_enough(site: Site, tmp_path: Path, variable: str) -> None:
    environment = {"PIP_INDEX_URL": site.index, variable: str(site.certificate), "PIP_CONFIG_FILE": os.devnull}
    assert site.downloaded(tmp_path / "out", **environment) == ""
    assert site.connected == []


def test_a_trusted_host_needs_no_certificate(site: Site, tmp_path: Path) -> None:
    site.downloaded(
        tmp_path / "out",
        PIP_INDEX_URL=site.index,
        PIP_TRUSTED_HOST=f"localhost:{site.port}",
        PIP_CONFIG_FILE=os.devnull,
    )


@pytest.mark.parametrize("variable", ["HTTPS_PROXY", "https_proxy", "PIP_PROXY"])
def test_through_the_proxy_alone(site: Site, tmp_path: Path, variable: str) -> None:
    """The name of this index does not resolve."""
    index = {"PIP_INDEX_URL": f"https://mirror.invalid:{site.port}/simple", "PIP_CERT": str(site.certificate)}
    site.connected.clear()
    site.downloaded(tmp_path / "out", PIP_CONFIG_FILE=os.devnull, **index, **{variable: site.proxy})
    assert set(site.connected) == {f"mirror.invalid:{site.port}"}
    site.connected.clear()


def test_no_proxy_for_a_host_of_the_site(site: Site, tmp_path: Path) -> None:
    index = {"PIP_INDEX_URL": site.index, "PIP_CERT": str(site.certificate)}
    site.downloaded(tmp_path / "out", PIP_CONFIG_FILE=os.devnull, **index, HTTPS_PROXY=site.proxy, NO_PROXY="localhost")
    assert site.connected == []


def test_an_unknown_certificate_is_named_with_its_remedy(site: Site) -> None:
    sentence = site.refused(PIP_INDEX_URL=site.index, PIP_CONFIG_FILE=os.devnull)
    assert re.match(r"setup: the certificate of localhost cannot be verified \(self.signed certificate\): ", sentence)
    assert "`PIP_CERT=FILE make run`" in sentence and "pip config set global.cert FILE" in sentence


def test_an_index_or_proxy_that_cannot_be_reached_is_named_with_its_remedy(site: Site) -> None:
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))  # and listens not
        address = f"127.0.0.1:{nobody.getsockname()[1]}"
        known = {"PIP_CERT": str(site.certificate), "PIP_CONFIG_FILE": os.devnull}
        for wrong in ({"PIP_INDEX_URL": f"https://{address}"}, {"HTTPS_PROXY": f"http://{address}"}):
            sentence = site.refused(**{"PIP_INDEX_URL": site.index} | known | wrong)
            assert "can be reached: set HTTPS_PROXY" in sentence and "PIP_INDEX_URL" in sentence


def test_a_package_that_the_mirror_lacks_is_named(site: Site) -> None:
    done = site.call(
        ROOT / "setup/pip",
        "install",
        "nodeprint-trial-none==1",
        PIP_INDEX_URL=site.index,
        PIP_CERT=str(site.certificate),
        PIP_CONFIG_FILE=os.devnull,
    )
    assert done.returncode == 1
    assert "No matching distribution found for nodeprint-trial-none==1" in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_without_internet_from_a_folder_with_a_space(site: Site, tmp_path: Path) -> None:
    wheels = tmp_path / "b ü/wheels"
    wheels.mkdir(parents=True)
    for file in (site.checkout.parent / "mirror/simple").glob("*/*.*"):
        shutil.copy2(file, wheels)
    shutil.copytree(site.checkout, tmp_path / "offline", ignore=shutil.ignore_patterns(".venv"), symlinks=True)
    # the index cannot be reached, and is not asked
    environment = {"OFFLINE": str(wheels.parent), "PIP_INDEX_URL": "https://mirror.invalid/simple"}
    offline = Site(tmp_path / "offline", site.home, site.certificate, 0, "")
    done = offline.call("setup/venv", "requirements.lock", **environment)
    assert done.returncode == 0, done.stderr
    assert offline.call(".venv/bin/trial").stdout == "it starts\n"
