# Compare the nodes; a verdict is data and never fails the rule.
rule judge:
    input:
        CAMPAIGN / "fleet.json",
    output:
        CAMPAIGN / "verdict.json",
    log:
        CAMPAIGN / "logs/judge.log",
    conda:
        "../../environment.yml"
    params:
        campaign=CAMPAIGN,
    shell:
        "nodeprint judge {params.campaign:q} >{log:q}"
