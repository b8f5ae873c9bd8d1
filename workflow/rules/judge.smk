# Compare the nodes; a verdict is data and never fails the rule. What is accepted is the site's: an edit of its file
# judges and reports again, and measures nothing. The campaign keeps a copy of it, with all defaults.
rule judge:
    input:
        CAMPAIGN / "store/fleet.json",
        acceptance=SETTINGS.acceptance,
        # readers and tolerances of the site's own commands
        own=[CAMPAIGN / "config.yaml"] if SETTINGS.measurements else [],
    output:
        CAMPAIGN / "verdict.json",
        CAMPAIGN / "verdict.prom",
        CAMPAIGN / "drain.sh",
        report(CAMPAIGN / "verdict.xml", category="Verdict (JUnit)"),
        CAMPAIGN / "deviations.nc",
    log:
        CAMPAIGN / "logs/judge.log",
    conda:
        "../../environment.yml"
    params:
        nodeprint=nodeprint(),
        campaign=CAMPAIGN,
    shell:
        "{params.nodeprint} judge {params.campaign:q} --acceptance {input.acceptance:q} >{log:q}"
