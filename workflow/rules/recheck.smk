# Suspects and two unsuspected nodes each get a second job, so many minutes after their first; what stays suspect, a third.
# The list is empty where nobody is suspected. Whoever asks for a verdict asks for the recheck, too.
checkpoint recheck:
    input:
        outcomes_before,
        acceptance=config["acceptance"],
    output:
        CAMPAIGN / "launch/recheck{number}.tsv",
    log:
        CAMPAIGN / "logs/recheck{number}.log",
    conda:
        "../../environment.yml"
    params:
        python=python(),
        script=workflow.source_path("../scripts/recheck.py"),
        campaign=CAMPAIGN,
        minutes=config["recheck_minutes"],
    shell:
        "{params.python} {params.script:q} {params.campaign:q} {wildcards.number} {params.minutes}"
        " {input.acceptance:q} 2>&1 | tee {log:q} >&2"
