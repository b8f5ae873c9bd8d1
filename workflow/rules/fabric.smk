# LinkTest between nodes: one job over all that were measured, after them, so that it runs in the background of no other.
rule fabric:
    input:
        outcomes(),
    output:
        CAMPAIGN / "fabric/job{job}/outcomes.tsv",
    log:
        CAMPAIGN / "logs/fabric-job{job}.log",
    conda:
        "../../environment.yml"
    params:
        campaign=CAMPAIGN,
        config=config,
        minutes=lambda wildcards: fabric_minutes(len(NODES)),
    script:
        "../scripts/fabric.py"
