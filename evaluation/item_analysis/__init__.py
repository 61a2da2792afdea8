"""Which items of an exam tell strong candidates from weak ones, on any matrix of candidates x items.

- ``matrix``: the scores, from a CSV table or from exam records;
- ``classical``: difficulty, discrimination and its interval, item-total correlations; ``labels``: their four levels;
- ``irt``: a two-parameter fit; ``short_form``: the k items that rank the candidates like the whole set;
- ``set_level``: how well a whole set separates its candidates, and two sets compared;
- ``report``: all of it on one matrix, as table and figures' data.
"""
