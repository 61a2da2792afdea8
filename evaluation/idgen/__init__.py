"""IDGen: exam items that are grown from seeds so that they tell strong models from weak ones (arXiv 2409.18892).

- ``options``: the settings; ``asking``: one question to a role, with its cost;
- ``strategies``: the tables of ways to change a seed; ``growing``: instruction gradient, critic, response gradient;
- ``checking``: is a general draft usable; two checkers accept, or have repaired, a mathematical one;
- ``references``: reference answers by scores or by votes; ``duplicates``: near-duplicates;
- ``funnel``: how many drafts each step left, why, and at what cost; ``human_check``: the same by people;
- ``estimators``: discrimination and difficulty predicted from the question alone.

The builder that runs these steps in their order is ``evaluation.builders.idgen``.
"""
