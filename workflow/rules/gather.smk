# Pack each node's records into arrays, and list what was measured, what was not, and why.
rule gather:
    input:
        outcomes(),
    output:
        CAMPAIGN / "fleet.json",
    log:
        CAMPAIGN / "logs/gather.log",
    conda:
        "../../environment.yml"
    params:
        campaign=CAMPAIGN,
    script:
        "../scripts/gather.py"
