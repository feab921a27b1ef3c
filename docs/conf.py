"""Settings of the documentation site: `python3 build.py site`, from the root of the checkout."""

project = "neml2_capi"
extensions = ["myst_parser"]
root_doc = "docs/index"
include_patterns = [
    *("README.md", "CHANGELOG.md", "CONTRIBUTING.md"),
    *("docs/**", "benchmarks/*.md", "examples/**/README.md", "neml2_capi/examples/README.md"),
    *("capi/**/README.md", "neml2_capi/**/README.md", "tests/**/README.md"),
]
# Decks of Abaqus have no highlighting.
suppress_warnings = ["misc.highlighting_failure"]
html_theme = "furo"
html_title = "neml2_capi"
# Links go to headings as GitHub names them.
myst_heading_anchors = 4
