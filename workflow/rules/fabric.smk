# LinkTest between nodes: one job over all that were measured, after them, so that it runs in the background of no other.
rule fabric:
    input:
        outcomes,
    output:
        CAMPAIGN / "fabric/job{job}/status.json",
    log:
        CAMPAIGN / "logs/fabric-job{job}.log",
    conda:
        "../../environment.yml"
    params:
        python=python(),
        script=workflow.source_path("../scripts/fabric.py"),
        config=CONFIG,
        job=lambda wildcards, output: Path(output[0]).parent,
        minutes=fabric_minutes,
    shell:
        "{params.python} {params.script:q} {params.config:q} {params.job:q} {params.minutes} 2>&1 | tee {log:q} >&2"
