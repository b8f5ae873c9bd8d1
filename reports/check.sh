#!/bin/sh
# Measures what was found on a node again, and says whether it is still there.
#
# USAGE
#   sh NODE-check.sh [FINDING]
#   example: sh cn017-check.sh 1
#   FINDING is its number on the node's page; without one all findings are measured.
#
# REQUIREMENTS
#   Linux, a shell and awk, and nodeprint's kernels for this machine; no root, no Python. A kernel is looked for in the
#   folder that NODEPRINT_KERNELS names, beside this file, and in kernels/build of the current folder, of this file's
#   folder and of the three folders above that.
#
# OVERHEAD
#   Three runs of the measurement as it was made: a second to a minute each. Measured data are removed.
#
# WARNING
#   Measure on an otherwise idle node. A run beside other programs is not judged.
#
# Ends with a line that begins with PASS, FAIL or INCONCLUSIVE, and with 0, 1 or 3; 2 is bad usage. Each of the three runs
# has to say the same. Of several findings FAIL counts more than INCONCLUSIVE, and that more than PASS.

runs=3
# What was found follows, as nodeprint fills it in; shellcheck looks at filled-in ones (tests/unit/report/test_check_scripts.py).
# @findings@

usage() {
    echo "usage: sh ${0##*/} [FINDING]   FINDING: 1 to $count, as on the page of $node; none: all" >&2
    exit 2
}

# inconclusive WHY: the last line of a finding that could not be judged
inconclusive() {
    printf 'INCONCLUSIVE: %s: %s\n' "$title" "$1"
    return 3
}

# find_kernel: sets $bin to the kernel of a finding that starts on this machine
find_kernel() {
    here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)
    for folder in ${NODEPRINT_KERNELS:+"$NODEPRINT_KERNELS"} "$here" kernels/build "$here/kernels/build" \
        "$here/../kernels/build" "$here/../../kernels/build" "$here/../../../kernels/build"; do
        for bin in "$folder/$kernel" "$folder/static/$kernel"; do
            [ -x "$bin" ] && "$bin" --help </dev/null >/dev/null 2>&1 && return 0
        done
    done
    return 1
}

# used: CPU time that all programs, and those that this shell started and waited for, have had: two numbers of ticks
used() {
    times >"$work/times"
    awk -v hz="$(getconf CLK_TCK 2>/dev/null || echo 100)" '
        function ticks(text,    part) { split(text, part, /[ms]/); return (60 * part[1] + part[2]) * hz }
        FILENAME == "/proc/stat" { if ($1 == "cpu") all = $2 + $3 + $4 + $7 + $8 + $9; next }
        FNR == 2 { printf "%d %d\n", all, ticks($1) + ticks($2) }' /proc/stat "$work/times"
}

# one_run NUMBER: appends to $work/values what a run shows: its value, or `none` and why
one_run() {
    rm -f "$work/records.jsonl" # what an earlier run left is never judged
    before=$(used) began=$(date +%s)
    measure "$1" >/dev/null || {
        echo "none the kernel $kernel ended with $?" >>"$work/values"
        return 0
    }
    after=$(used)
    # shellcheck disable=SC2086 # two numbers each
    others=$(set -- $before $after && echo "$(($3 - $1 - $4 + $2)) $(($4 - $2))")
    awk -v dims="$dims" -v key="$key" -v statistic="$statistic" -v center="$center" -v peers="$expected" \
        -v others="$others" -v seconds="$(($(date +%s) - began))" -v disturbed="$disturbed_percent" \
        -v hz="$(getconf CLK_TCK 2>/dev/null || echo 100)" '
        function field(name,    at, text) {
            at = index($0, "\"" name "\":")
            if (!at) return ""
            text = substr($0, at + length(name) + 3)
            if (substr(text, 1, 1) == "\"") { text = substr(text, 2); return substr(text, 1, index(text, "\"") - 1) }
            sub(/[],}].*/, "", text)
            return text
        }
        function median(text,    list, count, i, j, swap) {
            count = split(text, list, " ")
            for (i = 2; i <= count; i++)
                for (j = i; j > 1 && list[j - 1] + 0 > list[j] + 0; j--) { swap = list[j]; list[j] = list[j - 1]; list[j - 1] = swap }
            return count % 2 ? list[(count + 1) / 2] : (list[count / 2] + list[count / 2 + 1]) / 2
        }
        # awk may be built without log and exp, as that of BusyBox is
        function ln(value,    whole, part, power, n, sum) {
            for (whole = 0; value > 1.25; whole++) value /= 1.25
            for (; value < 0.8; whole--) value *= 1.25
            part = (value - 1) / (value + 1)
            for (power = part; n < 20; n++) { sum += power / (2 * n + 1); power *= part * part }
            return 2 * sum + whole * 0.22314355131420976
        }
        function e_to(value,    halved, n, term, sum) {
            for (halved = 0; value > 0.1 || value < -0.1; halved++) value /= 2
            for (sum = term = 1; n < 12; ) { n++; term *= value / n; sum += term }
            while (halved-- > 0) sum *= sum
            return sum
        }
        function say(text) { print text; said = 1; exit }
        BEGIN { dim_count = split(dims, dim, " ") }
        FNR == NR { usual[$4] = $1; weight[$4] = $2; home[$4] = $3; next }
        { gsub(/": /, "\":") }
        /"record":"header"/ && /"applicable":false/ { say("none it does not apply here: " field("reason")) }
        /"record":"(pair|cell)"/ {
            place = ""
            for (i = 1; i <= dim_count; i++) place = place (i > 1 ? "," : "") field(dim[i])
            if (dims == "a b" && field("a") + 0 > field("b") + 0) place = field("b") "," field("a")
            if (!(place in usual)) next
            if (home[place] != "any" && index("," home[place] ",", "," field("home") ",") == 0) next
            value = field(key)
            if (value == "" || value == "null") next
            values[place] = values[place] " " value
            records++
            if ($0 ~ /"(disturbed|moved|oversubscribed)"/) flagged++
        }
        END {
            if (said) exit
            for (place in usual) {
                sign = weight[place] > 0
                whole[sign] += weight[place]
                if (!(place in values)) continue
                there[sign] += weight[place]
                value = median(values[place])
                if (statistic == "median") { all = all " " value; continue }
                if (statistic == "log" && value <= 0) continue
                difference = statistic == "log" ? ln(value / usual[place]) : value / usual[place] - 1
                if (statistic == "mean" && dims == "a b" && difference > 1) difference = 1
                sum[sign] += weight[place] * difference
            }
            for (sign in whole) if (there[sign] / whole[sign] < 0.5) say("none more than half of its places were not measured")
            if (100 * flagged > disturbed * records)
                say(sprintf("none the kernel saw %d of %d values disturbed", flagged, records))
            split(others, ticks, " ")
            if (ticks[1] > seconds * hz * 0.1 + ticks[2] * 0.02 + 5)
                say(sprintf("none other programs took %.1f s of CPU time meanwhile", ticks[1] / hz))
            for (sign in sum) total += sum[sign] * whole[sign] / there[sign]
            if (statistic == "median") print median(all)
            else if (statistic == "log") printf "%.9g\n", peers * e_to(total - center)
            else printf "%.9g\n", peers * (1 + total - center)
        }' "$work/places" "$work/records.jsonl" >>"$work/values"
}

# check NUMBER: measures a finding and prints its last line; returns 0, 1 or 3
check() {
    finding "$1"
    [ -z "$why_not" ] || { inconclusive "$why_not"; return; }
    find_kernel || { inconclusive "there is no kernel $kernel that starts here: build it with make -C kernels"; return; }
    echo "$title: $runs runs of $kernel on $(uname -n)" >&2
    places "$1" >"$work/places"
    awk '{ sub(/,/, " ", $4); print $4 }' "$work/places" >"$work/pairs"
    : >"$work/values"
    run=1
    while [ "$run" -le "$runs" ] && ! grep -q '^none' "$work/values"; do # one run without a value decides
        one_run "$1"
        run=$((run + 1))
    done
    line=$(awk -v title="$title" -v expected="$expected" -v end="$end" -v side="$side" -v size="$size" -v unit="$unit" \
        -v runs="$runs" '
        function shown(value) { return sprintf(unit == "%" ? "%.4g%s" : "%.4g %s", value / size, unit) }
        $1 == "none" { sub(/^none /, ""); why = why ? why : $0; next }
        {
            count++; sum += $1
            if (count == 1 || $1 + 0 < low) low = $1 + 0
            if (count == 1 || $1 + 0 > high) high = $1 + 0
            fails += side == "most" ? $1 + 0 > end : $1 + 0 < end
        }
        END {
            if (!why && count != runs) why = "a run has no value"
            if (why) { printf "INCONCLUSIVE: %s: %s\n", title, why; exit }
            result = !fails ? "PASS" : fails == count ? "FAIL" : "INCONCLUSIVE"
            wanted = (expected == end ? "" : "expected " shown(expected) ", ") "at " side " " shown(end)
            printf "%s: %s: %s in %d runs (%s to %s), %s\n", result, title, shown(sum / count), count, shown(low), shown(high), wanted
        }' "$work/values")
    case $line in
    PASS*) code=0 ;;
    FAIL*) code=1 ;;
    *) code=3 ;;
    esac
    echo "${line:-INCONCLUSIVE: $title: awk failed}"
    return "$code"
}

[ $# -le 1 ] || usage
case ${1-} in
'') numbers=$(awk -v count="$count" 'BEGIN { for (i = 1; i <= count; i++) print i }') ;;
*[!0-9]* | ??????*) usage ;;
*) numbers=$1 ;;
esac
if [ -n "${1-}" ] && { [ "$1" -lt 1 ] || [ "$1" -gt "$count" ]; }; then usage; fi
work=$(mktemp -d) || { echo "INCONCLUSIVE: no folder for the measurement can be made in ${TMPDIR:-/tmp}"; exit 3; }
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM
[ -z "$origin" ] || echo "$origin: what is expected was not measured here" >&2

failed=0 unknown=0
for number in $numbers; do
    check "$number"
    case $? in
    0) ;;
    1) failed=$((failed + 1)) ;;
    *) unknown=$((unknown + 1)) ;;
    esac
done
if [ -z "${1-}" ] && [ "$count" -gt 1 ]; then
    result=PASS
    [ "$unknown" -eq 0 ] || result='INCONCLUSIVE'
    [ "$failed" -eq 0 ] || result=FAIL
    echo "$result: of $count findings $failed are still there and $unknown cannot be told"
fi
[ "$failed" -eq 0 ] || exit 1
[ "$unknown" -eq 0 ] || exit 3
exit 0
