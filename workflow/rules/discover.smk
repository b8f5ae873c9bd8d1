# The kernels, and the sample sheet.


# Built where they are missing, by the compiler of the environment; `make kernels` builds them again after an edit.
rule kernels:
    output:
        KERNELS / "hashes.tsv",
    log:
        CAMPAIGN / "logs/kernels.log",
    conda:
        "../../environment.yml"
    params:
        sources=SOURCES,
    shell:
        "make -C {params.sources:q} >{log:q} 2>&1"


# Check the configuration, list the nodes, and clear what failed before. nodes.tsv is no output: Snakemake deletes those
# before it makes them, and the sheet knows which jobs the nodes had.
checkpoint discover:
    input:
        config=ancient(CONFIG),
        kernels=ancient(KERNELS / "hashes.tsv"),
    output:
        DISCOVERED,
    log:
        CAMPAIGN / "logs/discover.log",
    conda:
        "../../environment.yml"
    params:
        nodeprint=nodeprint(),
    shell:
        "{params.nodeprint} discover --config {input.config:q} --hashes {input.kernels:q} >{log:q}"
