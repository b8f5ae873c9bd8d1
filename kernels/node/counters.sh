# shellcheck shell=sh
# likwid's performance groups around two kernels, where the counters may be read: the clock of cores, and what the
# memory controllers move while the bandwidth kernel reads a volume that it records.

# count_groups FOLDER: of each group GROUP.csv and GROUP.err, what likwid-perfctr printed, and GROUP.jsonl, the kernel's
# records; of one that cannot be read GROUP.err alone, which says why
count_groups() {
    mkdir -p "$1"
    if ! have likwid-perfctr; then
        echo 'likwid-perfctr is not installed' | tee "$1/CLOCK.err" >"$1/MEM.err"
        return
    fi
    count_group "$1" CLOCK clock --op together --seconds 1
    # a processor may have more channels than a group has counters: MEM1 and MEM2 of Zen 3
    groups=$(limited likwid-perfctr -a 2>/dev/null | awk '$1 ~ /^MEM[0-9]*$/ { print $1 }')
    [ -n "$groups" ] || echo 'likwid has no group MEM for this processor' >"$1/MEM.err"
    for group in $groups; do
        count_group "$1" "$group" bandwidth --op machine --streams load
    done
}

# count_group FOLDER GROUP KERNEL ARGUMENTS...
count_group() {
    count=$1/$2 group=$2 kernel=$3
    shift 3
    counted() { limited env LIKWID_IGNORE_CPUSET=1 likwid-perfctr -c "$(allowed_cpus)" -g "$group" -O "$@" </dev/null >"$count.csv" 2>"$count.err"; }
    # with nothing first: a kernel is not begun where nothing can be read
    if ! counted true; then
        rm -f "$count.csv"
        [ -s "$count.err" ] || echo 'likwid-perfctr failed and said nothing' >"$count.err"
    elif find_kernel "$kernel"; then
        counted "$bin/$kernel" "$@" --cpus cores --passes 1 --out "$count.jsonl"
    fi
}
