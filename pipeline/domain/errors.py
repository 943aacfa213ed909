"""The error tree. One root, shallow; every error has a `code` for machines and a text for people.

    ParlourError
    ├── InvalidInput        bytes or values from outside that cannot be accepted
    ├── ConfigurationError  the operator has to change a setting
    ├── StorageError        the store failed
    │   ├── FenceLost       another owner has taken over the thread; nothing was written
    │   └── AlreadyDone     the entry or row is already finished; nothing was written
    ├── GraphError          a graph is built wrongly or cannot continue
    ├── ModelError          the language model gave no usable answer
    │   ├── ModelUnavailable   may work later (not loaded, connection, 5xx, rate limit)
    │   ├── ModelRejected      will not work unchanged (bad key, unknown model, bad request)
    │   └── ModelTimeout       no answer within the deadline
    ├── MediaUnavailable    an attachment could not be fetched
    ├── FileUnreadable      a picture or document could not be read (pipeline.domain.readings)
    └── TurnFailed          a turn ended without an answer, with the reason for the user

Expected refusals (not allowed, duplicate, busy) are results, never exceptions.
"""

from __future__ import annotations

from typing import ClassVar


class ParlourError(Exception):
    """Root. `permanent`: the same call will fail again. `str(error)` may be shown to people."""

    code: ClassVar[str] = "internal"
    permanent: ClassVar[bool] = True


class InvalidInput(ParlourError):
    """Input from outside does not have the required shape."""

    code = "invalid_input"


class ConfigurationError(ParlourError):
    """A setting is missing or wrong; the text names it and what to do."""

    code = "configuration"


class StorageError(ParlourError):
    """The store refused or failed (disk full, read-only, I/O error, newer schema)."""

    code = "storage"
    permanent = False


class FenceLost(StorageError):
    """This process has lost the lease: a commit was refused and nothing was written."""

    code = "fence_lost"
    permanent = True


class AlreadyDone(StorageError):
    """The entry or row to change is finished or does not exist; nothing was written."""

    code = "already_done"
    permanent = True


class GraphError(ParlourError):
    """A graph cannot be built or cannot continue; the text names the node or edge."""

    code = "graph"


class ModelError(ParlourError):
    """The language model gave no usable answer."""

    code = "model"
    detail: str = ""
    """The message of the provider or its library, on one line of at most 4,000 characters: redacted, for the
    log and the doctor, never for people in a chat."""


class ModelUnavailable(ModelError):
    """The model cannot be reached now; a retry may succeed."""

    code = "model_unavailable"
    permanent = False

    def __init__(self, message: str, *, retry_after_s: float | None = None) -> None:
        super().__init__(message)
        self.retry_after_s = retry_after_s


class ModelRejected(ModelError):
    """The provider refused this request; the same request will be refused again."""

    code = "model_rejected"


class ModelTimeout(ModelError):
    """The model did not answer within its deadline."""

    code = "model_timeout"
    permanent = False


class MediaUnavailable(ParlourError):
    """An attachment could not be fetched or is larger than allowed."""

    code = "media_unavailable"

    def __init__(self, message: str, *, detail: str = "") -> None:
        super().__init__(message)
        self.detail = detail
        """The message of the platform or a library, for the log and never for people in a chat."""


class TurnFailed(ParlourError):
    """A turn that must end with a visible error; `code` is an attribute of the instance."""

    def __init__(self, code: str, message: str, *, recoverable: bool = True) -> None:
        super().__init__(message)
        self.reason = code
        self.recoverable = recoverable
