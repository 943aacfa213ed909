"""Declare the settings: sections, defaults, bounds and explanations. One source for code, docs and example.

Not here: the channels' settings (`channels`), the sources of values (`sources`), rules across sections
(`file_checks`), error texts (`load`).
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from gateway.config.agent import AgentSettings, BudgetSettings, LimitsSettings, ToolsSettings
from gateway.config.agents import AgentProfile, ModelName, RouteSettings
from gateway.config.api import ApiSettings
from gateway.config.bot import BotSettings
from gateway.config.bus import BusSettings
from gateway.config.channels import WEB_TOKEN_FILE, ChannelsSettings
from gateway.config.cluster import ClusterSettings
from gateway.config.environment import models_folder
from gateway.config.heartbeat import HeartbeatSettings
from gateway.config.log import LogSettings
from gateway.config.memory import MemorySettings
from gateway.config.safety import SafetySettings
from gateway.config.secrets import SecretRef
from gateway.config.section import PathSetting, Section, setting
from gateway.config.shield import ShieldSettings
from gateway.config.value_checks import (
    check_api_base,
    check_host,
    check_llm_model,
    check_origin,
)
from gateway.config.voice import VOICES_FOLDER, WHISPER_FOLDER, VoiceSettings

Origin = Annotated[str, AfterValidator(check_origin)]


class DataSettings(Section):
    """[data]: the data folder."""

    dir: PathSetting = setting(
        Path("data"),
        "The folder of the conversations and the web token. Made with mode 700. A relative path starts at "
        "the folder in which the program is started.",
    )


class FilesSettings(Section):
    """[files]: the files of conversations."""

    keep_days: int = setting(
        30,
        "For how many days the files of a conversation are stored; older ones can no longer be opened.",
        ge=1,
        le=3_650,
    )
    chat_mb: int = setting(
        200,
        "How many megabytes of files one chat may have; its oldest ones are removed for new ones.",
        ge=1,
        le=100_000,
    )
    max_pages: int = setting(
        300,
        "How many pages of a document are read, or pieces of 3,000 characters; the rest is left out.",
        ge=1,
        le=2_000,
    )
    read_timeout_s: int = setting(
        20,
        "Seconds of processor time that reading one file may take; a long document is cut before.",
        ge=1,
        le=300,
    )
    out_max_mb: int = setting(
        25,
        "The largest file, in megabytes, that a tool may send. Where a platform takes only smaller ones, "
        "people get a link, if server.public_origins is set.",
        ge=1,
        le=500,
    )
    out_per_turn: int = setting(
        10,
        "How many files one answer sends at most.",
        ge=0,
        le=50,
    )

    pictures_shown: int = setting(
        4,
        "How many pictures of a conversation the model is shown, the newest first. Those of the newest "
        "message are always shown.",
        ge=0,
        le=50,
    )
    max_mb: int = setting(
        20,
        "The largest file that people may send, in megabytes.",
        ge=1,
        le=100,
    )


class ModelsSettings(Section):
    """[models]: the folder of the model files."""

    dir: PathSetting | None = setting(
        None,
        "The folder into which `parlour models get` puts the model files. A relative path starts at the "
        "folder in which the program is started. When absent: the folder models there if it exists, as in a "
        "checkout; else parlour/models in $XDG_DATA_HOME, which is ~/.local/share if it is not set.",
        example="/srv/models",
    )


class ServerSettings(Section):
    """[server]: the HTTP server."""

    host: Annotated[str, AfterValidator(check_host)] = setting(
        "127.0.0.1",
        "The address to listen on. Any other than loopback needs server.public_origins.",
        expected="an IP address or a host name",
    )
    port: int = setting(8765, "The port to listen on; 0 takes any free one.", ge=0, le=65_535)
    public_origins: tuple[Origin, ...] = setting(
        (),
        "The exact origins, in addition to loopback, whose pages may use the web channel.",
        example=["https://bot.example.org"],
        expected="a list of up to 100 origins",
        max_length=100,
        strict=False,
    )
    metrics_token: SecretRef | None = setting(
        None,
        "A token that opens /metrics and nothing else, by reference, for the program that reads them. The "
        "web page's token opens them too.",
        example="file:secrets/metrics-token",
    )


class LocalModelSettings(Section):
    """[llm.local]: the embedded model."""

    model: Literal["auto", "0.5b", "1.5b"] = setting(
        "auto",
        "Which embedded model answers. 0.5b is the one that `parlour models get` fetches; 1.5b answers "
        "better and slower, and `parlour models get qwen2.5-coder-1.5b` fetches it. auto takes 1.5b if it is "
        "fetched and this machine has at least 3 GB of free memory and 4 processor cores, else 0.5b.",
    )
    model_path: PathSetting | None = setting(
        None,
        "Another GGUF file for the embedded model, in place of both.",
        example="models/other-model.gguf",
    )
    threads: int = setting(
        0, "Processor threads of the embedded model; 0 chooses by the machine.", ge=0, le=256
    )


class LlmSettings(Section):
    """[llm]: the language model."""

    model: Annotated[str, AfterValidator(check_llm_model)] = setting(
        "local",
        'The language model: "local" is the embedded one, "scripted:…" the shipped fake, anything else a '
        'LiteLLM model name such as "openai/gpt-5-mini" or "ollama_chat/llama3".',
        expected='"local", "scripted:…" or a LiteLLM model name',
        max_length=2_000,
    )
    choices: tuple[ModelName, ...] = setting(
        (),
        "Further models that people can choose for a conversation, with /model. The address and the key are "
        "used for one of the same provider only.",
        example=["openai/gpt-5"],
        expected="a list of names as in llm.model",
        max_length=20,
        strict=False,
    )
    api_base: Annotated[str | None, AfterValidator(check_api_base)] = setting(
        None,
        "The address of the model's API, when it is not the provider's own.",
        example="http://127.0.0.1:11434",
        expected="an address that starts with http:// or https://",
    )
    api_key: SecretRef | None = setting(
        None, "The key for the model's API, by reference.", example="env:OPENAI_API_KEY"
    )
    timeout_s: float = setting(
        0.0,
        "Seconds that the model may take to its first word, retries included, and from one word to the next; "
        "0 means 60, or 120 for the embedded model. turn.timeout_s limits the whole turn.",
        ge=0,
        le=3_600,
    )
    max_tokens: int | None = setting(
        None,
        "The longest answer, in tokens. When absent: the model's own by LiteLLM's table, at most a quarter "
        "of the window; 512 for the embedded model, 1024 for one that the table does not have.",
        example=2_048,
        ge=1,
        le=131_072,
    )
    temperature: float = setting(
        0.2, "How freely the model chooses words; 0 is the most predictable.", ge=0, le=2
    )
    retries: int = setting(2, "How often a failed call is tried again within timeout_s.", ge=0, le=10)
    context_tokens: int | None = setting(
        None,
        "The model's context window, in tokens: prompt and answer. When absent: the model's own by "
        "LiteLLM's table; 4096 for the embedded model, and for one that the table does not have.",
        example=8_192,
        ge=256,
        le=2_000_000,
    )
    vision: bool | None = setting(
        None,
        "Whether the model can see pictures. When absent: as LiteLLM's table says; not for a model that the "
        "table does not have.",
        example=True,
        expected="true or false",
    )
    local: LocalModelSettings = LocalModelSettings()


class TurnSettings(Section):
    """[turn]: one message and its reply."""

    timeout_s: float = setting(
        180.0,
        "Seconds until a turn without an answer ends with an error. Transcribing a voice note may take as "
        "long without progress. Waiting for a slot or for a person does not count, nor do sub-agents, which "
        "have 15 minutes.",
        ge=1,
        le=7_200,
    )
    max_attempts: int = setting(
        3,
        "After how many deaths of the process during its turn a message is run alone, and then given up.",
        ge=1,
        le=20,
    )
    max_running: int = setting(
        0,
        "How many turns run at the same time, not counting voice notes that are being transcribed; 0 chooses "
        "by the model.",
        ge=0,
        le=10_000,
    )
    lease_s: float = setting(
        30.0, "Seconds for which a process owns a thread without renewing it.", ge=5, le=600
    )
    max_queue_per_thread: int = setting(
        50, "How many messages of one thread may wait before more are refused.", ge=1, le=10_000
    )
    bursts: Literal["merge", "each"] = setting(
        "merge",
        "Whether messages that one person sends in quick succession get one answer (merge) or one each.",
    )
    burst_s: float = setting(
        1.2,
        "With merge, the longest gap in seconds between two messages of a burst. A turn does not wait for "
        "it: it begins again with both while it has shown and done nothing.",
        ge=0,
        le=60,
    )
    while_busy: Literal["steer", "queue", "interrupt"] = setting(
        "steer",
        "What happens to a message that comes while a turn of its author runs: steer gives it to the model "
        "after the next tool call, or else queues it; queue answers it afterwards; interrupt stops the turn "
        "and answers both.",
    )


class StorageSettings(Section):
    """[storage]: the store."""

    kind: Literal["sqlite", "postgres", "memory"] = setting(
        "sqlite",
        "Where conversations are stored: in a file of the data folder, in the Postgres database storage.url, "
        "which needs the extra parlour[postgres], or in memory, where they are lost when the process ends.",
    )
    url: SecretRef | None = setting(
        None,
        "The URL of the Postgres database, by reference, because it contains a password: "
        "postgresql://user:password@host/database. Parlour makes its tables there, in the schema parlour.",
        example="env:PARLOUR_DATABASE_URL",
    )
    synchronous: Literal["full", "normal"] = setting(
        "full",
        "When SQLite waits for the disk: full survives a power cut, normal may lose the last moments before.",
    )


class Settings(Section):
    """All settings, each valid on its own; `load` also checks them against each other."""

    bot: BotSettings = BotSettings()
    data: DataSettings = DataSettings()
    files: FilesSettings = FilesSettings()
    models: ModelsSettings = ModelsSettings()
    server: ServerSettings = ServerSettings()
    llm: LlmSettings = LlmSettings()
    voice: VoiceSettings = VoiceSettings()
    channels: ChannelsSettings = ChannelsSettings()
    turn: TurnSettings = TurnSettings()
    agent: AgentSettings = AgentSettings()
    tools: ToolsSettings = ToolsSettings()
    shield: ShieldSettings = ShieldSettings()
    safety: SafetySettings = SafetySettings()
    memory: MemorySettings = MemorySettings()
    heartbeat: HeartbeatSettings = HeartbeatSettings()
    limits: LimitsSettings = LimitsSettings()
    budget: BudgetSettings = BudgetSettings()
    storage: StorageSettings = StorageSettings()
    bus: BusSettings = BusSettings()
    cluster: ClusterSettings = ClusterSettings()
    log: LogSettings = LogSettings()
    api: ApiSettings = ApiSettings()
    agents: Mapping[str, AgentProfile] = {}
    """The further agents, by name."""
    routes: tuple[RouteSettings, ...] = Field(default=(), strict=False)
    """Which agent answers where, in order."""

    @property
    def every_route(self) -> tuple[RouteSettings, ...]:
        """The routes, and after them those of the channels' accounts that name an agent."""
        own = [one for one in self.channels.accounts() if one.settings.agent is not None]
        return (
            *self.routes,
            *(
                RouteSettings(
                    agent=str(one.settings.agent), channel=one.channel, account=one.settings.account
                )
                for one in own
            ),
        )

    @property
    def models_path(self) -> Path:
        """The folder of the model files. Looks for a folder, if models.dir is absent."""
        return self.models.dir or models_folder()

    @property
    def voice_model_path(self) -> Path:
        """The folder of the Whisper model."""
        return self.voice.model_path or self.models_path / WHISPER_FOLDER

    @property
    def voices_path(self) -> Path:
        """The folder of the voices that read answers aloud."""
        return self.voice.replies.voices_path or self.models_path / VOICES_FOLDER

    @property
    def workspace_path(self) -> Path:
        """The folder of the bot's own texts."""
        return self.agent.workspace or self.data.dir / "workspace"

    @property
    def web_token_path(self) -> Path:
        """The file of the generated web token, for when channels.web.token is absent."""
        return self.data.dir / WEB_TOKEN_FILE

    def secret_refs(self) -> dict[str, SecretRef]:
        """The references that are set, by dotted path."""
        keys = {
            "llm.api_key": self.llm.api_key,
            "voice.api_key": self.voice.api_key,
            "server.metrics_token": self.server.metrics_token,
            "storage.url": self.storage.url,
            "tools.search.api_key": self.tools.search.api_key,
            "shield.evaluator_api_key": self.shield.evaluator_api_key,
            "memory.embedding_api_key": self.memory.embedding_api_key,
            "safety.classifier_api_key": self.safety.classifier_api_key,
            "bus.url": self.bus.url,
        }
        keys |= {f"agents.{name}.api_key": profile.api_key for name, profile in self.agents.items()}
        return {
            path: one
            for path, one in (keys | self.channels.secret_refs() | self.api.secret_refs()).items()
            if one is not None
        }
