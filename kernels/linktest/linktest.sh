#!/bin/sh
# linktest: LinkTest with the Python that has mpi4py: nodeprint's environment, or else python3 on the PATH. Where neither is
# or python3 is too old it is unavailable (exit code 4), as it is where there is no MPI.
here=$(dirname "$0")
kernels=$(cd "$here/.." && pwd) || exit 1
[ -d "$kernels/linktest" ] || kernels=${kernels%/*} # from build/static/
export PYTHONDONTWRITEBYTECODE=1
for python in "$kernels/../.venv/bin/python" python3; do
    if "$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
        exec "$python" "$kernels/linktest/__main__.py" "$@"
    fi
done

reason="no Python 3.11 or later here, which LinkTest needs with mpi4py: install it, or load its module in site.setup"
echo "linktest: $reason" >&2
for word in "$@"; do
    case $word in
    --help | -h) exit 0 ;; # it starts, and has this to say
    --plan | --nodes | --nodes=*) exit 3 ;;
    esac
done
exit 4
