# Pack each node's records into arrays, and list what was measured, what was not, and why.
rule gather:
    input:
        outcomes,
        fabric_outcomes,
    output:
        CAMPAIGN / "store/fleet.json",
    log:
        CAMPAIGN / "logs/gather.log",
    conda:
        "../../environment.yml"
    params:
        python=python(),
        # no `script:`, as Snakemake cannot call one where its Python's path has a blank
        script=workflow.source_path("../scripts/gather.py"),
        campaign=CAMPAIGN,
    shell:
        "{params.python} {params.script:q} {params.campaign:q} 2>&1 | tee {log:q} >&2"
