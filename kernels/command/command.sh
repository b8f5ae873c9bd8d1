#!/bin/sh
# command: runs a command of the site and records its output and exit status, as other kernels record what they measure.
# POSIX sh, so that it needs no build and no Python on the node. Nothing reads the output here: nodeprint does, at home.
set -u
export LC_ALL=C

usage() {
    cat <<'TEXT'
USAGE
  command --command WORD --out FILE [options]
    --command WORD   the command, for sh -c; %20 is a blank, %25 a percent sign, as in a URL
    --limit SECONDS  stop it after so many seconds (default 600)
    --out FILE       its output and exit status, a line of JSON for each line of output
    --job N, --run N, --seed N   are recorded; --cpus and --siblings are ignored: the command has all CPUs
    --plan           print the seconds that it may take, and end
  example: kernels/build/command --command 'echo%20Triad:%201%201%201%201' --out /tmp/echo.jsonl

REQUIREMENTS
  setsid (util-linux), and the usual small tools. No root: the command runs as the user who calls this.

OVERHEAD
  Asleep while the command runs. Output beyond 4 MiB stops the command.

WARNING
  The command runs in an empty directory that is removed after it, and so do processes that it leaves in its session.
TEXT
}
refuse() {
    echo "command: $*" >&2
    exit "${code:-2}"
}

most=4194304 # bytes of output
words='' limit=600 out='' job=1 run=1 seed=0 plan=
while [ $# -gt 0 ]; do
    case $1 in
    --help | -h)
        usage
        exit 0
        ;;
    --plan | --siblings)
        [ "$1" = --siblings ] || plan=yes
        shift
        continue
        ;;
    --command | --limit | --out | --job | --run | --seed | --cpus) [ $# -ge 2 ] || refuse "$1 takes a value; see --help" ;;
    *) refuse "unknown argument '$1'; see --help" ;;
    esac
    case $1 in
    --command) words=$2 ;;
    --limit) limit=$2 ;;
    --out) out=$2 ;;
    --job) job=$2 ;;
    --run) run=$2 ;;
    --seed) seed=$2 ;;
    esac
    shift 2
done
[ -n "$words" ] || refuse "--command is missing; see --help"
for number in "$limit" "$job" "$run" "$seed"; do
    case $number in '' | *[!0-9]*) refuse "'$number' is no whole number; see --help" ;; esac
done
if [ -n "$plan" ]; then
    echo "seconds $limit"
    exit 0
fi
[ -n "$out" ] || refuse "--out is missing; see --help"

# decoded WORD: %XX as the byte
decoded() {
    printf '%s\n' "$1" | awk '
        BEGIN { for (i = 1; i < 256; i++) byte[sprintf("%02X", i)] = sprintf("%c", i) }
        { n = split($0, part, "%"); text = part[1]
          for (i = 2; i <= n; i++) text = text byte[substr(part[i], 1, 2)] substr(part[i], 3)
          print text }'
}
# encoded FORMAT: lines of any bytes as strings of JSON, a byte beyond ASCII as \u00XX, each printed by FORMAT
encoded() {
    awk -v format="$1\n" '
        BEGIN { for (i = 1; i < 256; i++) byte[sprintf("%c", i)] = sprintf("\\u%04x", i) }
        /[^ !#-[\]-~]/ { text = ""
            for (i = 1; i <= length($0); i++) { c = substr($0, i, 1); text = text (c ~ /[ !#-[\]-~]/ ? c : byte[c]) }
            $0 = text }
        { printf format, $0 }'
}
uptime_s() { read -r up _ </proc/uptime && printf '%s' "$up"; }

command=$(decoded "$words")
host=$(uname -n)
if [ -s "$out" ]; then # of an attempt that failed or was cut off; a command cannot be continued
    aside=$out.failed tries=1
    while [ -e "$aside" ]; do
        tries=$((tries + 1))
        aside=$out.failed$tries
    done
    mv "$out" "$aside"
fi
code=3
make_room() { work=$(mktemp -d "${TMPDIR:-/tmp}/nodeprint-command.XXXXXX") && mkdir "$work/scratch" && mkfifo "$work/pipe"; }
make_room || refuse "no directory can be made in ${TMPDIR:-/tmp}; make room there"
{
    printf '{"record":"header","schema":1,"segment":0,"kernel":"command","operation":"command","quantity":"figure","unit":""'
    printf ',"host":"%s","boot_id":"%s"' "${host%%.*}" "$(cat /proc/sys/kernel/random/boot_id)"
    printf ',"job":%d,"run":%d,"seed":%d,"start_time":"%s"' "$job" "$run" "$seed" "$(date -u +%Y-%m-%dT%H:%M:%SZ)"
    printf ',"arguments":["--command","%s"]' "$(printf '%s\n' "$words" | encoded %s)"
    printf ',"cpus":[],"passes":1,"kernel_hash":"@KERNEL_HASH@","compiler":"sh","pinned_by":"native"'
    printf ',"clock":{"source":"clock_gettime","hz":100,"step_ns":10000000}'
    printf ',"cells":{"dims":[],"values":{"value":""}}}\n'
} >"$out" || refuse "$out: cannot be written; check permissions, quota and free space"

# record [STATUS]: the output so far, and the trailer if the command has ended
record() {
    encoded '{"record":"output","text":"%s"}' <"$work/output" >>"$out"
    [ $# -eq 0 ] || printf '{"record":"trailer","elapsed_s":%s,"complete":%s,"cells":0,"status":%d}\n' \
        "$(awk -v a="$begun" -v b="$(uptime_s)" 'BEGIN { printf "%.2f", b - a }')" "$([ "$1" -eq 0 ] && echo true || echo false)" "$1" >>"$out"
}
# end_group: stops the command and all that it has begun in its session
end_group() {
    kill -TERM "-$pid" 2>/dev/null || return 0
    tries=0
    while kill -0 "-$pid" 2>/dev/null && [ "$tries" -lt 100 ]; do
        sleep 0.1
        tries=$((tries + 1))
    done
    kill -KILL "-$pid" 2>/dev/null
}
# shellcheck disable=SC2317 # called by trap
stop() {
    trap '' TERM INT HUP
    [ -z "$watchdog" ] || kill "$watchdog" 2>/dev/null
    end_group
    record
    rm -rf "$work"
    trap - "$1"
    kill -s "$1" $$
}

: >"$work/output"
{
    head -c $most >"$work/output"
    : >"$work/read"
} <"$work/pipe" &
reader=$!
begun=$(uptime_s)
(
    cd "$work/scratch" || exit 1
    export TMPDIR="$work/scratch" NODEPRINT_NODE="${NODEPRINT_NODE:-${host%%.*}}" NODEPRINT_JOB="$job" NODEPRINT_RUN="$run"
    exec setsid sh -c "$command" </dev/null
) >"$work/pipe" 2>&1 &
pid=$!
watchdog=
trap 'stop TERM' TERM
trap 'stop INT' INT
trap 'stop HUP' HUP
(
    sleeper=
    trap 'kill "$sleeper" 2>/dev/null; exit 0' TERM
    trap - INT HUP
    sleep "$limit" &
    sleeper=$!
    wait "$sleeper"
    : >"$work/expired"
    end_group
) >/dev/null 2>&1 &
watchdog=$!
wait "$pid" 2>/dev/null
code=$?
if [ -f "$work/expired" ]; then code=124; fi
[ $code -eq 124 ] || kill "$watchdog" 2>/dev/null
wait "$watchdog"
kill -KILL "-$pid" 2>/dev/null # what it has left running
tries=0
while [ ! -f "$work/read" ] && [ "$tries" -lt 50 ]; do # what has a session of its own may still have the pipe
    sleep 0.2
    tries=$((tries + 1))
done
kill "$reader" 2>/dev/null
trap '' TERM INT HUP
if [ $code -eq 0 ] && [ "$(wc -c <"$work/output")" -ge $most ]; then code=141; fi
record $code
# bytes that are no text would change a terminal or fill a page
last=$(tr '\r' '\n' <"$work/output" | tr -cs '[:print:]\n' '?' | sed '/^[[:space:]?]*$/d' | tail -n 1 | cut -c 1-200)
why=
if [ -f "$work/expired" ]; then
    why="did not end within $limit s; raise its time_limit if it needs longer"
elif [ $code -eq 141 ] && [ "$(wc -c <"$work/output")" -ge $most ]; then
    why="printed more than 4 MiB"
elif [ $code -gt 128 ]; then
    why="killed by signal $((code - 128)); last words: ${last:-none}"
elif [ $code -eq 126 ] || [ $code -eq 127 ]; then
    why="exited with status $code: no such program, so name its path or load it in site.setup; last words: ${last:-none}"
elif [ $code -ne 0 ]; then
    why="exited with status $code; last words: ${last:-none}"
fi
rm -rf "$work"
[ -z "$why" ] || {
    echo "command: $why" >&2
    exit 1
}
