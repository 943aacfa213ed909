"""The alerts and the dashboard in deploy/monitoring use metrics that the gateway has, and the alerts fire."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml  # type: ignore[import-untyped]  # PyYAML ships no type information

from gateway.channels.supervisor import ChannelStatus
from gateway.runtime.http_server import Addresses
from gateway.runtime.metrics import Telemetry
from pipeline.domain.clock import SystemClock

ROOT = Path(__file__).parents[3]
FOLDER = ROOT / "deploy" / "monitoring"
ALERTS = yaml.safe_load((FOLDER / "alerts.yml").read_text(encoding="utf-8"))
RULES: list[dict[str, Any]] = [rule for group in ALERTS["groups"] for rule in group["rules"]]
ALERT_TESTS = yaml.safe_load((FOLDER / "alerts_test.yml").read_text(encoding="utf-8"))
DASHBOARD = json.loads((FOLDER / "grafana" / "dashboards" / "parlour.json").read_text(encoding="utf-8"))
COMPOSE = yaml.safe_load((ROOT / "deploy" / "compose.monitoring.yaml").read_text(encoding="utf-8"))

_METRIC = re.compile(r"\bparlour_[a-z_]+")
_LABELS = re.compile(
    r"\b(parlour_[a-z_]+)\{([^}]*)\}|by \(([a-z, _]+)\) \((?:rate|increase)?\(?(parlour_[a-z_]+)"
)


def known() -> dict[str, set[str]]:
    """The metrics of a gateway, each with its labels."""
    telemetry = Telemetry(SystemClock())
    status = ChannelStatus(channel="telegram", account="main", state="up", received_ago_s=1.0)
    telemetry.watch_channels(lambda: [status])
    telemetry.accepted("telegram", 0.1)
    telemetry.delivered("sent")
    telemetry.job_ended("title", "dead")
    telemetry.turn_ended("error")
    telemetry.model_called("telegram", 1, 0.1)
    telemetry.wrong_token("page")
    found: dict[str, set[str]] = {}
    for family in telemetry.registry.collect():
        for name in (family.name, f"{family.name}_total", f"{family.name}_bucket"):
            found.setdefault(name, set())
        for sample in family.samples:
            found.setdefault(sample.name, set()).update(sample.labels)
    return found


def expressions() -> dict[str, str]:
    """Every expression of the alerts and of the dashboard, by its alert or panel."""
    panels = {
        f"{panel['title']} {target['refId']}": target["expr"]
        for panel in DASHBOARD["panels"]
        for target in panel["targets"]
    }
    return {rule["alert"]: rule["expr"] for rule in RULES} | panels


def test_every_metric_and_label_that_is_used_exists() -> None:
    metrics = known()
    unknown = [
        f"{where}: {name}"
        for where, expression in expressions().items()
        for name in _METRIC.findall(expression)
        if name not in metrics
    ]
    assert unknown == []
    for where, expression in expressions().items():
        for name, chosen, grouped, of in _LABELS.findall(expression):
            labels = re.findall(r"([a-z]+)=", chosen) if name else grouped.replace(" ", "").split(",")
            own = metrics[name or of] | {"instance", "job"}
            if own != {"instance", "job"}:
                assert set(labels) <= own, where


def test_every_alert_says_what_to_do_and_how_urgent_it_is() -> None:
    assert len(RULES) >= 10
    for rule in RULES:
        assert rule["labels"]["severity"] in ("page", "ticket"), rule["alert"]
        assert {"summary", "action"} == set(rule["annotations"]), rule["alert"]
    assert len({rule["alert"] for rule in RULES}) == len(RULES)


def test_the_guide_says_what_to_do_about_every_alert() -> None:
    guide = (ROOT / "docs" / "guides" / "cluster.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `(Parlour\w+)` \| (\w+) \| .+ \| .+ \|$", guide, re.MULTILINE)

    assert rows == [(rule["alert"], rule["labels"]["severity"]) for rule in RULES]


def test_every_alert_has_a_test_in_which_it_fires() -> None:
    fired = {
        case["alertname"]
        for test in ALERT_TESTS["tests"]
        for case in test["alert_rule_test"]
        if case["exp_alerts"]
    }
    assert fired == {rule["alert"] for rule in RULES}


def test_the_alerts_fire_when_they_should() -> None:
    promtool = shutil.which("promtool")
    if promtool is None:
        pytest.skip("promtool is not installed; on Debian: apt-get install prometheus")
    for words in (("check", "rules", "alerts.yml"), ("test", "rules", "alerts_test.yml")):
        run = subprocess.run([promtool, *words], cwd=FOLDER, capture_output=True, text=True, check=False)
        assert run.returncode == 0, run.stdout + run.stderr


def test_the_panels_have_words_and_do_not_overlap() -> None:
    taken: set[tuple[int, int]] = set()
    for panel in DASHBOARD["panels"]:
        assert panel["description"].endswith("."), panel["title"]
        at = panel["gridPos"]
        fields = {(at["x"] + x, at["y"] + y) for x in range(at["w"]) for y in range(at["h"])}
        assert not fields & taken, panel["title"]
        assert all(x < 24 for x, _ in fields), panel["title"]
        taken |= fields


def test_everything_that_compose_mounts_exists_and_its_images_are_pinned() -> None:
    mounted = [
        volume.split(":")[0].removeprefix("./")
        for service in COMPOSE["services"].values()
        for volume in service["volumes"]
        if volume.startswith("./")
    ]
    shipped = [path for path in mounted if not path.startswith("secrets/")]
    assert [path for path in shipped if not (ROOT / "deploy" / path).exists()] == []
    images = [service["image"] for service in COMPOSE["services"].values() if "image" in service]
    assert [image for image in images if not re.fullmatch(r"[a-z/]+:v?[0-9]+\.[0-9]+\.[0-9]+", image)] == []
    paths = yaml.safe_load((FOLDER / "prometheus.yml").read_text(encoding="utf-8"))
    assert paths["scrape_configs"][0]["authorization"]["credentials_file"] == "/run/secrets/metrics-token"
    assert any(
        volume.endswith(":/run/secrets/metrics-token:ro")
        for volume in COMPOSE["services"]["prometheus"]["volumes"]
    )


def test_the_gateway_answers_to_the_name_by_which_prometheus_asks() -> None:
    scraped = yaml.safe_load((FOLDER / "prometheus.yml").read_text(encoding="utf-8"))["scrape_configs"][0]
    origins = json.loads(COMPOSE["services"]["parlour"]["environment"]["PARLOUR__SERVER__PUBLIC_ORIGINS"])
    (target,) = scraped["static_configs"][0]["targets"]
    assert target in Addresses("0.0.0.0", 8765, origins).hosts()
