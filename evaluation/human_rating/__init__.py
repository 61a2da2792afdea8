"""Human rating of single-turn conversations, 1 (poor) to 4 (strong), as KIEval's meta-evaluation asks for it.

- ``conversations``: question and reply out of any exam's records; ``sampling``: which of them are rated;
- ``sheet``: the sheet annotators fill, and its way back; ``page``: the same as a local web page.

Annotators see neither candidate nor score: what belongs to an id stands in a key file that is kept apart.
"""
