# Ansible measures: one call of ansible/measure.yml over the nodes that `nodeprint discover` lists as still to be measured.
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
        campaign=CAMPAIGN,
        inventory=config["inventory"],
    shell:
        "workflow/launch/ansible --campaign {params.campaign:q} --nodes {input:q} --out {output:q}"
        " --inventory {params.inventory:q} 2>&1 | tee {log:q} >&2"
