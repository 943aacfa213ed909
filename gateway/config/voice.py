"""The settings of transcription and reading aloud: [voice] and its subsections."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AfterValidator

from gateway.config.secrets import SecretRef
from gateway.config.section import PathSetting, Section, setting
from gateway.config.value_checks import check_api_base, check_compute_type, check_language, check_transcriber

WHISPER_FOLDER = "whisper-base"
VOICES_FOLDER = "voices"

_MIB = 1024 * 1024


class LiveSpeechSettings(Section):
    """[voice.live]: live transcription while people speak, on channels that stream audio."""

    enabled: bool = setting(default=True, description="Whether the page offers to talk.")
    commit_s: float = setting(
        0.8, "Seconds of silence after which words that end like a sentence are sent.", ge=0.4, le=3.0
    )
    pause_s: float = setting(
        1.5, "Seconds of silence after which words that form a whole request are sent.", ge=0.5, le=10
    )
    silence_s: float = setting(3.0, "Seconds of silence after which any words are sent.", ge=1, le=30)
    max_streams: int = setting(8, "How many people may talk at the same time.", ge=1, le=1_000)


class VoiceRepliesSettings(Section):
    """[voice.replies]: answers read aloud, to people who ask for it with /voice."""

    enabled: bool = setting(
        default=True,
        description="Whether people may turn on voice replies, which need the extra parlour[speech] and a "
        "voice.",
    )
    fetch: bool = setting(
        default=True,
        description="Whether the English voice is fetched (63 MB) when a person first asks for an answer to "
        "be read aloud and there is no voice. Only into models.dir, not into voices_path.",
    )
    voices_path: PathSetting | None = setting(
        None,
        "The folder of the voices, one .onnx and .onnx.json each. "
        f"When absent: {VOICES_FOLDER} in models.dir.",
        example="models/voices",
    )


class VoiceSettings(Section):
    """[voice]: transcription."""

    enabled: bool = setting(default=True, description="Whether voice messages are transcribed.")
    transcriber: Annotated[str, AfterValidator(check_transcriber)] = setting(
        "whisper",
        'What turns speech into text: "whisper" is the bundled one, "scripted:…" a shipped fake that returns '
        "the given text, anything else a LiteLLM name of an OpenAI-compatible endpoint such as "
        '"openai/whisper-1".',
        expected='"whisper", "scripted:…" or a LiteLLM model name',
        max_length=2_000,
    )
    api_base: Annotated[str | None, AfterValidator(check_api_base)] = setting(
        None,
        "The address of the transcriber's API, when it is not the provider's own.",
        example="http://127.0.0.1:8000/v1",
        expected="an address that starts with http:// or https://",
    )
    api_key: SecretRef | None = setting(
        None, "The key for the transcriber's API, by reference.", example="env:OPENAI_API_KEY"
    )
    model_path: PathSetting | None = setting(
        None,
        f"The folder of the Whisper model. When absent: {WHISPER_FOLDER} in models.dir.",
        example=f"models/{WHISPER_FOLDER}",
    )
    engine: Literal["fast", "plain"] = setting(
        "fast", "How Whisper is run: fast fits its window to the speech, plain is faster-whisper as it comes."
    )
    device: Literal["auto", "cpu", "cuda"] = setting(
        "auto", "What Whisper computes on; auto takes a GPU where CTranslate2 finds one."
    )
    compute_type: Annotated[str, AfterValidator(check_compute_type)] = setting(
        "auto",
        "Whisper's number type, as CTranslate2 names it; auto is int8 on a processor and float16 on a GPU.",
        expected="auto or a type of CTranslate2 such as int8",
    )
    workers: int = setting(
        0,
        "How many recordings are transcribed at the same time, each by a process with one thread and about "
        "300 MB; 0 chooses by the machine.",
        ge=0,
        le=64,
    )
    max_bytes: int = setting(20 * _MIB, "The largest voice message, in bytes.", ge=1_024, le=1_024 * _MIB)
    max_seconds: float = setting(
        300.0, "The longest voice message, in seconds; the rest is not transcribed.", ge=1, le=7_200
    )
    language: Annotated[str | None, AfterValidator(check_language)] = setting(
        None,
        "The language that is spoken. When absent, it is recognised in each message.",
        example="en",
        expected="a two-letter language code",
    )
    queue_limit: int = setting(
        16, "How many voice messages may wait for the transcriber before more are refused.", ge=1, le=1_000
    )
    queue_seconds: float = setting(
        600.0, "How many seconds of speech may wait altogether before more is refused.", ge=10, le=86_400
    )
    confirm_below: float = setting(
        0.5,
        "A transcript with less confidence than this is shown to its speaker, who sends, edits or repeats "
        "it; 0 never asks.",
        ge=0,
        le=1,
    )
    choose_from_s: float = setting(
        120.0,
        "A voice note of at least this many seconds, and every forwarded one, is shown to its sender, who "
        "chooses: an answer, only the transcript, or a summary. 0 never asks.",
        ge=0,
        le=7_200,
    )
    cache: bool = setting(
        default=True,
        description="Whether a recording that the same person sends again within a week is transcribed once.",
    )
    live: LiveSpeechSettings = LiveSpeechSettings()
    replies: VoiceRepliesSettings = VoiceRepliesSettings()
