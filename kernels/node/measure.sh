# shellcheck shell=sh
# One kernel at a time: found, run in a process group of its own, and its records judged by how it ended.

# see_pinning: sets $likwid to works, missing or what is wrong with likwid-pin. In a reduced cpuset it takes the numbers
# of CPUs as places in the set unless it is told to ignore the set. The last CPU shows which it does, as its number is
# beyond the places of every set that has a gap.
see_pinning() {
    likwid=missing
    if have likwid-pin; then
        last=$(allowed_cpus | sed 's/.*[-,]//')
        if LIKWID_IGNORE_CPUSET=1 limited likwid-pin -q -c "$last" cat /proc/self/status </dev/null >"$tmp/said" 2>&1; then
            got=$(sed -n 's/^Cpus_allowed_list:[[:space:]]*//p' "$tmp/said")
            if [ "$got" = "$last" ]; then
                likwid=works
            else
                likwid="failed: asked for CPU $last it pins to CPU $got"
                say "likwid-pin $likwid; the kernels pin themselves"
            fi
        else
            likwid="failed: $(one_line "$(last_words)")"
            say "likwid-pin $likwid; the kernels pin themselves"
        fi
    fi
}

# see_atomics: sets $lse where the CPU has the atomic instructions of ARMv8.1
see_atomics() {
    lse=
    if sed -n 's/^Features[[:space:]]*:\(.*\)/\1 /p' "${NODEPRINT_PROCFS:-/proc}/cpuinfo" | grep -q ' atomics '; then lse=yes; fi
}

# find_kernel NAME: sets $bin to the folder of a kernel that starts, the dynamic one first; of aarch64's two builds the
# one with atomic instructions (LSE) where the CPU has them, and that with LL/SC elsewhere. The record's header says
# which.
find_kernel() {
    for bin in ${lse:+"$kernels/lse"} "$kernels" ${lse:+"$kernels/static/lse"} "$kernels/static"; do
        [ -x "$bin/$1" ] && "$bin/$1" --help </dev/null >/dev/null 2>"$tmp/said" && return
    done
    return 1
}

# pin_list COMMAND...: the CPUs in the order that likwid-pin needs, as the kernel's plan says
pin_list() { "$@" --plan </dev/null 2>/dev/null | sed -n 's/^pin_list //p'; }

uptime_s() { read -r up _ </proc/uptime && printf '%s' "$up"; }

# run_kernel COMMAND...: in a process group of its own that holds the lock; what it says goes to the terminal, the log
# and $tmp/said
run_kernel() {
    rm -f "$tmp/said" "$tmp/pipe"
    : >"$tmp/said"
    mkfifo "$tmp/pipe" || {
        echo "no pipe can be made in $tmp" >"$tmp/said"
        return 1
    }
    (
        trap '' PIPE TERM INT HUP # what the kernel says is logged to its end, also when nobody reads along any more
        exec tee -a /proc/self/fd/7 "$tmp/said"
    ) <"$tmp/pipe" >&2 6>&- 8>&- 9>&- &
    tee=$!
    setsid "$@" </dev/null >"$tmp/pipe" 2>&1 3<&- 6>&- 7>&- &
    kernel_group=$!
    wait "$kernel_group"
    result=$?
    kernel_group=
    wait "$tee"
    return $result
}

last_words() { tr '\r' '\n' <"$tmp/said" | sed '/^[[:space:]]*$/d' | tail -n 1; }

# measure RUN NAME KERNEL ARGUMENTS: one record file, begun or continued, compressed when its kernel is done
measure() {
    run=$1 name=$2 kernel=$3 arguments=$4
    out=run$run/$name.jsonl
    if path=$(linked "run$run" || not_ours "$out" "$out.gz" "$out.gz.tmp"); then
        why="$path: is no regular file, and only those are replaced; remove it, then run again"
    elif path=$(doubled "$out"); then
        why="$path: has another name (a hard link), and what is written would change that file, too; remove it, then run again"
    else
        why=
    fi
    if [ -n "$why" ]; then
        say "$name: $why"
        note "$run" "$name" failed -1 0 native "$why"
        return
    fi
    if grep -qx "$run$TAB$name" "$tmp/packed.tsv"; then return; fi
    if [ -f "$out.gz" ]; then
        if gzip -t "$out.gz" 2>/dev/null; then
            rm -f "$out"
            return
        fi
        set_aside "$out.gz"
    fi
    mkdir -p "run$run" 2>/dev/null
    if ! find_kernel "$kernel"; then
        if [ -x "$kernels/$kernel" ] || [ -x "$kernels/static/$kernel" ]; then
            why="kernel $kernel does not start: $(last_words)"
        else
            why="no kernel $kernel in $kernels; check plan.tsv, or build the kernels"
        fi
        say "$name: $why"
        note "$run" "$name" failed -1 0 native "$why"
        return
    fi
    seed=$(printf '%s %s %s %s' "$node" "$job" "$run" "$name" | cksum)
    seed=${seed%% *}
    case " $arguments " in
    *' --cpus '* | *' --cpus='*) ;;
    *) arguments="--cpus cores --siblings $arguments" ;;
    esac
    # shellcheck disable=SC2086 # split at blanks, as docs/formats.md says
    set -- $arguments --out "$out" --job "$job" --run "$run" --seed "$seed"
    pinned_by=native list=
    if [ "$likwid" = works ] && [ "${bin#"$kernels/static"}" = "$bin" ]; then
        list=$(pin_list "$bin/$kernel" "$@")
    fi
    if [ -n "$list" ]; then
        pinned_by='likwid-pin'
        # by PATH, as likwid-pin splits its command at blanks
        set -- env LIKWID_IGNORE_CPUSET=1 PATH="$bin:$PATH" likwid-pin -q -c "$list" "$kernel" "$@"
    else
        set -- "$bin/$kernel" "$@"
    fi
    begun=$(uptime_s)
    kernel_name=$kernel
    former=no
    [ ! -s "$out" ] || former=yes
    run_kernel "$@"
    code=$?
    if [ $code -eq 2 ] && [ $former = yes ]; then
        set_aside "$out" 'measured again' "is refused ($(last_words))"
        run_kernel "$@"
        code=$?
        # refused again: it was not the file
        if [ $code -eq 2 ] && mv -f "$aside" "$out"; then say "$out is restored: the kernel refuses its arguments"; fi
    fi
    if [ $code -eq 1 ] && [ $pinned_by = likwid-pin ] && [ ! -s "$out" ]; then
        say "$name: likwid-pin failed ($(last_words)): the kernel pins itself"
        while [ "$1" != "$kernel" ]; do shift; done
        shift
        pinned_by=native
        run_kernel "$bin/$kernel" "$@"
        code=$?
    fi
    if [ $code -eq 0 ] && [ -s "$out" ] && ! is_ended "$out"; then
        set_aside "$out" 'measured again' 'ends without a trailer, though its kernel ended with 0'
        run_kernel "$@"
        code=$?
    fi
    # of a kernel that refused after it opened its file; readers would take the file for damaged records
    [ -s "$out" ] || rm -f "$out"
    # the kernel has the last word: it reads the masks back
    read_back=$(sed -n '/^{"record":"header"/s/.*"pinned_by":"\([^"]*\)".*/\1/p' "$out" 2>/dev/null | tail -n 1)
    pinned_by=${read_back:-$pinned_by}
    seconds=$(awk -v a="$begun" -v b="$(uptime_s)" 'BEGIN { printf "%.2f", b - a }')
    case $code in
    0)
        if [ -s "$out" ] && is_ended "$out" && anew "$out.gz.tmp" gzip -c "$out" 2>/dev/null && gzip -t "$out.gz.tmp" 2>/dev/null; then
            sync "$out.gz.tmp" 2>/dev/null
            nothing=$(nothing_to_measure "$out")
            if [ -n "$nothing" ]; then
                note "$run" "$name" unavailable 0 "$seconds" "$pinned_by" "$nothing"
            else
                note "$run" "$name" "done" 0 "$seconds" "$pinned_by" ""
            fi
            mv -f "$out.gz.tmp" "$out.gz" && rm -f "$out"
        else
            rm -f "$out.gz.tmp"
            why="$out: measured, but the record file could not be compressed; check quota and free space, then run again"
            [ -s "$out" ] || why="$out: the kernel ended with 0 and left no records"
            ! [ -s "$out" ] || is_ended "$out" || why="$out: the kernel ended with 0 and left records without a trailer"
            say "$why"
            note "$run" "$name" failed 0 "$seconds" "$pinned_by" "$why"
        fi
        ;;
    4) note "$run" "$name" unavailable $code "$seconds" "$pinned_by" "$(last_words | sed 's/^[a-z-]*: //')" ;;
    2 | 3)
        say "$name refused with exit code $code: $(last_words)"
        note "$run" "$name" refused $code "$seconds" "$pinned_by" "$(last_words)"
        ;;
    *)
        why=$(last_words)
        [ $code -le 128 ] || why="killed by signal $((code - 128)); last words: ${why:-none}"
        say "$name failed with exit code $code: $why"
        note "$run" "$name" failed $code "$seconds" "$pinned_by" "$why"
        ;;
    esac
}

# nothing_to_measure FILE: why there is nothing to measure here, as a record's header says it; empty where there is
nothing_to_measure() { sed -n '1s/.*"applicable": *false, *"reason": *"\([^"]*\)".*/\1/p' "$1"; }

# is_ended FILE: whether its last line is a record's trailer
is_ended() { tail -n 1 "$1" | grep -q '^{"record": *"trailer".*}$'; }

# hottest: the highest temperature that the system reports, in whole degrees Celsius; nothing where it reports none
hottest() (
    set +f
    cat "${NODEPRINT_SYSFS:-/sys}"/class/hwmon/hwmon*/temp*_input 2>/dev/null | sort -n | tail -n 1 | sed 's/...$//'
)

# cool SECONDS: waits until the node is within five degrees of where it was before it was heated for so long, for as
# long as that at most; where no temperature is reported half as long
cool() {
    now_c=$(hottest)
    if [ "$1" -eq 0 ]; then
        cold_c=$now_c
    elif [ -z "$now_c" ] || [ -z "${cold_c:-}" ]; then
        # a load of a second, as tests have it, leaves nothing to wait for
        if [ "$1" -ge 2 ]; then
            say "no temperature is reported: the node cools for $(($1 / 2)) s"
            sleep $(($1 / 2))
        fi
    elif [ "$now_c" -gt $((cold_c + 5)) ]; then
        say "the node has $now_c degrees and had $cold_c before: it cools for at most $1 s"
        waited=0
        while [ "$waited" -lt "$1" ] && [ "$(hottest)" -gt $((cold_c + 5)) ]; do
            sleep 1
            waited=$((waited + 1))
        done
        say "it cooled for $waited s, to $(hottest) degrees"
    fi
}

# set_aside FILE [CONSEQUENCE [WHAT]]: keeps a file that cannot be used under another name, $aside
set_aside() {
    aside=$1.bad tries=1
    while [ -e "$aside" ]; do
        tries=$((tries + 1))
        aside=$1.bad$tries
    done
    mv "$1" "$aside"
    say "$1 ${3:-is malformed}: kept as $aside, ${2:-measured again}"
}
