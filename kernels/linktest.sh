#!/bin/sh
# linktest: LinkTest with the Python that has mpi4py: nodeprint's environment, or else python3 on the PATH.
kernels=$(cd "$(dirname "$0")/.." && pwd) || exit 1
[ -e "$kernels/linktest.py" ] || kernels=${kernels%/*} # from build/static/
python=$kernels/../.venv/bin/python
[ -x "$python" ] || python=python3
PYTHONDONTWRITEBYTECODE=1 exec "$python" "$kernels/linktest.py" "$@"
