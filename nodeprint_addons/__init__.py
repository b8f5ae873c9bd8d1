"""Add-ons of nodeprint: each a package that its entry points in pyproject.toml name. The core imports none of them."""
