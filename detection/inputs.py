"""What a detection needs beside a model and texts: methods, their options, and the files a user names."""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from detection import detectors, sets
from detection.method import Context, Detector, Method, Text
from detection.sets.base import SetTest
from detection.text.corpus import check_corpus
from detection.text.texts import read_texts
from detection.text.windows import LongTexts
from serving.model.spec import ModelSpec

Known = Sequence[Text]
TO_COME = tuple(f"a text of the pool {i}" for i in range(1000))
"""Stands for non-members that are not drawn yet, so that everything else can be checked before."""


@dataclass(frozen=True, kw_only=True)
class Inputs:
    """methods, set_tests: names; options: by method or test, what differs from its defaults
    model: the candidate; reference: the model that plays the role ``reference``, or None
    corpus: a text file or folder; non_members, members: files of texts (see ``detection.texts.read_texts``)
    benchmark: how the benchmark is called when a model is asked about it, "" for no name
    long_texts: what becomes of texts longer than the context (see ``detection.windows``)
    """

    methods: Sequence[str]
    model: ModelSpec
    seed: int
    set_tests: Sequence[str] = ()
    options: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    reference: ModelSpec | None = None
    corpus: Path | None = None
    non_members: Path | None = None
    members: Path | None = None
    benchmark: str = ""
    long_texts: LongTexts = "truncate"

    def classes(self) -> list[type[Method]]:
        """The chosen methods and tests. ValueError for an unknown one, or for options of a name that is neither."""
        chosen: list[type[Method]] = [detectors.detector_class(name) for name in dict.fromkeys(self.methods)]
        chosen += [sets.test_class(name) for name in dict.fromkeys(self.set_tests)]
        for name in self.options:
            if name not in sets.REGISTRY:
                detectors.detector_class(name)
        return chosen

    def context(self, non_members: Sequence[str] | None = None) -> Context:
        """What the methods share. non_members: instead of those in the file. ValueError for a file that is wrong."""
        if non_members is None:
            non_members = [text.text for text in known_texts(self.non_members, 0)]
        return Context(
            seed=self.seed,
            options=self.options,
            non_members=tuple(non_members),
            members=tuple(text.text for text in known_texts(self.members, 1)),
            corpus=self.corpus,
            reference=self.reference is not None,
            model=self.model,
            benchmark=self.benchmark,
        )

    def identity(self) -> dict[str, Any]:
        """All of it by content, JSON-ready: names, versions, options, files by their hashes, the reference model.

        A file that an option names counts by its content, too; where it lies does not count. The candidate is left
        out, and so are options of methods that are not chosen.
        """
        from evaluation.templates import prompt_hash
        from serving.model.fingerprint import model_identity

        classes = self.classes()
        options = {cls.name: dict(self.options[cls.name]) for cls in classes if self.options.get(cls.name)}
        for cls in classes:
            for key in option_files(cls):
                if named := options.get(cls.name, {}).get(key):
                    options[cls.name][key] = content_hash(Path(str(named)), f"{cls.name}.{key}")
        named_files = {"corpus": self.corpus, "non_members": self.non_members, "members": self.members}
        return {
            "methods": {cls.name: cls.version for cls in classes if issubclass(cls, Detector)},
            "set_tests": {cls.name: cls.version for cls in classes if issubclass(cls, SetTest)},
            "options": options,
            "prompts": {name: prompt_hash(name, package="detection") for cls in classes for name in cls.prompts},
            "files": {key: None if path is None else content_hash(path, key) for key, path in named_files.items()},
            "reference": None if self.reference is None else model_identity(self.reference),
            "benchmark_name": self.benchmark,
            "long_texts": self.long_texts,
        }


def build(inputs: Inputs, context: Context) -> tuple[list[Detector], list[SetTest]]:
    """The chosen methods and tests, ready. ValueError for something one of them needs and the context lacks, for wrong
    options, and for a method that the model's engine can't serve."""
    for cls in inputs.classes():
        if "generations" in cls.needs and inputs.model.engine == "vllm" and importlib.util.find_spec("vllm") is None:
            raise ValueError(
                f"{cls.name} needs generations, and the engine vllm is not installed; use the engine transformers, or "
                "install vllm (pip install 'proctor[gpu]')"
            )
        served = [
            spec.path for spec in (inputs.model, inputs.reference) if spec is not None and spec.engine == "server"
        ]
        if served and "full_vocabulary" in cls.needs:
            raise ValueError(
                f"{cls.name} needs the full vocabulary, and a server gives log-probabilities only: give {served[0]} "
                "the engine transformers or vllm, choose other methods, or leave its candidate out of "
                "detection.candidates"
            )
        for read in cls.reads if issubclass(cls, SetTest) else ():
            if read not in inputs.methods:
                raise ValueError(f"{cls.name} reads the scores of {read}; choose {read} among the methods, too")
    if context.corpus is not None and any("corpus" in cls.needs for cls in inputs.classes()):
        check_corpus(context.corpus)
    of_tests = {name: value for name, value in context.options.items() if name in sets.REGISTRY}
    of_methods = {name: value for name, value in context.options.items() if name not in of_tests}
    chosen = detectors.build(inputs.methods, replace(context, options=of_methods))
    moments = any(detector.context.full_vocabulary for detector in chosen)
    shared = replace(context, options=of_tests, full_vocabulary=moments)
    return chosen, sets.build(inputs.set_tests, shared)


def check_chosen(options: Mapping[str, Any], chosen: Sequence[str]) -> dict[str, dict[str, Any]]:
    """The options as they are. ValueError for one without a method, or of a method that is not among the chosen."""
    for name, values in options.items():
        if not isinstance(values, dict):
            raise ValueError(f"-o {name}=...: say of which method: -o METHOD.{name}=VALUE")
        if name not in chosen:
            raise ValueError(f"-o {name}.{next(iter(values))}=...: {name!r} is not chosen; chosen: {', '.join(chosen)}")
    return dict(options)


def option_files(cls: type[Method]) -> tuple[str, ...]:
    """The options of a method that name files."""
    return getattr(cls, "files", ())


def with_places(options: Mapping[str, Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
    """Options whose files are absolute paths, so that a run folder can be used from anywhere."""
    placed = {name: dict(values) for name, values in options.items()}
    for name, values in placed.items():
        registry = sets.test_class if name in sets.REGISTRY else detectors.detector_class
        for key in option_files(registry(name)):
            if isinstance(values.get(key), str) and Path(values[key]).expanduser().exists():
                values[key] = str(Path(values[key]).expanduser().resolve())
    return placed


def known_texts(path: Path | None, label: int) -> list[Text]:
    """The texts of a file of known members (label 1) or non-members (0), all with that label; none without a file.

    ValueError for a file that is wrong, or that says the opposite of one of its texts.
    """
    if path is None:
        return []
    texts = read_texts(path)
    kinds = ("non-members", "members")
    for text in texts:
        if text.label is not None and text.label != label:
            raise ValueError(
                f"{path}: text {text.id!r} has label {text.label}, but this is the file of {kinds[label]}; take it out"
            )
    return [replace(text, label=1 if label else 0) for text in texts]


def check_apart(texts: Sequence[Text], known: Sequence[str], what: str, path: Path | None) -> None:
    """ValueError if a known text is under examination, too: it would be compared with itself."""
    examined = {text.text.strip(): text.id for text in texts}
    for other in known:
        if other.strip() in examined:
            raise ValueError(
                f"{path}: a known {what} is under examination, too (text {examined[other.strip()]!r}); "
                "take it out of one of the two files"
            )


def content_hash(path: Path, where: str) -> str:
    """Hash of a file, or of a folder's text files. ValueError that begins with ``where`` if it can't be read."""
    from detection.text.corpus import corpus_files
    from serving.model.fingerprint import file_hash, files_hash

    path = path.expanduser()
    try:
        return files_hash(corpus_files(path)) if path.is_dir() else file_hash(path)
    except OSError as error:
        raise ValueError(f"{where}: {path} can't be read: {error.strerror or error}") from error
