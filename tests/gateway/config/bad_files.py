"""Bad configuration files, each with the one line that must come of it."""

from __future__ import annotations

REFERENCE_FIX = 'write "env:NAME" or "file:PATH" and keep the secret itself out of the configuration'
HOST_FIX = (
    'set server.public_origins to the origins people use, like ["https://bot.example.org"], or '
    'server.host to "127.0.0.1"'
)
ORIGIN_FIX = "write only scheme, host and port, in lower case, like https://bot.example.org"
MODEL_FIX = 'write "local", "scripted:…" or a name like "openai/gpt-5-mini"'

# What the file holds, and the one line that must come of it. FILE represents the file's path.
BAD_FILES = [
    (
        "[server]\nport = 99999",
        (
            "server.port: expected a whole number from 0 to 65535, but 99999 was given (in FILE); "
            "write a number such as 8765"
        ),
    ),
    (
        "[server]\nport = -1",
        (
            "server.port: expected a whole number from 0 to 65535, but -1 was given (in FILE); "
            "write a number such as 8765"
        ),
    ),
    (
        '[server]\nport = "8765"',
        (
            "server.port: expected a whole number from 0 to 65535, but text of 4 characters was "
            "given (in FILE); "
            "write a number such as 8765 without quotes"
        ),
    ),
    (
        "[server]\nport = 80.5",
        (
            "server.port: expected a whole number from 0 to 65535, but 80.5 was given (in FILE); "
            "write a number such as 8765"
        ),
    ),
    (
        "[server]\nport = true",
        (
            "server.port: expected a whole number from 0 to 65535, but true was given (in FILE); "
            "write a number such as 8765"
        ),
    ),
    (
        "[server]\nport = 0xffffffffffffffffffff",
        (
            "server.port: expected a whole number from 0 to 65535, but a number was given (in FILE); "
            "write a number such as 8765"
        ),
    ),
    (
        '[server]\nhost = "http://127.0.0.1"',
        (
            "server.host: is not an IP address or a host name (in FILE); "
            "write for example 127.0.0.1, ::1 or localhost"
        ),
    ),
    (
        '[server]\nhost = "0.0.0.0"',
        "server.host: other machines could connect, but no page outside this machine is allowed (in FILE); "
        + HOST_FIX,
    ),
    (
        '[server]\npublic_origins = "https://bot.example.org"',
        (
            "server.public_origins: expected a list of up to 100 origins, but text of 23 characters "
            "was given "
            '(in FILE); write for example ["https://bot.example.org"]'
        ),
    ),
    (
        '[server]\npublic_origins = ["https://bot.example.org", "https://bot.example.org/"]',
        "server.public_origins[1]: is not an origin (in FILE); " + ORIGIN_FIX,
    ),
    (
        '[server]\npublic_origins = ["*"]',
        "server.public_origins[0]: is not an origin (in FILE); " + ORIGIN_FIX,
    ),
    (
        '[server]\npublic_origins = ["https://Bot.example.org"]',
        "server.public_origins[0]: is not an origin (in FILE); " + ORIGIN_FIX,
    ),
    (
        '[server]\npublic_origins = ["https://bot.example.org:443"]',
        (
            "server.public_origins[0]: names the scheme's own port, which browsers leave out (in FILE); "
            "remove :443"
        ),
    ),
    (
        "[server]\npublic_origins = [7]",
        (
            "server.public_origins[0]: expected text, but a number was given (in FILE); "
            'write for example ["https://bot.example.org"]'
        ),
    ),
    (
        '[bot]\nname = " "',
        "bot.name: is blank or holds a control character (in FILE); write a name of printable characters",
    ),
    (
        f'[bot]\nname = "{"x" * 65}"',
        (
            "bot.name: expected text of 1 to 64 characters, but text of 65 characters was given (in FILE); "
            'write for example "Parlour"'
        ),
    ),
    (
        "[bot]\nname = 1979-05-27",
        (
            "bot.name: expected text of 1 to 64 characters, but a date or a time was given (in FILE); "
            'write for example "Parlour"'
        ),
    ),
    (
        "[bot]\nname = {first = 'x'}",
        (
            "bot.name: expected text of 1 to 64 characters, but a table was given (in FILE); "
            'write for example "Parlour"'
        ),
    ),
    (
        '[data]\ndir = "~/parlour"',
        "data.dir: starts with ~, which is not expanded here (in FILE); write the path in full",
    ),
    ('[data]\ndir = ""', "data.dir: is empty or holds a control character (in FILE); write a path"),
    (
        "[models]\ndir = 3",
        'models.dir: expected a path, but a number was given (in FILE); write for example "/srv/models"',
    ),
    ('[llm]\nmodel = "my model"', "llm.model: is not the name of a model (in FILE); " + MODEL_FIX),
    (
        '[llm]\nmodel = "ollama_chat/llama3"\napi_base = "localhost:11434"',
        "llm.api_base: is not an address of an API (in FILE); write for example http://127.0.0.1:11434",
    ),
    (
        '[llm]\nmodel = "ollama_chat/llama3"\napi_base = "https://me:word@host"',
        "llm.api_base: holds a user name or a password (in FILE); remove it and use llm.api_key",
    ),
    (
        '[llm]\napi_base = "http://127.0.0.1:11434"',
        'llm.api_base: has no effect, as llm.model is "local" (in FILE); remove it or name another model',
    ),
    (
        '[llm]\napi_key = "env:KEY"',
        'llm.api_key: has no effect, as llm.model is "local" (in FILE); remove it or name another model',
    ),
    (
        '[llm]\nmodel = "openai/x"\napi_key = "sk-abcdef"',
        "llm.api_key: is not a reference to a secret (in FILE); " + REFERENCE_FIX,
    ),
    (
        '[llm]\nmodel = "openai/x"\napi_key = "env:sk-abcdef"',
        "llm.api_key: does not name an environment variable after env: (in FILE); " + REFERENCE_FIX,
    ),
    (
        '[llm]\nmodel = "openai/x"\napi_key = "file:~/key"',
        "llm.api_key: does not name a plain path after file: (in FILE); " + REFERENCE_FIX,
    ),
    (
        '[llm]\nmodel = "openai/x"\napi_key = 123456',
        "llm.api_key: is not a reference to a secret (in FILE); " + REFERENCE_FIX,
    ),
    (
        '[llm]\nmodel = "openai/x"\napi_key = "env:ABSENT"',
        "llm.api_key: the environment variable ABSENT is not set (referred to in FILE); set it to the secret",
    ),
    (
        "[llm]\ntemperature = 2.5",
        (
            "llm.temperature: expected a number from 0 to 2, but 2.5 was given (in FILE); "
            "write a number such as 0.2"
        ),
    ),
    (
        "[llm]\ntimeout_s = inf",
        (
            "llm.timeout_s: expected a number from 0 to 3600, but a number without bounds was given "
            "(in FILE); "
            "write a number such as 0"
        ),
    ),
    (
        "[llm]\ntimeout_s = nan",
        (
            "llm.timeout_s: expected a number from 0 to 3600, but a number without bounds was given "
            "(in FILE); "
            "write a number such as 0"
        ),
    ),
    ("[llm]\ntemprature = 0.5", "llm.temprature: names no setting (in FILE); did you mean llm.temperature?"),
    (
        "[llm.local]\nthreads = 1000",
        (
            "llm.local.threads: expected a whole number from 0 to 256, but 1000 was given (in FILE); "
            "write a number such as 0"
        ),
    ),
    (
        '[voice]\nenabled = "yes"',
        (
            "voice.enabled: expected true or false, but text of 3 characters was given (in FILE); "
            "write true or false without quotes"
        ),
    ),
    (
        "[voice]\nenabled = 1",
        "voice.enabled: expected true or false, but a number was given (in FILE); write true or false",
    ),
    (
        '[voice]\nlanguage = "English"',
        "voice.language: is not a two-letter language code (in FILE); write for example en, or remove it",
    ),
    (
        '[voice]\ntranscriber = "whisperx"',
        (
            'voice.transcriber: is not a known transcriber (in FILE); write "whisper", '
            '"scripted:" and the text to hear, or a name like "openai/whisper-1"'
        ),
    ),
    (
        '[voice]\napi_key = "env:KEY"',
        (
            "voice.api_key: has no effect, as voice.transcriber names no endpoint (in FILE); "
            "remove it or name an endpoint"
        ),
    ),
    (
        '[voice]\napi_base = "http://127.0.0.1:9000"',
        (
            "voice.api_base: has no effect, as voice.transcriber names no endpoint (in FILE); "
            "remove it or name an endpoint"
        ),
    ),
    (
        '[voice]\ncompute_type = "int4"',
        (
            "voice.compute_type: is not a type that CTranslate2 knows (in FILE); write one of auto, int8, "
            "int8_float32, int8_float16, int8_bfloat16, float16, bfloat16, float32"
        ),
    ),
    (
        "[voice.live]\nsilence_s = 1.0",
        (
            "voice.live.silence_s: is out of order: it must be at least voice.live.pause_s, and that at "
            "least voice.live.commit_s (in FILE); make silence_s the longest and commit_s the shortest of "
            "the three"
        ),
    ),
    (
        '[storage]\nkind = "sqlit"',
        (
            'storage.kind: expected "sqlite", "postgres" or "memory", but text of 5 characters was given '
            '(in FILE); did you mean "sqlite"?'
        ),
    ),
    (
        '[storage]\nkind = "redis"',
        (
            'storage.kind: expected "sqlite", "postgres" or "memory", but text of 5 characters was given '
            "(in FILE); choose one of them"
        ),
    ),
    (
        '[log]\nlevel = "INFO"',
        (
            'log.level: expected "debug", "info", "warning" or "error", but text of 4 characters '
            "was given (in FILE); "
            'did you mean "info"?'
        ),
    ),
    ("port = 1", "port: names no setting (in FILE); did you mean server.port?"),
    ("[serve]\nport = 1", "serve: names no setting (in FILE); did you mean server?"),
    (
        "[zebra]\nx = 1",
        (
            "zebra: names no setting (in FILE); known sections: bot, data, files, models, server, llm, "
            "voice, channels, "
            "turn, agent, tools, shield, safety, memory, heartbeat, "
            "limits, budget, storage, bus, cluster, log, api, agents, routes"
        ),
    ),
    (
        "[channels.zebra]\nx = 1",
        (
            "channels.zebra: names no channel (in FILE); the shipped channels are web, console, telegram, "
            "slack, discord; no installed plug-in adds one"
        ),
    ),
    ('"server.port" = 1', '"server.port": names no setting (in FILE); did you mean server.port?'),
    ("llm = 5", "llm: is a section, but a single value was given (in FILE); write the table [llm]"),
    (
        "[bot]\nname = \n",
        "FILE: is not valid TOML at line 2, column 8: Invalid value; correct the line there",
    ),
    (
        "[bot]\nname = 'x'\nname = 'y'",
        "FILE: is not valid TOML at line 3, column 11: Cannot overwrite a value; correct the line there",
    ),
    (
        "[bot\n",
        (
            "FILE: is not valid TOML at line 1, column 5: Expected ']' at the end of a table declaration; "
            "correct the line there"
        ),
    ),
    ("[bot]\nname = '", 'FILE: is not valid TOML at line 2, column 9: Expected "\'"; correct the line there'),
    ("x = " + "[" * 5_000, "FILE: is nested too deeply; remove the nested brackets"),
    ("x = " + "1" * 5_000, "FILE: holds a number with too many digits; shorten the number"),
    (
        '[tools.search]\nbackend = "searxng"',
        (
            'tools.search.url: is missing, as tools.search.backend is "searxng" (in FILE); '
            "set it to the server's address"
        ),
    ),
    (
        '[tools.search]\nurl = "http://127.0.0.1:8888"',
        (
            "tools.search.url: has no effect, as tools.search.backend names no server (in FILE); "
            'remove it or set tools.search.backend to "searxng"'
        ),
    ),
    (
        '[tools.search]\nbackend = "brave"',
        (
            'tools.search.api_key: is missing, as tools.search.backend is "brave" (in FILE); '
            "set it to a reference to the key, such as env:BRAVE_API_KEY"
        ),
    ),
    (
        '[tools.search]\napi_key = "BSA123"',
        "tools.search.api_key: is not a reference to a secret (in FILE); " + REFERENCE_FIX,
    ),
    (
        '[memory]\nmode = "shared"',
        (
            'memory.mode: expected "incognito", "local" or "synced", but text of 6 characters was given '
            "(in FILE); choose one of them"
        ),
    ),
    (
        '[memory]\nembedding = "big model"',
        (
            "memory.embedding: is not a known embedding model (in FILE); "
            'write "none", "local" or a name like "openai/text-embedding-3-small"'
        ),
    ),
    (
        "[memory]\nkeep_days = -1",
        (
            "memory.keep_days: expected a whole number from 0 to 36500, but -1 was given (in FILE); "
            "write a number such as 365"
        ),
    ),
    (
        '[memory]\nembedding_api_base = "http://127.0.0.1:1"',
        (
            "memory.embedding_api_base: has no effect, as memory.embedding names no model of an API "
            "(in FILE); remove it or name a model in memory.embedding"
        ),
    ),
    (
        '[memory]\nembedding = "openai_compatible/e5"',
        (
            "memory.embedding_api_base: is missing, as memory.embedding names no provider (in FILE); "
            "write the address of the endpoint"
        ),
    ),
]
