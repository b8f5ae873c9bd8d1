# Ansible measures all hosts of a list in one call, as it is the engine there: those without an outcome
# (launch/pending.tsv, from `nodeprint discover`), and those of a recheck.
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
        script=workflow.source_path("../scripts/launch_ansible.py"),
        campaign=CAMPAIGN,
        inventory=inventory.path(SETTINGS),
    shell:
        "{params.python} {params.script:q} {params.campaign:q} {input:q} {output:q} {params.inventory:q}"
        " 2>&1 | tee {log:q} >&2"
