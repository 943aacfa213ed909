"""Choose the recogniser's processor and number format. Loads native code: worker process only."""

from __future__ import annotations

from typing import Literal

import ctranslate2  # type: ignore[import-untyped]  # ships no type information

from voice.errors import TranscriberUnavailable

Device = Literal["auto", "cpu", "cuda"]

_AUTO_COMPUTE_TYPES = {"cpu": ("int8", "float32"), "cuda": ("float16", "int8", "float32")}


def chosen_device(device: Device) -> Literal["cpu", "cuda"]:
    """The processor or the GPU that `device` selects on this machine. Raises TranscriberUnavailable."""
    if device == "cpu":
        return "cpu"
    found: int = ctranslate2.get_cuda_device_count()
    if device == "cuda" and not found:
        raise TranscriberUnavailable(
            detail="The voice recogniser is set to use a CUDA GPU, and none is found. "
            "Set its device to `cpu` or `auto`."
        )
    return "cuda" if found else "cpu"


def chosen_compute_type(compute_type: str, device: Literal["cpu", "cuda"]) -> str:
    """CTranslate2's name of the number format for `device`. Raises TranscriberUnavailable."""
    supported: set[str] = ctranslate2.get_supported_compute_types(device)
    if compute_type == "auto":
        return next((name for name in _AUTO_COMPUTE_TYPES[device] if name in supported), "default")
    if compute_type not in supported:
        raise TranscriberUnavailable(
            detail=f"The voice recogniser's compute type `{compute_type}` does not exist on this {device}. "
            f"Set it to `auto` or one of: {', '.join(sorted(supported))}."
        )
    return compute_type
