"""Words that may name a host, and words with another meaning: runs, dates, parts of a node, tools. No rule separates a
host's name from any other word. These rules only raise doubts. A word with another possible meaning is never taken for
a node; the user is asked to state it.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from functools import lru_cache
from itertools import pairwise

#: Words for a run before its number.
RUN = r"runs?|iter(?:ation)?s?|rep(?:eat|etition)?s?|trials?|try|attempt|pass|loop|round"
#: Before the number or the name of a run, a job or a file.
_COUNTED = re.compile(
    "|".join(
        (
            r"runs?|iter(?:ation)?s?|rep(?:eat|etition)?s?|trials?|try|attempt|tests?|samples?|loop|round|pass|step|jobs?|jobid",
            r"tasks?|array|slurm|pbs|lsf|sge|batch|session|shift|campaign|exp(?:eriment)?|measurement|bench(?:mark)?s?",
            r"res(?:ults?)?|out(?:puts?)?|logs?|err(?:or)?s?|files?|data|parts?|cop(?:y|ies)|v(?:er)?|version",
        )
    )
)
_TOOLS = re.compile(
    r"(?:babel)?stream|likwid|x?hpl|hpcg|hpcc|osu|imb|mlc|sysbench|nvbandwidth|dcgm|reframe|superbench|hyperfine"
    r"|copy|scale|add|triad|[nr]ccl|linpack|linktest|iperf|fio|ior|mdtest|bandwidth|bw|latency|lat|perf|test|result"
)
_OTHERS = re.compile(
    "|".join(
        (
            _COUNTED.pattern,
            _TOOLS.pattern,
            # groups of nodes
            r"racks?|row|cell|cage|chassis|blade|enclosure|pod|island|cabinet|switch|leaf|spine|partition|queue|cluster",
            r"group|fleet|site|room|zone|region|az|all|nodes|hosts",
            # times
            r"date|day|week|month|year|time|ts|stamp|epoch|am|pm|night|morning|noon|evening|today|yesterday",
            r"jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?|oct(?:ober)?",
            r"nov(?:ember)?|dec(?:ember)?|(?:mon|tues?|wed(?:nes)?|thu(?:rs)?|fri|sat(?:ur)?|sun)(?:day)?",
            # orders and states
            r"first|second|third|last|next|before|after|pre|post|old|new|cold|warm|hot|idle|busy|baseline|ref(?:erence)?",
            r"control|default|tuned|base|initial|final|original|patched|fixed|good|bad|ok|failed",
            # parts of a node, and what else has numbers in outputs
            r"gpus?|cpus?|cores?|ranks?|proc(?:ess)?|sockets?|numa|domain|dev(?:ice)?|threads?|die|ccx|ccd|channel|dimm|mlx",
            r"eth|ib|hca|nic|bus|pci|card|port|lane|level|l|avx|sse|gcc|clang|icc|(?:open)?mpi|cuda|rocm|omp|zen|size|bytes",
            r"[kmg]i?b|stdout|stderr|info|debug|warn(?:ing)?|trace|nvme|sd|md|dm|en[ops]|ens|bond|br|veth|wlan|sw|ddr|pcie",
            r"gen|gfx|sm|fp|bf|tf|u?int|float|double|sha|crc|utf|epyc|xeon|ryzen|core|mi|rtx|gtx|gh|gb|tesla|el|rhel",
            r"centos|rocky|ubuntu|debian|fedora|sles|slc|sd[a-z]|en[a-z]{1,2}|tile|mig|instance|slot|hca|dimm",
            # releases, sizes and orders of things
            r"nb|bs|qd|drv|driver|fw|firmware|bios|img|jdk|py|python|mkl|openblas|blis|mtu|rc|rel(?:ease)?|id|tickets?|inc",
            r"seed|spec|alpha|beta|mt|glibc|ompi|oneapi|icx|aocc|nvhpc|ecc|msg|wd|pr|dell|hpe|lenovo|nodes|wave|batch|w",
            # what experiments vary
            r"kernels?|conf(?:ig(?:uration)?)?s?|cfg|settings?|setups?|opt(?:ion)?s?|modes?|variants?|cases?|scenarios?",
            r"sets?|users?|builds?|images?|compilers?|flags?|problems?|inputs?|matri(?:x|ces)|grids?|mesh|phases?|stages?",
            r"seq(?:uence)?s?|stud(?:y|ies)|series|points?|depth|width|methods?|algos?|algorithms?|impls?|models?|apps?",
            r"codes?|prog(?:ram)?s?|workloads?|quer(?:y|ies)|requests?|clients?|steps?|nodecount|np|nt|ppn|ntasks|small|medium",
            r"large|ed|rsa|ecdsa|q|tiny|huge|big|short|long|fast|slow|left|right|on|off|yes|no|true|false|with|without",
        )
    )
)
#: What a site calls a class of nodes, in front of the rest of a name, as in gpu-a-03.
_CLASSES = re.compile(r"[gc]pu|(?:hi|low)?mem|fat|large|big|small|login|head")
#: Before a number alone, a word that says it is a node's.
_NODE = re.compile(r"node(?:name)?|host(?:name)?|server|machine|compute|cn|nid|n")
#: Letters before a number that may count runs, trials, samples or versions.
_SINGLE_LETTERS = frozenset("cn")
#: A name of letters with numbers, as cn017, gpu-a-03 or x1000c0s0b0n0.
_NUMBERED = re.compile(r"[A-Za-z]+(?:-?[A-Za-z]+)*-?\d+(?:-?[A-Za-z]*-?\d+)*")
#: Nine letters and more of hexadecimal digits are a hash or an id.
_HEXADECIMAL = re.compile(r"(?=.*\d)(?=.*[a-f])[0-9a-f]{9,}", re.IGNORECASE)


def words(text: str) -> list[str]:
    """The words of letters in a text, in lower case."""
    return re.findall(r"[a-z]+", text.lower())


def is_numbered(word: str) -> bool:
    """Whether a word of letters and numbers may be a host's name: not if it is a part's or a run's and its number."""
    name = word.partition(".")[0]
    if not _NUMBERED.fullmatch(name) or _HEXADECIMAL.fullmatch(name):
        return False
    of_letters = words(name)
    if any(map(_ACCELERATOR.fullmatch, name.split("-"))):
        return False
    if len(of_letters) > 1:
        return True
    alone = len(name.rstrip("0123456789-")) == 1  # o4711 and J4711 are outputs of jobs
    return not _OTHERS.fullmatch(of_letters[0]) and (not alone or of_letters[0] in _SINGLE_LETTERS)


@lru_cache(1 << 16)  # a log has many lines and few words
def is_numbered_host(word: str) -> bool:
    """Whether a word of letters and numbers may be a host's name, and none of its words says something else."""
    first, *rest = words(word.partition(".")[0]) or [""]
    if rest and _CLASSES.fullmatch(first):
        first = rest[0]
    return is_numbered(word) and not any(map(_OTHERS.fullmatch, (first, *rest)))


#: Words for a node before its number, in names such as hpc-cpu-n7.
_OF_NODES = re.compile(r"node|host|cn|nid|compute|worker|server|machine|vm|[a-z]{0,3}n")
#: What separates the hosts of a pair in a word.
_SIGNS = re.compile(r"[-_.+~=,:]+(?:to[-_.])?")
_ADDRESS = re.compile(r"\d{1,3}(?:\.\d{1,3}){3}|ip(?:-\d{1,3}){4}")
#: Behind a dot these are no domain.
_NO_DOMAIN = re.compile(
    rf"{_OTHERS.pattern}|log|out|err|txt|dat|csv|json|c|h|f90|py|sh|exe|x|bin|gz|xz|zip|bak|old|orig|save|conf"
)
_OF_DOMAINS = re.compile(r"site|cluster|zone|region|row|room|pod")
#: So many names of a word and numbers are hosts; compilers or sizes are fewer.
_MANY = 8


def are_hosts(names: Collection[str]) -> bool:
    """Whether names have a form that only those of hosts have. That is a word for a node, two numbers, a domain, an
    address, or zeros in front of a number. Names of a word and a number are hosts if there are many."""
    distinct_names = {*names}
    if not all(map(is_host, distinct_names)) or are_sizes(distinct_names):
        return False
    is_padded = any(re.search(r"(?<!\d)0\d", name) for name in distinct_names)
    are_many = len(distinct_names) >= _MANY and all(len(re.findall(r"\d+", name)) == 1 for name in distinct_names)
    return is_padded or are_many or all(map(_is_surely_host, distinct_names))


def pair(name: str) -> tuple[str, str] | None:
    """The two hosts that a word names, as cn001-cn002; None for any other word. Both have the same letters."""
    for sign in _SIGNS.finditer(name):
        first, second = name[: sign.start()], name[sign.end() :]
        if first != second and words(first) == words(second) and is_numbered(first) and is_numbered(second):
            return first, second
    return None


def is_host(name: str) -> bool:
    """Whether a word is an address, or has letters and numbers and no part with another meaning."""
    if pair(name) is not None:
        return False
    if name.startswith("ip-") or name.replace(".", "").isdecimal():
        return _ADDRESS.fullmatch(name) is not None
    _, *domain = name.lower().split(".")
    others = [label for label in domain if _NO_DOMAIN.fullmatch(label) and not _OF_DOMAINS.fullmatch(label)]
    is_domain = not domain or (domain[-1].isalpha() and not others)
    return is_domain and is_numbered_host(name)


def _is_surely_host(name: str) -> bool:
    first, *domain = name.split(".")
    of_letters = words(first)
    is_of_node = bool(of_letters) and _OF_NODES.fullmatch(of_letters[-1]) is not None
    is_of_two = len(re.findall(r"[A-Za-z]\d+", first)) > 1
    is_address = _ADDRESS.fullmatch(name) is not None
    return is_address or bool(domain) or is_of_two or (is_of_node and len("".join(of_letters)) > 1)


def may_be_host(field: str, before: str = "") -> bool:
    """Whether a field of a file's name may be a node's name. That is a name with a number, a number after the word
    `node`, or a plain word without another meaning. `before` is the word in front of the field."""
    if field.isdecimal():
        return _NODE.fullmatch(before.lower()) is not None
    if is_numbered_host(field):
        return True
    is_plain = field.isalpha() and len(field) > 1
    return is_plain and not _OTHERS.fullmatch(field.lower()) and not _COUNTED.fullmatch(before.lower())


#: Names of accelerators, which are letters and numbers as those of hosts.
_ACCELERATOR = re.compile(r"(?:[abhlpv]|gh|gb|mi|rtx|gtx|max)\d{2,4}[a-z]{0,2}", re.IGNORECASE)


def is_of_files(word: str) -> bool:
    """Whether a word in a file's name describes its content, as `slurm`, `out` or `stream` do."""
    return bool(_COUNTED.fullmatch(word) or _TOOLS.fullmatch(word))


def are_sizes(names: Collection[str]) -> bool:
    """Whether the numbers of names are powers of two, as message sizes, and numbers of threads or nodes, are."""
    numbers = sorted({int(found[-1]) for name in names if (found := re.findall(r"\d+", name))})
    return len(numbers) > 2 and all(after == 2 * before for before, after in pairwise(numbers))


def distinct(names: Sequence[str]) -> list[str]:
    """The names without those that are there again, in their order."""
    return list(dict.fromkeys(names))
