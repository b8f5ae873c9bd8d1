# Write the report of the verdict, again where the site's logo, contact or contract change. A checkpoint, as the verdict
# decides which nodes have a report of their own.
checkpoint report:
    input:
        CAMPAIGN / "verdict.json",
        kept_configuration,
        [SETTINGS.site.logo] if SETTINGS.site.logo else [],
    output:
        report(CAMPAIGN / "report/cluster.pdf", category="Report"),
        report(CAMPAIGN / "report/cluster.html", category="Report"),
    log:
        CAMPAIGN / "logs/report.log",
    conda:
        "../../environment.yml"
    params:
        nodeprint=nodeprint(),
        campaign=CAMPAIGN,
    shell:
        "{params.nodeprint} report {params.campaign:q} >{log:q}"


# The last step says whether every node has an outcome. One that was lost is tried again by the next call, also by
# Snakemake's own: it discovers anew then.
rule complete:
    input:
        CAMPAIGN / "report/cluster.pdf",
        node_reports,
        outcomes,
    output:
        touch(CAMPAIGN / "logs/complete"),
    log:
        CAMPAIGN / "logs/complete.log",
    conda:
        "../../environment.yml"
    params:
        nodeprint=nodeprint(),
        campaign=CAMPAIGN,
        discovered=DISCOVERED,
    shell:
        "{params.nodeprint} status {params.campaign:q} >{log:q}"
        " || {{ cat {log:q} >&2; rm -f {params.discovered:q}; exit 1; }}"
