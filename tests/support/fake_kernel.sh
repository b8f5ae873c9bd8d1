#!/bin/sh
# A kernel for the tests of node-run: writes numbered pairs slowly, and crashes, refuses or hangs as its arguments ask.
out='' job='' run='' seed='' steps=3 pause=0 crash='' refuse='' garbage='' words='' deaf='' environment=''
while [ $# -gt 0 ]; do
    case $1 in
    --help) echo "usage: fake"; exit 0 ;;
    --plan) echo 'pin_list 1,0'; exit 0 ;;
    --siblings | --cpus=*) ;;
    --deaf) deaf=yes ;;
    --environment) environment=yes ;;
    --cpus) shift ;;
    --out) out=$2; shift ;;
    --job) job=$2; shift ;;
    --run) run=$2; shift ;;
    --seed) seed=$2; shift ;;
    --steps) steps=$2; shift ;;
    --pause) pause=$2; shift ;;
    --crash) crash=$2; shift ;;
    --garbage) garbage=$2; shift ;;
    --refuse) refuse=$2; shift ;;
    --words) words=$2; shift ;;
    *) echo "fake: unknown argument $1" >&2; exit 2 ;;
    esac
    shift
done
trap 'echo "fake: leaving" >&2; sleep 0.3; exit 4' TERM
[ -z "$deaf" ] || trap '' TERM
# hostile words come as octal escapes, as arguments are split at blanks
[ -z "$words" ] || printf '%b\n' "$words" >&2
[ -z "$refuse" ] || { : >>"$out"; exit "$refuse"; } # as the real ones do, which have opened their file by then
# so many times it ends with 0 and leaves what is no record
left=0
for bad in "$out".bad*; do [ ! -e "$bad" ] || left=$((left + 1)); done
if [ -n "$garbage" ] && [ "$left" -lt "$garbage" ]; then
    echo 'not a record' >"$out"
    exit 0
fi
segment=0 n=0
if [ -s "$out" ]; then
    if grep -qv '^{"record"' "$out"; then
        echo "fake: $out, line $(grep -nv '^{"record"' "$out" | cut -d: -f1 | head -n 1): not a record" >&2
        exit 2
    fi
    segment=$(grep -c '"header"' "$out")
    n=$(grep -c '"pair"' "$out")
    if grep -q '"trailer"' "$out"; then exit 0; fi
fi
seen=$([ -z "$environment" ] || env | grep -cE '^(OMP_STACKSIZE|HWLOC_XMLFILE|MALLOC_ARENA_MAX|SITE_LOADED)=')
printf '{"record": "header", "segment": %d, "job": %d, "run": %d, "seed": %s, "pid": %d, "seen": "%s", "pin": "%s"}\n' \
    "$segment" "$job" "$run" "$seed" $$ "$seen" "${LIKWID_PIN:-}" >>"$out" || { echo "fake: $out cannot be written" >&2; exit 1; }
while [ "$n" -lt "$steps" ]; do
    [ "$pause" = 0 ] || { sleep "$pause" & wait $!; }
    [ -z "$deaf" ] || sleep "$pause"
    printf '{"record": "pair", "n": %d}\n' "$n" >>"$out" || { echo "fake: $out cannot be written" >&2; exit 1; }
    n=$((n + 1))
    [ -z "$crash" ] || kill -s "$crash" $$
done
printf '{"record": "trailer", "complete": true}\n' >>"$out"
