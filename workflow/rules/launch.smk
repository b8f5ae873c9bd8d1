# An engine, such as Ansible, measures all hosts of a list in one call: those without an outcome (launch/pending.tsv, from
# `nodeprint discover`), and those of a recheck.
rule launch:
    input:
        CAMPAIGN / "launch/{nodes}.tsv",
    output:
        CAMPAIGN / "launch/{nodes}.outcomes.tsv",
    log:
        CAMPAIGN / "logs/launch-{nodes}.log",
    wildcard_constraints:
        nodes=r"pending|recheck[1-9]",
    conda:
        "../../environment.yml"
    params:
        python=python(),
        script=workflow.source_path("../scripts/launch.py"),
        campaign=CAMPAIGN,
        config=CONFIG,
    shell:
        "{params.python} {params.script:q} {params.campaign:q} {input:q} {output:q} {params.config:q}"
        " 2>&1 | tee {log:q} >&2"
