"""The data folder: private, one process at a time, and the token that opens the page."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from gateway.runtime.data_dir import DataDir, DataDirBusy, own_key, own_web_token
from pipeline.domain.errors import ConfigurationError


def test_the_folder_is_made_private(tmp_path: Path) -> None:
    data = DataDir.claim(tmp_path / "deep" / "data")
    assert data.path.stat().st_mode & 0o077 == 0
    data.release()


def test_a_second_claim_names_the_process_that_holds_it(tmp_path: Path) -> None:
    code = (
        "import sys; from pathlib import Path; from gateway.runtime.data_dir import DataDir\n"
        "held = DataDir.claim(Path(sys.argv[1])); print('held', flush=True); sys.stdin.read()"
    )
    command = [sys.executable, "-c", code, str(tmp_path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        with pytest.raises(DataDirBusy, match=f"process {holder.pid}") as caught:
            DataDir.claim(tmp_path)
        assert "data.dir" in str(caught.value)
        holder.kill()
    DataDir.claim(tmp_path).release()


def test_a_folder_that_cannot_be_made_is_refused_in_words(tmp_path: Path) -> None:
    blocker = tmp_path / "file"
    blocker.write_text("in the way")
    with pytest.raises(ConfigurationError, match=r"data\.dir: cannot use"):
        DataDir.claim(blocker / "data")


def test_the_token_is_made_once_long_and_for_its_owner_alone(tmp_path: Path) -> None:
    path = tmp_path / "web-token"
    token = own_web_token(path)
    assert own_web_token(path) == token
    assert len(token) >= 24
    assert path.stat().st_mode & 0o777 == 0o600


def test_an_empty_token_file_gets_a_token_rather_than_admitting_everybody(tmp_path: Path) -> None:
    path = tmp_path / "web-token"
    path.write_text("\n")
    assert own_web_token(path)
    assert path.read_text().strip() == own_web_token(path)


def test_the_key_is_made_once_for_this_account_alone(tmp_path: Path) -> None:
    key = own_key(tmp_path / "links.key")
    assert len(key) == 32
    assert own_key(tmp_path / "links.key") == key
    assert (tmp_path / "links.key").stat().st_mode & 0o777 == 0o600
    (tmp_path / "links.key").write_bytes(b"cut")
    assert len(own_key(tmp_path / "links.key")) == 32
    with pytest.raises(ConfigurationError, match="cannot write"):
        own_key(tmp_path / "none" / "links.key")
