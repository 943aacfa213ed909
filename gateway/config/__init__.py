"""Configuration: one TOML file, an environment overlay and command-line overrides become `Settings`.

The only package that reads the process's environment. Not here: building objects from settings.
"""

from gateway.config.agent_settings import (
    agent_settings,
    classifier_settings,
    evaluator_settings,
    model_settings,
)
from gateway.config.agent_speech import AgentSpeech, agent_speech
from gateway.config.agents import DEFAULT_AGENT, DEFAULT_GRAPH, RouteSettings
from gateway.config.environment import crash_at, environment, machine_zone
from gateway.config.explain import check_config, explain
from gateway.config.limits import model_limits
from gateway.config.load import Loaded, load, load_with_sources
from gateway.config.problems import ConfigurationProblems, Problem, SettingSource
from gateway.config.secrets import SecretRef, Secrets, SecretUnavailable
from gateway.config.settings import Settings

__all__ = [
    "DEFAULT_AGENT",
    "DEFAULT_GRAPH",
    "AgentSpeech",
    "ConfigurationProblems",
    "Loaded",
    "Problem",
    "RouteSettings",
    "SecretRef",
    "SecretUnavailable",
    "Secrets",
    "SettingSource",
    "Settings",
    "agent_settings",
    "agent_speech",
    "check_config",
    "classifier_settings",
    "crash_at",
    "environment",
    "evaluator_settings",
    "explain",
    "load",
    "load_with_sources",
    "machine_zone",
    "model_limits",
    "model_settings",
]
