# shellcheck shell=sh
# Slurm jobs beside ours: a partition may start others on the node whatever a job asks for (OverSubscribe=FORCE), and
# Ansible may measure a node that Slurm has given away.

# see_jobs: notes in $tmp/beside the numbers of Slurm jobs on this node that are not the one that this runs in, by their
# control groups and their processes, as far as a user is shown these; at most every five seconds
see_jobs() {
    now_s=$(uptime_s)
    if [ "${now_s%%.*}" -lt "${jobs_seen_s:-0}" ]; then return; fi
    jobs_seen_s=$((${now_s%%.*} + 5))
    for number in $({ jobs_by_groups && jobs_by_processes; } | sort -un); do
        if [ "$number" != "${SLURM_JOB_ID:-}" ] && ! grep -qx "$number" "$tmp/beside" 2>/dev/null; then
            say "Slurm job $number runs on this node, too"
            echo "$number" >>"$tmp/beside"
        fi
    done
}

# jobs_by_groups: of control groups of versions 1 and 2 those with processes; several slurmd on a host have their node's
# name in them
jobs_by_groups() {
    own=${SLURMD_NODENAME:-}
    find "${NODEPRINT_SYSFS:-/sys}/fs/cgroup" -maxdepth 6 -type d \( -path '*/slurm/uid_*/job_*' -o -path "*/slurm_$own/uid_*/job_*" \
        -o -path '*/slurmstepd.scope/job_*' -o -path "*/${own}_slurmstepd.scope/job_*" \) 2>/dev/null |
        grep '/job_[0-9]*$' | while read -r group; do
        [ -z "$(find "$group" -name cgroup.procs -exec cat {} + 2>/dev/null | head -n 1)" ] || echo "${group##*/job_}"
    done
}

# jobs_by_processes: each step of a job has a slurmstepd, which says its number
jobs_by_processes() (
    set +f
    cat "${NODEPRINT_PROCFS:-/proc}"/[0-9]*/cmdline 2>/dev/null | LC_ALL=C tr '\0' '\n' | sed -n 's/^slurmstepd: \[\([0-9][0-9]*\)[].].*/\1/p'
)

# cpu_times: seconds since boot, ticks of all CPUs that were not idle, and ticks of this process and of those that it has
# waited for
cpu_times() {
    printf '%s %s %s' "$(uptime_s)" "$(awk '$1 == "cpu" { print $2 + $3 + $4 + $7 + $8; exit }' "${NODEPRINT_PROCFS:-/proc}/stat")" \
        "$(sed 's/.*) //' "/proc/$$/stat" | awk '{ print $12 + $13 + $14 + $15 }')"
}

# keep_jobs BEGIN: writes other_load.json where jobs were seen, with what all that is not ours took since BEGIN (cpu_times)
keep_jobs() {
    [ -s "$tmp/beside" ] || return 0
    ticks=$(getconf CLK_TCK 2>/dev/null || echo 100)
    printf '%s %s\n' "$1" "$(cpu_times)" | anew "$folder/other_load.json" awk -v ticks="$ticks" -v jobs="$(sed 's/.*/"&"/' "$tmp/beside" | paste -s -d , -)" '{
        seconds = $4 - $1
        others = seconds > 0 ? (($5 - $2) - ($6 - $3)) / ticks / seconds : 0
        if (others < 0) others = 0
        printf "{\"seconds\": %.1f, \"processes\": [], \"jobs\": [%s], \"others\": %.2f}\n", seconds, jobs, others
    }' 2>/dev/null
}
