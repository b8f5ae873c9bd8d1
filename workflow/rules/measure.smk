# One job per node: kernels/node-run takes the node's lock, surveys, and runs the kernels one after another.
# The records beside status.json are its own: Snakemake deletes the declared outputs of a job that fails.
rule measure:
    # no file of `discover`: what comes after a checkpoint is not seen by --until
    input:
        ancient(KERNELS / "hashes.tsv"),
    output:
        CAMPAIGN / "nodes/{node}/job{job}/status.json",
    log:
        # written by node-run itself
        CAMPAIGN / "nodes/{node}/job{job}/node-run.log",
    conda:
        "../../environment.yml"
    # all of the machine: nothing runs beside a measurement. A scheduler gives the whole node. (Without cores
    # Snakemake's local executor does not begin, and other executors are refused.)
    threads: 1 if LAUNCHER.executor != "local" else workflow.resource_settings.cores or 1
    resources:
        **job_resources(),
    params:
        step=STEP,
        node_run=SOURCES / "node-run",
        words=node_run_words,
    shell:
        "{params.step}{params.node_run:q} {params.words}"
