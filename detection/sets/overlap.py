"""Overlap: which texts stand in a corpus that the user names (a training set that is known)? No model is asked.

Two looks at each text:

- *13-grams*: Brown et al. 2020 (GPT-3, arXiv:2005.14165, appendix C): a text overlaps if one of its word 13-grams
  stands in the corpus. What a word is, and which ways of writing are one, says ``detection.text.cutting.words``. A text
  of 8 to 12 words is one n-gram as a whole (they take 8 as the least, too); shorter ones are not looked up.
- *BM25 + ROUGE-L*: the passage that BM25 ranks first, and the share of the text's words that stand in it in order
  (ROUGE-L recall): it sees a text with a few words changed. BM25 with k1 = 1.5, b = 0.75 and the idf
  log(1 + (N - n + 0.5)/(n + 0.5)) (Robertson & Zaragoza 2009; Lucene's form); words that stand in more than a tenth of
  more than 100 passages don't rank, but count for ROUGE-L.

What many share is no evidence: an n-gram that stands in more than ``max_texts`` different texts (instructions, standard
formulas), or in more than ``max_documents`` documents of the corpus (the paper's 10), does not count, and the words
that such n-grams cover are left out of the second look.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from detection.method import Context, DetectorOptions, Text
from detection.sets.base import Figures, SetTest
from detection.text.corpus import corpus_files, corpus_parts
from detection.text.cutting import words
from detection.text.ngram_search import Ids, NgramSearch, Place, Vocabulary
from detection.text.passages import Passages, nearest
from serving.records import Dialogue

SHORTEST = 8


class Overlap(SetTest):
    """Figures beside ``p_value`` (always None: a share is no test) and ``n`` (all texts):

    share, share_ci: of the texts looked up that have an n-gram in the corpus, with its 95% Wilson interval
    share_members, share_non_members: by label, None without
    near_share: of all texts with words of their own, those whose ROUGE-L recall reaches ``threshold``; None with
        bm25: false
    n_too_short: texts of fewer than 8 words, not looked up
    n_only_common: texts all of whose n-grams are common, not looked up
    common_ngrams: n-grams of the texts that don't count: ``{"in_texts", "in_documents"}`` (one may be in both)
    documents, passages: of the corpus
    texts: per text ``{"id", "ngrams" (share of its n-grams found, None: not looked up), "rouge_l" (None without),
        "nearest" (that passage), "hits"}``. A hit is a run of n-grams in one document: ``{"document", "position" (words
        of the document before it), "text_position" (words of the text), "ngrams" (how many), "ngram" (the first)}``
    """

    name = "overlap"
    version = 3
    needs = ("corpus",)
    passes = 0
    paper = "Brown et al. 2020, arXiv:2005.14165; Robertson & Zaragoza 2009; Lin 2004"

    class Options(DetectorOptions):
        """ngram: words of an n-gram; bm25: whether to look for near copies; threshold: ROUGE-L recall from which on a
        text counts as one; passage_words: length of a passage (they overlap by half); max_texts, max_documents: in how
        many different texts and in how many documents of the corpus an n-gram may stand and still count."""

        ngram: int = Field(default=13, ge=SHORTEST)
        bm25: bool = True
        threshold: float = Field(default=0.75, gt=0.0, le=1.0)
        passage_words: int = Field(default=200, ge=20)
        max_texts: int = Field(default=1, ge=1)
        max_documents: int = Field(default=10, ge=1)

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        assert context.corpus is not None
        corpus_files(context.corpus)

    def examine(self, texts: Sequence[Text], scores: Sequence[Mapping[str, float | None]]) -> Dialogue[Figures]:
        yield []  # a generator that asks nothing
        assert self.context.corpus is not None
        options = self.options
        split = [words(text.text) for text in texts]
        vocabulary = Vocabulary(split)
        ids = [vocabulary.ids(own) for own in split]
        sizes = [min(len(own), options.ngram) if len(own) >= SHORTEST else 0 for own in split]
        search = NgramSearch(ids, sizes, vocabulary, options.max_documents)
        passages = Passages(options.passage_words)
        search.read(corpus_parts(self.context.corpus), passages.add if options.bm25 else None)
        passages.close()
        in_texts = search.texts > options.max_texts
        in_documents = search.documents > options.max_documents
        common = in_texts | in_documents
        found = (search.documents > 0) & ~common
        shares = [_share(found[own].tolist()) for own in (np.unique(g[~common[g]]) for g in search.grams)]
        near: list[tuple[int | None, float | None]] = [(None, None)] * len(texts)
        if options.bm25 and passages.rows:
            own_words = [_own(*one, common) for one in zip(ids, search.grams, sizes, strict=True)]
            near = nearest(own_words, passages.rows)
        recalls = [recall for _, recall in near if recall is not None]
        return {
            **_shares([text.label for text in texts], shares),
            "p_value": None,
            "reason": "a share of texts, not a test",
            "n": len(texts),
            "near_share": _share([recall >= options.threshold for recall in recalls]),
            "n_too_short": sum(size == 0 for size in sizes),
            "n_only_common": sum(share is None and size > 0 for share, size in zip(shares, sizes, strict=True)),
            "common_ngrams": {"in_texts": int(in_texts.sum()), "in_documents": int(in_documents.sum())},
            "documents": search.read_documents,
            "passages": len(passages.rows),
            "texts": [
                {
                    "id": text.id,
                    "ngrams": share,
                    "rouge_l": recall,
                    "nearest": None if passage is None else _where(passages.place(passage)),
                    "hits": _hits(search, row, found, split[row], sizes[row]),
                }
                for row, (text, share, (passage, recall)) in enumerate(zip(texts, shares, near, strict=True))
            ],
        }


def _own(ids: Ids, grams: NDArray[np.int64], size: int, common: NDArray[np.bool_]) -> Ids:
    """The words of a text that no common n-gram covers; none where fewer than 8 are left of a longer one."""
    covered = np.zeros(len(ids), dtype=bool)
    for start in np.flatnonzero(common[grams]):
        covered[start : start + size] = True
    left: Ids = ids[~covered]
    return left if len(left) >= min(SHORTEST, len(ids)) else left[:0]


def _hits(
    search: NgramSearch, row: int, found: NDArray[np.bool_], text: Sequence[str], size: int
) -> list[dict[str, Any]]:
    """Runs of n-grams of a text that follow each other in one document, too."""
    hits: list[dict[str, Any]] = []
    going_on: dict[tuple[str, int], dict[str, Any]] = {}  # runs by document and where their next n-gram would stand
    for start, gram in enumerate(search.grams[row].tolist()):
        before, going_on = going_on, {}
        for place in search.places.get(gram, ()) if found[gram] else ():
            hit = before.get((place.document, place.position))
            if hit is None:
                ngram = " ".join(text[start : start + size])
                hit = {**_where(place), "text_position": start, "ngrams": 0, "ngram": ngram}
                hits.append(hit)
            hit["ngrams"] += 1
            going_on[place.document, place.position + 1] = hit
    return hits


def _where(place: Place) -> dict[str, Any]:
    return {"document": place.document, "position": place.position}


def _shares(labels: Sequence[int | None], shares: Sequence[float | None]) -> Figures:
    from evaluation.statistics import wilson

    hits = [(label, share > 0) for label, share in zip(labels, shares, strict=True) if share is not None]
    interval = wilson(sum(hit for _, hit in hits), len(hits))
    return {
        "share": _share([hit for _, hit in hits]),
        "share_ci": list(interval) if interval else None,
        "share_members": _share([hit for label, hit in hits if label == 1]),
        "share_non_members": _share([hit for label, hit in hits if label == 0]),
    }


def _share(flags: Sequence[bool]) -> float | None:
    return sum(flags) / len(flags) if flags else None
