# shellcheck shell=sh
# Slurm jobs beside ours: a partition may start others on the node whatever a job asks for (OverSubscribe=FORCE), and
# Ansible may measure a node that Slurm has given away.

# see_jobs: notes in $tmp/beside the numbers of Slurm jobs on this node other than the own one, by their control groups
# and processes, as far as a user can see these. Looks every five seconds at most, and prints one line for all of them.
see_jobs() {
    now_s=$(uptime_s)
    if [ "${now_s%%.*}" -lt "${jobs_seen_s:-0}" ]; then return; fi
    jobs_seen_s=$((${now_s%%.*} + 5))
    touch "$tmp/beside" 2>/dev/null || return 0 # a full disk
    others=$({ jobs_by_groups && jobs_by_processes; } | sort -un | grep -vx -e "${SLURM_JOB_ID:-none}" -f "$tmp/beside")
    [ -n "$others" ] || return 0
    [ -s "$tmp/beside" ] || say "other Slurm jobs run on this node: $(echo "$others" | shortened)"
    echo "$others" >>"$tmp/beside"
}

# shortened: the lines of its input as a list of five at most, and the number of the others
shortened() {
    awk 'NR <= 5 { printf "%s%s", (NR > 1 ? ", " : ""), $0 } END { if (NR > 5) printf " and %d more", NR - 5 }'
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
