# One allocation per partition and CPU count, one node-run per node in it: recommended above some 64 nodes.
# `nodeprint discover` lists the nodes that are still to be measured; a newer list is swept again.
rule sweep:
    input:
        CAMPAIGN / "sweeps/{sweep}.nodes",
    output:
        CAMPAIGN / "sweeps/{sweep}.tsv",
    log:
        CAMPAIGN / "logs/sweep-{sweep}.log",
    conda:
        "../../environment.yml"
    params:
        options=lambda wildcards: sweep_options(wildcards.sweep),
        campaign=CAMPAIGN,
        runs=config["runs"],
        serials=configuration.serials(config),
        setup=shlex.quote(config["site"]["setup"]),
        wave=config["slurm"]["wave"],
        minutes=lambda wildcards: planned_minutes(SWEEPS[wildcards.sweep][0].cpus),
    shell:
        "workflow/sweep --campaign {params.campaign:q} --nodes {input:q} --out {output:q} --runs {params.runs}"
        " --serials {params.serials} --wave {params.wave} --minutes {params.minutes} --setup {params.setup} -- {params.options} 2>&1 | tee {log:q} >&2"
