"""Released differential-privacy libraries under audit, each in an environment of its own.

`make libraries WHAT=opendp` makes the environment `.libraries/opendp` from `libraries/pins/opendp.txt`,
audits every case of `libraries/opendp.py` and writes `libraries/results/opendp.json`;
`python -m libraries.page` makes the gallery of the documentation from the results. Only the public
surface of a library is used.
"""
