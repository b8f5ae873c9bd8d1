#!/bin/sh
# A Slurm that answers like one and runs nothing: sbatch, squeue, scontrol, scancel and sinfo are links to this file
# (fake_slurm.py).
# In $FAKE_SLURM: `queue` (name|node|number|state|reason), the file `down` while nothing answers, `lost` while sbatch's
# answers get lost, `refusal` while sbatch refuses with its text, `most` while it takes no more jobs than that, `slow`
# while it takes so many seconds (`calls` has a + where one begins and a - where it ends). `asked` gets a line for
# each call: the moment in seconds, and the command with its options.
set -u
cd "$FAKE_SLURM" || exit 1

no_answer() {
    echo "${0##*/}: error: Unable to contact slurm controller (connect failure)" >&2
    exit 1
}
read -r moment _ </proc/uptime
case $* in *--wrap=*) options='' ;; *) options=$* ;; esac
echo "$moment ${0##*/} $options" >>asked
[ ! -e down ] || no_answer
case ${0##*/} in
sbatch)
    for word in "$@"; do
        case $word in
        --job-name=*) name=${word#*=} ;;
        --nodelist=*) node=${word#*=} ;;
        esac
    done
    if [ -e refusal ]; then
        sed -e '$!s/^/sbatch: error: /' -e '$s/^/sbatch: error: Batch job submission failed: /' refusal >&2
        exit 1
    fi
    if [ -e slow ]; then
        echo + >>calls
        sleep "$(cat slow)"
        echo - >>calls
    fi
    exec 9>lock
    flock 9 # several are called at once
    if [ -e most ] && [ "$(wc -l 2>/dev/null <queue)" -ge "$(cat most)" ] 2>/dev/null; then
        echo "sbatch: error: Batch job submission failed: Job violates accounting/QOS policy" >&2
        exit 1
    fi
    number=$(($(cat number 2>/dev/null || echo 0) + 1))
    echo "$number" >number
    echo "$name|$node|$number|PENDING|None" >>queue
    if [ -e lost ]; then
        echo "sbatch: error: Batch job submission failed: Socket timed out on send/recv operation" >&2
        exit 1
    fi
    echo "$number"
    ;;
squeue)
    case $* in
    *--states=all* | *%A*) cat queue 2>/dev/null ;;
    *) grep -v -E '[|](BOOT_FAIL|CANCELLED|COMPLETED|DEADLINE|FAILED|NODE_FAIL|OUT_OF_MEMORY|PREEMPTED|TIMEOUT)[|]' queue 2>/dev/null ;;
    esac
    ;;
scancel) echo "$*" >>canceled ;;
sinfo) echo "cn01|main*|drained|DIMM 7 is bad" ;;
scontrol)
    case "$*" in
    *config*) echo "AccountingStorageType = accounting_storage/none" ;;
    *)
        [ -e ended ] || { echo "slurm_load_jobs error: Invalid job id specified" >&2; exit 1; }
        cat ended
        ;;
    esac
    ;;
esac
exit 0
