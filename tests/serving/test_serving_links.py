"""Links in a model folder from elsewhere: what they point at outside of it is never copied."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from serving.importing import import_model
from serving.model.folder import refuse_links_out
from training.models import copy_companions


@pytest.fixture
def secret(tmp_path: Path) -> Path:
    file = tmp_path / "home" / "token"
    file.parent.mkdir()
    file.write_text('{"token": "hf_secret"}')
    return file


@pytest.fixture
def model(tiny: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(tiny, tmp_path / "model"))


def test_a_link_out_of_the_folder_is_not_copied(model: Path, secret: Path, tmp_path: Path) -> None:
    (model / "added.json").symlink_to(secret)
    with pytest.raises(
        ValueError, match=r"added\.json is a link to .*token, outside of its folder; nothing was copied"
    ):
        import_model(model, tmp_path / "out")
    assert not (tmp_path / "out").exists()
    with pytest.raises(ValueError, match="outside of its folder"):
        copy_companions(model, tmp_path)
    (model / "added.json").unlink()
    (model / "below").symlink_to(secret.parent)
    with pytest.raises(ValueError, match="below is a link to"):
        import_model(model, tmp_path / "out")


def test_links_within_are_files(model: Path, tmp_path: Path) -> None:
    (model / "config.json").rename(model / "the_config.json")
    (model / "config.json").symlink_to("the_config.json")
    import_model(model, tmp_path / "out")
    assert not (tmp_path / "out" / "config.json").is_symlink()
    (tmp_path / "named").symlink_to(model)
    import_model(tmp_path / "named", tmp_path / "again")
    assert (tmp_path / "again" / "config.json").read_bytes() == (model / "config.json").read_bytes()


def test_the_hub_caches_links_are_allowed(model: Path, secret: Path, tmp_path: Path) -> None:
    home = tmp_path / "models--someone--tiny"
    snapshot = home / "snapshots" / "abc"
    snapshot.mkdir(parents=True)
    shutil.copytree(model, home / "blobs")
    for file in (home / "blobs").iterdir():
        (snapshot / file.name).symlink_to(Path("..") / ".." / "blobs" / file.name)
    import_model(snapshot, tmp_path / "out")
    assert (tmp_path / "out" / "config.json").read_bytes() == (model / "config.json").read_bytes()
    (snapshot / "more.json").symlink_to(Path("..") / ".." / "blobs" / ".." / ".." / "home" / "token")
    with pytest.raises(ValueError, match=r"more\.json is a link to"):
        refuse_links_out(snapshot)
    (snapshot / "more.json").unlink()
    shutil.rmtree(home / "blobs")
    (home / "blobs").symlink_to(secret.parent)  # a cache that is none
    for link in list(snapshot.iterdir()):
        link.unlink()
    (snapshot / "token.json").symlink_to(Path("..") / ".." / "blobs" / "token")
    with pytest.raises(ValueError, match=r"token\.json is a link to"):
        refuse_links_out(snapshot)
