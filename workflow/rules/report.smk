# Write the report of the verdict.
rule report:
    input:
        CAMPAIGN / "verdict.json",
    output:
        CAMPAIGN / "report/cluster.pdf",
    log:
        CAMPAIGN / "logs/report.log",
    conda:
        "../../environment.yml"
    params:
        campaign=CAMPAIGN,
    shell:
        "nodeprint report {params.campaign:q} >{log:q}"
