"""Commands for maintainers: schema files, and what a release is checked for."""
