#!/bin/sh
# linktest: LinkTest with the Python that has mpi4py: nodeprint's environment, or else python3 on the PATH. Where neither is
# or python3 is too old, the record file says that nothing was measured and why, as it does where there is no MPI.
here=$(dirname "$0")
kernels=$(cd "$here/.." && pwd) || exit 1
[ -e "$kernels/linktest.py" ] || kernels=${kernels%/*} # from build/static/
export PYTHONDONTWRITEBYTECODE=1
for python in "$kernels/../.venv/bin/python" python3; do
    if "$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
        exec "$python" "$kernels/linktest.py" "$@"
    fi
done

reason="no Python 3.11 or later here, which LinkTest needs with mpi4py: install it, or load its module in site.setup"
echo "linktest: $reason" >&2
out='' job=1 run=1 between=''
while [ $# -gt 0 ]; do
    case $1 in
    --help | -h) exit 0 ;; # it starts, and has this to say
    --out) out=${2-} ;;
    --job) job=${2-} ;;
    --run) run=${2-} ;;
    --plan | --nodes) between=yes ;;
    esac
    shift
done
[ -n "$out" ] && [ -z "$between" ] && [ ! -e "$out" ] || exit 3
hash=$(awk '$1 == "linktest" { print $2; exit }' "$here/hashes.tsv" 2>/dev/null)
{
    printf '{"record":"header","schema":1,"segment":0,"kernel":"linktest","operation":"semidirectional",'
    printf '"kernel_hash":"%s","arguments":[],"cpus":[],"host":"%s",' "${hash:-0000000000000000}" "$(uname -n | cut -d . -f 1)"
    printf '"job":%d,"run":%d,"quantity":"message","unit":"ns","seed":0,"passes":1,"home":null,' "$job" "$run"
    printf '"boot_id":"%s","start_time":"%s",' "$(cat /proc/sys/kernel/random/boot_id)" "$(date -u +%Y-%m-%dT%H:%M:%SZ)"
    printf '"compiler":"none","clock":{"source":"clock_gettime","hz":1e9,"step_ns":1},"pinned_by":"native",'
    printf '"applicable":false,"reason":"%s"}\n{"record":"trailer","elapsed_s":0,"pairs":0,"complete":true}\n' "$reason"
} >"$out" || exit 3
