# Write the report of the verdict, again where the site's logo, contact or contract change.
rule report:
    input:
        CAMPAIGN / "verdict.json",
        # where `nodeprint discover` has not written nodes.tsv there is none
        list(CAMPAIGN.glob("config.yaml")),
        [config["site"]["logo"]] if config["site"]["logo"] else [],
    output:
        CAMPAIGN / "report/cluster.pdf",
    log:
        CAMPAIGN / "logs/report.log",
    conda:
        "../../environment.yml"
    params:
        campaign=CAMPAIGN,
    shell:
        "nodeprint report {params.campaign:q} >{log:q}"


# At the end, for other programs: node.nc of each node.
rule export:
    input:
        CAMPAIGN / "report/cluster.pdf",
    output:
        touch(CAMPAIGN / "logs/exported"),
    log:
        CAMPAIGN / "logs/export.log",
    conda:
        "../../environment.yml"
    params:
        campaign=CAMPAIGN,
    shell:
        "nodeprint export {params.campaign:q} >{log:q}"
