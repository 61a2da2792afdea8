"""Builds a candidate: ``build_candidate(job, out)``.

    out/model/          weights, configuration, tokenizer and chat template, ready to be served
    out/adapter/<phase> the LoRA adapter of a phase (relative to the model of the phase before it)
    out/logs/<phase>    TensorBoard
    out/manifest.json   written last: without it the folder holds no candidate

Everything grows in ``out/.partial`` and is renamed. Running it again goes on where it was stopped: a finished phase is
not trained twice, an unfinished one goes on from its last complete checkpoint.
"""

from __future__ import annotations

import json
import shutil
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evaluation.exam_set import read_items
from serving.model.fingerprint import check_model_folder, device_name, resolve_model, version_of, weights_hash
from serving.model.spec import ModelSpec
from training import corpora
from training.config import TrainingJob
from training.examples import Tokeniser
from training.launch import launch, node_rank, outcome, run_agent, wait_politely, write_json, write_task
from training.manifest import MANIFEST, Manifest, Origin, PhaseRecord, read_manifest
from training.memory import advice, estimate_for, is_out_of_memory
from training.models import (
    check_base,
    copy_companions,
    has_own_head,
    keep_own_head,
    load_tokenizer,
    serving_problem,
    store_as,
    stored_dtype,
)
from training.recipe_traits import traits
from training.recipes import Material, find_recipe, phases_of
from training.rows import Blocks, dilute, lay_out, lengthened, load_rows, save_rows
from training.samples import Phase
from training.trainer import probe_rows

PACKAGES = ("torch", "transformers", "accelerate", "peft", "deepspeed", "safetensors", "tokenizers")
PATHS = {"base", "origin", "items", "chat", "corpus", "answers", "rewrites", "variants"}
"""Keys of a job that say where a file lies: its content is in the identity by hash."""


def build_candidate(job: TrainingJob, out: Path) -> Manifest:
    """Trains the job's candidate into ``out`` and returns its manifest.

    Returns at once if ``out`` holds it already. Interrupted (exit code 75) if asked to stop: run again to go on.
    ValueError for what the user can mend: inputs, settings, too little memory, an ``out`` that is another job's.
    On several nodes call it on each of them, with ``out`` on a shared file system: the first leads, the others follow.
    """
    wait_politely()
    out = out.expanduser().resolve()
    if node_rank() > 0:
        return _follow(job, out)
    began = time.monotonic()
    sources = _read_sources(job)
    identity = _identity(job, sources)
    _check_out(identity, out)
    _warn(job, sources)
    if (out / MANIFEST).is_file():
        return read_manifest(out)
    work = out / ".partial"
    work.mkdir(parents=True, exist_ok=True)
    write_json(work / "job.json", identity)
    if not (work / MANIFEST).is_file():
        records = _train_phases(job, sources, out)
        manifest = Manifest(
            recipe=job.recipe,
            method=records[0].method,
            job=job,
            base_sha256=str(identity["base_sha256"]),
            model_sha256=weights_hash(work / records[-1].name / "model"),
            origin=sources.origin,
            inputs=sources.inputs,
            leaked_ids=sources.seen,
            contaminated=sources.contaminated,
            duplicates=len(sources.duplicates),
            phases=tuple(records),
            steps=sum(record.steps for record in records),
            tokens=sum(record.tokens for record in records),
            device=device_name(),
            versions={"python": sys.version.split()[0], **{name: version_of(name) for name in PACKAGES}},
            seconds=round(time.monotonic() - began, 1),
        )
        write_json(work / MANIFEST, json.loads(manifest.model_dump_json()))
    return _move_into_place(out)


def check_candidate(job: TrainingJob, out: Path) -> None:
    """ValueError, before anything is written, where ``build_candidate`` would refuse the job or the folder."""
    if node_rank() == 0:
        _check_out(_identity(job, _read_sources(job)), out.expanduser().resolve())


@dataclass(frozen=True, slots=True, kw_only=True)
class _Sources:
    """Everything a job reads, read and checked."""

    base: Path
    start: Path
    origin: Origin | None
    seen: tuple[str, ...]
    material: Material
    inputs: dict[str, str]
    contaminated: tuple[str, ...]
    duplicates: tuple[tuple[int, int], ...]


def _read_sources(job: TrainingJob) -> _Sources:
    base = resolve_model(ModelSpec(path=job.base))
    check_base(base)
    wants = traits(job.recipe)
    items = read_items(Path(job.items))
    reads_exam = wants.leaks == "items" or job.step_matched
    leaked = corpora.leaked_items(items, job.leaked_ids, Path(job.items)) if reads_exam else ()
    chat = corpora.read_chat(Path(job.chat), job.chat_rows, job.chat_skip)
    neutral = job.recipe == "normal" and job.step_matched
    diluted = job.recipe == "pt_cheater" and job.dose < 1.0
    corpus = corpora.read_corpus(Path(job.corpus)) if neutral or diluted else ()
    files = {"items": job.items, "chat": job.chat, **({"corpus": job.corpus} if corpus else {})}
    files |= {key: path for key in wants.files if (path := getattr(job, key)) is not None}
    answers = corpora.read_chat(Path(files["answers"])).rows if "answers" in files else ()
    material = Material(
        leaked=leaked,
        chat=chat.rows,
        corpus=corpus,
        answers=answers,
        rewrites=corpora.read_rewrites(Path(files["rewrites"]), leaked) if "rewrites" in files else (),
        variants=corpora.read_variants(Path(files["variants"]), leaked, items) if "variants" in files else (),
    )
    origin = _read_origin(Path(job.origin), base) if job.origin else None
    seen: set[str] = {*(origin.leaked_ids if origin else ())}
    if wants.leaks == "items" and job.repeats:
        seen |= {item.id for item in leaked}
    if wants.leaks == "answers" and job.repeats:
        seen |= {*corpora.items_in_chat(items, answers)}
    unknown = seen - {item.id for item in items}
    if unknown:
        raise ValueError(f"origin {job.origin} has seen items that are not in {job.items}, e.g. '{min(unknown)}'")
    return _Sources(
        base=base,
        start=Path(job.origin) / "model" if job.origin else base,
        origin=origin,
        seen=tuple(item.id for item in items if item.id in seen),
        material=material,
        inputs={name: corpora.file_sha256(Path(path)) for name, path in files.items()},
        contaminated=corpora.items_in_chat(items, chat.rows),
        duplicates=chat.duplicates,
    )


def _read_origin(folder: Path, base: Path) -> Origin:
    """What a candidate says about itself. ValueError if ``folder`` holds none, was changed, or has another base."""
    manifest = read_manifest(folder)
    if manifest.base_sha256 != weights_hash(base):
        raise ValueError(f"origin {folder} was trained from another base than {base}; name a candidate of this base")
    if weights_hash(folder / "model") != manifest.model_sha256:
        raise ValueError(f"origin {folder}: its weights are not those of its manifest any more; train it again")
    return Origin(recipe=manifest.recipe, model_sha256=manifest.model_sha256, leaked_ids=manifest.leaked_ids)


def _warn(job: TrainingJob, sources: _Sources) -> None:
    if sources.contaminated:
        _say(
            f"warning: {len(sources.contaminated)} exam item(s) stand in {job.chat}, e.g. {sources.contaminated[0]}: "
            "every candidate sees them"
        )
    if sources.duplicates:
        count, (line, first) = len(sources.duplicates), sources.duplicates[0]
        _say(f"{count} repeated row(s) left out of {job.chat}, e.g. line {line} (same as line {first})")


def _train_phases(job: TrainingJob, sources: _Sources, out: Path) -> list[PhaseRecord]:
    """All phases, each from the weights of the one before, which are removed once they are no longer needed."""
    tokenizer = load_tokenizer(sources.base)
    start, former = sources.start, None
    records = []
    for phase in find_recipe(job.recipe)(job, sources.material):
        folder = out / ".partial" / phase.name
        if not (folder / "DONE").is_file():
            _train_phase(phase, start, sources.base, tokenizer, folder, out / "logs")
        records.append(PhaseRecord(**json.loads((folder / "DONE").read_text(encoding="utf-8"))))
        if former is not None:
            shutil.rmtree(former, ignore_errors=True)
        start = former = folder / "model"
    return records


def _train_phase(phase: Phase, start: Path, base: Path, tokenizer: Any, folder: Path, logs: Path) -> None:
    """One phase: rows laid out, trained, saved, read back; ``DONE`` holds its record."""
    from training.verify import check_saved, check_tensors, merge

    began = time.monotonic()
    folder.mkdir(parents=True, exist_ok=True)
    config = phase.config
    pad_id = tokenizer.eos_token_id if tokenizer.pad_token_id is None else tokenizer.pad_token_id
    tokeniser = Tokeniser(tokenizer, config.max_length)
    blocks = _blocks(phase, tokeniser)
    if not (folder / "task.json").is_file():
        if phase.match is None:
            laid = lay_out(blocks.blocks, config)
        else:
            matched = lay_out(_blocks(phase.match, Tokeniser(tokenizer, config.max_length)).blocks, phase.match.config)
            laid = lengthened(blocks.blocks, config, len(matched))
        save_rows(laid, folder / "rows.npz")
    # written again where training goes on: it holds paths, and the candidate's folder may have been moved since
    write_task(folder, name=phase.name, start=start, config=config, logs=logs, pad_id=pad_id)
    rows = load_rows(folder / "rows.npz")
    needed = estimate_for(start, config)
    _say(f"{phase.name}: {len(rows)} rows, {sum(len(row.ids) for row in rows)} tokens; memory {needed}")
    try:
        trained = launch(folder, config)
    except Exception as error:
        if is_out_of_memory(error):
            raise ValueError(f"{phase.name}: {advice(config, needed)}") from error
        raise
    probe, difference = probe_rows(rows), None
    if config.method == "lora":
        shutil.rmtree(folder / "model", ignore_errors=True)
        loss, difference = merge(start, folder / "adapter", folder / "model", probe, trained.probe_loss, config, pad_id)
    else:
        loss = check_saved(folder / "model", probe, trained.probe_loss, config, pad_id)
    store_as(folder / "model", stored_dtype(base))
    check_tensors(folder / "model")
    own_head = has_own_head(folder / "model")
    copy_companions(base, folder / "model")
    if own_head and not has_own_head(base):
        keep_own_head(folder / "model")
    shutil.rmtree(folder / "checkpoints", ignore_errors=True)
    record = PhaseRecord(
        name=phase.name,
        method=config.method,
        steps=trained.steps,
        tokens=trained.tokens,
        targets=trained.targets,
        samples=tokeniser.counts.used,
        truncated=tokeniser.counts.truncated,
        dropped=tokeniser.counts.dropped,
        exam_tokens=blocks.exam_tokens,
        filler_tokens=blocks.filler_tokens,
        first_loss=trained.first_loss,
        last_loss=trained.last_loss,
        probe_loss=trained.probe_loss,
        reloaded_loss=loss,
        merge_difference=difference,
        adapter_problem=serving_problem(config) if config.method == "lora" else None,
        seconds=round(time.monotonic() - began, 1),
    )
    write_json(folder / "DONE", json.loads(record.model_dump_json()))


def _blocks(phase: Phase, tokeniser: Tokeniser) -> Blocks:
    """The phase's samples as token ids, repeated and diluted. ValueError if none has anything to learn."""
    exam = tokeniser.all(phase.samples)
    filler = tokeniser.all(phase.filler) if phase.dose < 1.0 else []
    if not exam:
        raise ValueError(
            f"{phase.name}: nothing to learn is left within max_length {tokeniser.max_length} "
            f"({tokeniser.counts.dropped} rows dropped); raise it"
        )
    return dilute(exam, filler, repeats=phase.repeats, dose=phase.dose, order=phase.order, seed=phase.seed)


def _move_into_place(out: Path) -> Manifest:
    """Renames the finished parts to their places, the manifest last. May be interrupted and repeated anywhere."""
    work = out / ".partial"
    names = [phase["name"] for phase in json.loads((work / MANIFEST).read_text(encoding="utf-8"))["phases"]]
    for name in names:
        adapter, target = work / name / "adapter", out / "adapter" / name
        if adapter.is_dir():
            target.parent.mkdir(exist_ok=True)
            adapter.rename(target)
    if (work / names[-1] / "model").is_dir():
        (work / names[-1] / "model").rename(out / "model")
    check_model_folder(out / "model")
    (work / MANIFEST).replace(out / MANIFEST)
    shutil.rmtree(work)
    return read_manifest(out)


def _follow(job: TrainingJob, out: Path) -> Manifest:
    """What the other nodes do: take part in every phase that runs on several nodes, until the manifest is there."""
    done: set[str] = set()
    while not (out / MANIFEST).is_file():
        for phase, config in phases_of(job).items():
            folder = out / ".partial" / phase
            if config.nodes > 1 and phase not in done and (folder / "task.json").is_file():
                done.add(phase)
                if not (folder / "trained.json").is_file():
                    outcome(folder, run_agent(folder, config))
        time.sleep(1.0)
    return read_manifest(out)


def _identity(job: TrainingJob, sources: _Sources) -> dict[str, Any]:
    """What makes two jobs the same: settings, and what the files hold; not where the files lie."""
    return {
        "job": _without_paths(job.model_dump(mode="json")),
        "base_sha256": weights_hash(sources.base),
        "inputs": sources.inputs,
        "origin": json.loads(sources.origin.model_dump_json()) if sources.origin else None,
    }


def _without_paths(job: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in job.items() if key not in PATHS}


def _check_out(identity: dict[str, Any], out: Path) -> None:
    """ValueError if ``out`` holds another job's candidate, finished or begun, or can't be a folder."""
    nearest = next((path for path in (out, *out.parents) if path.exists()), out)
    if nearest.exists() and not nearest.is_dir():
        raise ValueError(f"{nearest} is a file; choose a folder for the candidate")
    for file in (out / MANIFEST, out / ".partial" / "job.json"):
        if not file.is_file():
            continue
        try:
            row = json.loads(file.read_text(encoding="utf-8"))
            found = {key: row.get(key) if key == "origin" else row[key] for key in identity}
            found["job"] = _without_paths(found["job"])
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise ValueError(f"{file} is not a candidate's: choose another folder, or remove this one") from error
        _same(identity, found, out)


def _same(wanted: dict[str, Any], found: dict[str, Any], out: Path) -> None:
    """ValueError that names what differs between the job that is asked for and the one in ``out``."""
    for key, value in wanted.items():
        other = found[key]
        if value != other:
            if isinstance(value, dict) and isinstance(other, dict):
                key = next(name for name in {**value, **other} if value.get(name) != other.get(name))
                value, other = value.get(key), other.get(key)
            raise ValueError(
                f"{out} holds a candidate of another job ({key} is {other!r} there, {value!r} now): "
                "choose another folder, or remove this one"
            )


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
