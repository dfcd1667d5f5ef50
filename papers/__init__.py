"""Every figure and table of the four papers, regenerated with the public surface of dpassay.

`python -m papers` lists them, `python -m papers pure/fig4` runs one; see RESULTS.md for what came out.
"""
