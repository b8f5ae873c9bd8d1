# Many nodes in one call: a small Slurm job each, or Ansible. `nodeprint discover` lists the nodes that are still to be
# measured (launch/pending.tsv); a newer list is launched again.
rule launch:
    input:
        CAMPAIGN / "launch/pending.tsv",
    output:
        CAMPAIGN / "launch/outcomes.tsv",
    log:
        CAMPAIGN / "logs/launch.log",
    conda:
        "../../environment.yml"
    params:
        command=lambda wildcards, input, output: launch_command(input[0], output[0]),
    shell:
        "{params.command} 2>&1 | tee {log:q} >&2"
