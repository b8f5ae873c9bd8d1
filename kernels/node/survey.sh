# shellcheck shell=sh
# The survey: facts as files, in a tree that reads like the node's root.

# survey_files: paths without the leading /, one a line; what is not there is no error
survey_files() {
    cd / || return
    for path in proc/cpuinfo proc/cmdline proc/meminfo proc/loadavg proc/stat proc/version proc/uptime proc/interrupts \
        proc/self/status proc/self/cgroup proc/sys/kernel/numa_balancing proc/sys/kernel/osrelease \
        proc/sys/kernel/random/boot_id proc/sys/kernel/nmi_watchdog proc/modules \
        proc/sys/kernel/perf_event_paranoid proc/sys/kernel/randomize_va_space proc/sys/kernel/sched_autogroup_enabled \
        proc/sys/kernel/timer_migration proc/sys/kernel/watchdog proc/sys/vm/compaction_proactiveness proc/sys/vm/nr_hugepages \
        proc/sys/vm/overcommit_memory proc/sys/vm/stat_interval proc/sys/vm/swappiness proc/sys/vm/zone_reclaim_mode \
        etc/os-release usr/lib/os-release \
        sys/devices/system/clocksource/clocksource0/current_clocksource \
        sys/devices/system/clocksource/clocksource0/available_clocksource \
        sys/kernel/mm/transparent_hugepage/enabled sys/kernel/mm/transparent_hugepage/defrag sys/kernel/mm/ksm/run; do
        [ ! -f "$path" ] || echo "$path"
    done
    {
        find sys/devices/system/cpu -type f \( -path '*/topology/*' -o -path '*/cache/index*' -o -path '*/cpufreq/*' \
            -o -path '*/microcode/version' -o -path '*/smt/*' -o -path '*/vulnerabilities/*' -o -path '*/intel_pstate/*' \
            -o -path '*/amd_pstate/*' -o -path '*/thermal_throttle/*' -o -path '*/acpi_cppc/*' -o -path '*/cpuidle/*/name' \
            -o -path '*/cpuidle/*/disable' -o -path '*/cpuidle/current_*' -o -path '*/regs/identification/*' -o -name online \
            -o -name offline -o -name possible -o -name present -o -name isolated -o -name nohz_full -o -name kernel_max \)
        find sys/devices/system/cpu -type l -name cpufreq
        find sys/devices/system/node -type f \( -name cpulist -o -name cpumap -o -name distance -o -name meminfo \
            -o -name online -o -name possible -o -name 'has_*' -o -path '*/access*/initiators/*' \)
        find sys/devices/system/edac/mc -type f \( -name '*_count' -o -name mc_name -o -name size_mb -o -name 'dimm_*' -o -name size \)
        find -H sys/bus/pci/devices/* -maxdepth 1 -type f \( -name class -o -name vendor -o -name device -o -name 'current_link_*' \
            -o -name 'max_link_*' \)
        find -H sys/class/infiniband/* -maxdepth 1 -type f \( -name fw_ver -o -name hca_type -o -name board_id \)
        find sys/devices/platform -maxdepth 2 -type f -path '*/ipmi_bmc*/firmware_revision'
        find sys/hypervisor/ sys/class/dmi/id/ -maxdepth 1 -type f
        find -H sys/class/hwmon/* sys/class/thermal/thermal_zone* -maxdepth 1 -type f \( -name name -o -name type -o -name temp -o -name 'temp*_*' \)
        survey_cgroups
    } 2>/dev/null
}

# survey_cgroups: limits of our control groups and of those above them, versions 1 and 2
survey_cgroups() {
    while IFS=: read -r _ controllers path; do
        for root in sys/fs/cgroup sys/fs/cgroup/unified "sys/fs/cgroup/$controllers" "sys/fs/cgroup/${controllers%%,*}" \
            "sys/fs/cgroup/${controllers##*,}"; do
            below=${path%/}
            while :; do
                for limit in cpuset.cpus cpuset.cpus.effective cpuset.effective_cpus cpuset.mems cpuset.mems.effective \
                    cpuset.effective_mems cpu.max memory.max memory.high memory.current cpu.cfs_quota_us cpu.cfs_period_us \
                    memory.limit_in_bytes memory.usage_in_bytes; do
                    [ ! -f "$root$below/$limit" ] || echo "$root$below/$limit"
                done
                [ -n "$below" ] || break
                below=${below%/*}
            done
        done
    done <proc/self/cgroup
}

# copy_files: copies the paths of standard input below $tmp/survey, links as links; tar of sysfs itself would pad every
# file to its page. At once with GNU's cp, else a folder at a time.
copy_files() {
    if cp --help 2>&1 | grep -q -e --parents; then
        xargs cp -P --parents -t "$tmp/survey"
        return
    fi
    set --
    former=
    while read -r path; do
        if [ "${path%/*}" != "$former" ]; then
            [ $# -eq 0 ] || cp -P "$@" "$tmp/survey/$former/"
            set --
            former=${path%/*}
        fi
        set -- "$@" "$path"
    done
    [ $# -eq 0 ] || cp -P "$@" "$tmp/survey/$former/"
}

# booted_since: whether the node was booted again since the job was surveyed; where that is unknown it was not
booted_since() {
    surveyed=$(gzip -dc "$folder/survey.tar.gz" 2>/dev/null | tar -xOf - proc/sys/kernel/random/boot_id 2>/dev/null)
    [ -n "$surveyed" ] && [ "$surveyed" != "$(cat /proc/sys/kernel/random/boot_id)" ]
}

# hide TEXT: what stands in the survey in place of a serial number
hide() {
    case $serials in
    yes) printf '%s' "$1" ;;
    hash) printf 'sha256:%.12s' "$(printf '%s' "$1" | sha256sum)" ;;
    esac
}

# hide_private: takes serial numbers, MAC and IP addresses and UUIDs out of the copied files, and passwords out of the
# command line
hide_private() (
    set +f
    secret='s/([^ ]*(passw|secret|token|credential)[^ =]*)=[^ ]*/\1=*/g' mac='s/(01[:-])?([0-9a-fA-F]{2}[:-]){5}[0-9a-fA-F]{2}/*/g'
    infos='<info name="(Address|[A-Za-z0-9]*GU?ID[0-9]*|DMI[A-Za-z]*(Serial|UUID|AssetTag)|SerialNumber)"'
    ip='s/([0-9]{1,3}\.){3}[0-9]{1,3}/*/g' uuid='s/[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}/*/g'
    [ "$serials" != yes ] || mac='' ip='' uuid='' infos='^$'
    rewrite "$tmp/survey/proc/cmdline" sed -E "$secret;$uuid;$mac;$ip"
    rewrite "$own/lstopo.xml" grep -Ev "$infos"
    rewrite "$own/dmidecode.txt" hide_numbers
    for path in "$tmp"/survey/sys/class/dmi/id/*_serial "$tmp"/survey/sys/class/dmi/id/*_uuid "$tmp"/survey/sys/class/dmi/id/*_asset_tag; do
        [ ! -s "$path" ] || hide "$(cat "$path")" >"$tmp/hidden"
        [ ! -s "$path" ] || cp "$tmp/hidden" "$path"
    done
)
rewrite() { # rewrite FILE FILTER...
    [ -s "$1" ] || return 0
    file=$1
    shift
    "$@" <"$file" >"$tmp/hidden"
    cp "$tmp/hidden" "$file"
}
# shellcheck disable=SC2317 # called by rewrite
hide_numbers() {
    while IFS= read -r line; do
        case $line in
        *'Serial Number: '* | *'Asset Tag: '* | *'UUID: '*) printf '%s: %s\n' "${line%%: *}" "$(hide "${line#*: }")" ;;
        *) printf '%s\n' "$line" ;;
        esac
    done
}

# network_cards: those that are devices
network_cards() (
    set +f
    for path in /sys/class/net/*/device; do
        [ ! -e "$path" ] || (path=${path%/device} && echo "${path##*/}")
    done
)

take_survey() {
    set +f
    survey_files | LC_ALL=C sort -u >"$tmp/paths"
    set -f
    own=$tmp/survey/nodeprint
    mkdir -p "$own" || return
    sed 's|/[^/]*$||' "$tmp/paths" | uniq | (cd "$tmp/survey" && xargs mkdir -p)
    (cd / && copy_files) <"$tmp/paths" 2>/dev/null
    printf '%s\n' "$host" >"$own/hostname"
    allowed_cpus >"$own/affinity"
    version() { # version NAME COMMAND...: the first line that the command prints
        title=$1
        shift
        have "$1" && printf '%s\t%s\n' "$title" "$(limited "$@" 2>&1 </dev/null | head -n 1)"
    }
    {
        printf 'linux\t%s\n' "$(uname -r)"
        version libc getconf GNU_LIBC_VERSION
        version util-linux lscpu --version
        version likwid likwid-pin -v
        version hwloc lstopo-no-graphics --version
        version dmidecode dmidecode --version
        version slurm sinfo --version
    } >"$own/versions.txt"
    ! have lscpu || limited lscpu >"$own/lscpu.txt"
    ! have lstopo-no-graphics || limited lstopo-no-graphics --of xml >"$own/lstopo.xml"
    ! have likwid-topology || limited likwid-topology -O >"$own/likwid-topology.csv"
    if have dmidecode; then
        limited dmidecode -t bios -t memory >"$own/dmidecode.txt"
    elif [ -r "${NODEPRINT_SYSFS:-/sys}/firmware/dmi/tables/DMI" ]; then
        smbios_modules <"${NODEPRINT_SYSFS:-/sys}/firmware/dmi/tables/DMI" >"$own/dmidecode.txt"
    fi
    if find_kernel cpuid; then
        limited "$bin/cpuid" "$own/cpuid"
    elif have hwloc-gather-cpuid; then
        limited hwloc-gather-cpuid -s "$own/cpuid" >/dev/null
    fi
    if have ethtool; then
        mkdir -p "$own/ethtool"
        for card in $(network_cards); do
            limited ethtool -i "$card" >"$own/ethtool/$card"
        done
    fi
    printf '%s\n' "$likwid" >"$own/likwid-pin.txt"
    [ -n "$survey_only" ] || count_groups "$own/likwid-perfctr"
    hide_private
    for path in "$own"/*.txt "$own"/*.csv "$own"/*.xml; do
        [ -s "$path" ] || rm -f "$path"
    done
    # shellcheck disable=SC2046 # names of folders of ours
    tar -cf "$tmp/survey.tar" -C "$tmp/survey" $(cd "$tmp/survey" && ls) &&
        anew "$folder/survey.tar.gz.tmp" gzip -c "$tmp/survey.tar" && mv -f "$folder/survey.tar.gz.tmp" "$folder/survey.tar.gz"
}
