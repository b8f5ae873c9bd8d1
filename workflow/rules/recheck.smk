# Suspects and control nodes get a second job, so many minutes after their first; what stays suspect, a third.
# The list is empty where nobody is suspected. Whoever asks for a verdict asks for the recheck, too.
checkpoint recheck:
    input:
        outcomes_before,
        acceptance=SETTINGS.acceptance,
    output:
        jobs=CAMPAIGN / "launch/recheck{number}.tsv",
        suspects=CAMPAIGN / "launch/suspects{number}.txt",
    log:
        CAMPAIGN / "logs/recheck{number}.log",
    conda:
        "../../environment.yml"
    params:
        nodeprint=nodeprint(),
        python=python(),
        script=workflow.source_path("../scripts/recheck.py"),
        campaign=CAMPAIGN,
        minutes=SETTINGS.recheck_minutes,
    shell:
        "{params.nodeprint} judge {params.campaign:q} --acceptance {input.acceptance:q}"
        " --recheck {output.suspects:q} >{log:q}"
        " && {params.python} {params.script:q} {params.campaign:q} {wildcards.number} {params.minutes}"
        " {output.suspects:q}"
