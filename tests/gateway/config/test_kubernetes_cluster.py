"""deploy/kubernetes/cluster is valid, gives each role its own rights, and scales on metrics that exist."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml  # type: ignore[import-untyped]  # PyYAML ships no type information

from gateway.config import Settings, load
from gateway.runtime.http_server import Addresses
from tests.gateway.config.test_monitoring import known
from tests.support.deployment import DEPLOY, check_against_schemas, one_of, rendered

FOLDER = DEPLOY / "kubernetes" / "cluster"
ADAPTER = yaml.safe_load((DEPLOY / "monitoring" / "prometheus-adapter.yml").read_text(encoding="utf-8"))
ROLES = ("edge", "work")
SECRETS = {
    "DATABASE_URL": "postgresql://parlour:secret@db.example.org/parlour",
    "BUS_URL": "redis://:secret@parlour-bus:6379/0",
}


@pytest.fixture(scope="module")
def objects() -> list[dict[str, Any]]:
    return rendered("cluster")


def pod_of(objects: list[dict[str, Any]], name: str) -> dict[str, Any]:
    spec: dict[str, Any] = one_of(objects, "Deployment", name)["spec"]["template"]["spec"]
    return spec


def container_of(objects: list[dict[str, Any]], role: str) -> dict[str, Any]:
    (container,) = pod_of(objects, f"parlour-{role}")["containers"]
    return dict(container)


def settings_of(objects: list[dict[str, Any]], role: str, pod_ip: str = "10.1.2.3") -> Settings:
    environ = {
        one["name"]: one["value"].replace("$(POD_IP)", pod_ip)
        for one in container_of(objects, role)["env"]
        if "value" in one
    }
    # The image's own, as the Dockerfile sets it.
    return load(FOLDER / "parlour.toml", environ | SECRETS | {"PARLOUR__SERVER__HOST": "0.0.0.0"}, [])


def labels_of(objects: list[dict[str, Any]], name: str) -> dict[str, str]:
    labels: dict[str, str] = one_of(objects, "Deployment", name)["spec"]["template"]["metadata"]["labels"]
    return labels


def chosen(objects: list[dict[str, Any]], selector: dict[str, str]) -> set[str]:
    """The deployments whose pods a selector takes."""
    names = [one["metadata"]["name"] for one in objects if one["kind"] == "Deployment"]
    return {name for name in names if selector.items() <= labels_of(objects, name).items()}


def reachable(objects: list[dict[str, Any]], name: str) -> list[dict[str, Any]]:
    """The egress rules of all policies that take the pods of the deployment `name`."""
    policies = [one["spec"] for one in objects if one["kind"] == "NetworkPolicy"]
    assert policies
    return [
        rule
        for policy in policies
        if name in chosen(objects, policy["podSelector"]["matchLabels"])
        for rule in policy.get("egress", [])
    ]


def test_the_cluster_is_valid_in_old_and_new_versions(objects: list[dict[str, Any]]) -> None:
    check_against_schemas(objects)


def test_each_pod_has_the_role_of_its_deployment(objects: list[dict[str, Any]]) -> None:
    for role in ROLES:
        settings = settings_of(objects, role)
        assert settings.cluster.role == role
        assert (settings.storage.kind, settings.bus.kind) == ("postgres", "redis")
        assert labels_of(objects, f"parlour-{role}")["app.kubernetes.io/component"] == role


def test_every_selector_takes_the_pods_of_its_role_and_no_others(objects: list[dict[str, Any]]) -> None:
    for role in ROLES:
        name = f"parlour-{role}"
        selectors = [
            one_of(objects, "Deployment", name)["spec"]["selector"]["matchLabels"],
            one_of(objects, "Service", name)["spec"]["selector"],
            one_of(objects, "NetworkPolicy", name)["spec"]["podSelector"]["matchLabels"],
            one_of(objects, "PodDisruptionBudget", name)["spec"]["selector"]["matchLabels"],
        ]
        assert [chosen(objects, selector) for selector in selectors] == [{name}] * 4
    policies = [one for one in objects if one["kind"] == "NetworkPolicy"]
    assert all(chosen(objects, one["spec"]["podSelector"]["matchLabels"]) for one in policies)
    (bus,) = one_of(objects, "NetworkPolicy", "parlour-bus")["spec"]["ingress"]
    (peer,) = bus["from"]
    assert chosen(objects, peer["podSelector"]["matchLabels"]) == {"parlour-edge", "parlour-work"}


def test_no_object_has_a_secret_in_it(objects: list[dict[str, Any]]) -> None:
    assert not [one for one in objects if one["kind"] == "Secret"]
    for one in objects:
        if one["kind"] != "Deployment":
            continue
        for container in one["spec"]["template"]["spec"]["containers"]:
            written = {each["name"] for each in container.get("env", []) if "value" in each}
            assert not {name for name in written if re.search("TOKEN|KEY|PASSWORD|URL", name)}
    text = (FOLDER / "parlour.toml").read_text(encoding="utf-8")
    references = re.findall(r'^#? ?(?:url|token|api_key|\w+_token) = "(.*)"$', text, re.MULTILINE)
    assert len(references) == 3
    assert all(reference.startswith("env:") for reference in references)


def envs_of(objects: list[dict[str, Any]], role: str) -> list[str]:
    """What a container takes all variables of, without the hash of a generated name."""
    names = []
    for one in container_of(objects, role)["envFrom"]:
        ((kind, reference),) = one.items()
        names.append(f"{kind}:{re.sub(r'-[0-9a-z]{10}$', '', reference['name'])}")
    return names


PLATFORMS = ["configMapRef:parlour-platforms", "secretRef:parlour-platforms"]


def test_only_the_edge_gets_the_tokens_of_the_platforms(objects: list[dict[str, Any]]) -> None:
    named = {role: envs_of(objects, role) for role in ROLES}

    assert named == {"edge": ["secretRef:parlour-secrets", *PLATFORMS], "work": ["secretRef:parlour-secrets"]}


def test_the_example_of_a_bot_gives_the_edge_its_channel(objects: list[dict[str, Any]]) -> None:
    text = (FOLDER / "platforms.env").read_text(encoding="utf-8")
    bots = dict(re.findall(r"^# (PARLOUR__\w+)=(env:\w+)$", text, re.MULTILINE))
    assert bots
    values = {
        reference.removeprefix("env:"): "123456789:AAEabcdefghijklmnopqrstuvwxyz0123456"
        for reference in bots.values()
    }
    environ = bots | values | SECRETS | {"PARLOUR__CLUSTER__ROLE": "edge"}

    assert load(FOLDER / "parlour.toml", environ, []).channels.telegram.active
    assert not settings_of(objects, "work").channels.telegram.active


def test_a_component_lets_workers_fetch_what_people_send(tmp_path: Path) -> None:
    there = Path(os.path.relpath(FOLDER, tmp_path))
    words = {"resources": [str(there)], "components": [str(there / "platform-files")]}
    (tmp_path / "kustomization.yaml").write_text(yaml.safe_dump(words), encoding="utf-8")
    objects = rendered(tmp_path)

    check_against_schemas(objects)
    assert envs_of(objects, "work") == ["secretRef:parlour-secrets", *PLATFORMS]
    cidrs = [
        to["ipBlock"]["cidr"]
        for rule in reachable(objects, "parlour-work")
        for to in rule.get("to", [])
        if "ipBlock" in to
    ]
    assert sorted(cidrs) == ["0.0.0.0/0", "203.0.113.0/24", "::/0"]


def test_the_edge_reaches_platforms_and_a_worker_only_models_the_record_and_the_bus(
    objects: list[dict[str, Any]],
) -> None:
    blocks = {
        role: {
            to["ipBlock"]["cidr"]
            for rule in reachable(objects, f"parlour-{role}")
            for to in rule.get("to", [])
            if "ipBlock" in to
        }
        for role in ROLES
    }
    assert blocks == {"edge": {"0.0.0.0/0", "::/0"}, "work": {"203.0.113.0/24"}}
    for role in ROLES:
        rules = reachable(objects, f"parlour-{role}")
        # A rule without a peer lets out to everywhere: the DNS only.
        assert {port["port"] for rule in rules if "to" not in rule for port in rule["ports"]} == {53}
        pods = {
            (to["podSelector"]["matchLabels"].get("app.kubernetes.io/name"), port["port"])
            for rule in rules
            for to in rule.get("to", [])
            for port in rule.get("ports", [])
            if "podSelector" in to
        }
        assert pods == {("postgresql", 5432), ("parlour-bus", 6379)}
        # No pod of another kind has the label of our pods.
        assert all(
            len(to["podSelector"]["matchLabels"]) == 1
            for rule in rules
            for to in rule.get("to", [])
            if "podSelector" in to
        )
    (entry,) = one_of(objects, "NetworkPolicy", "parlour-work")["spec"]["ingress"]
    assert "from" in entry
    assert reachable(objects, "parlour-bus") == []


def test_every_container_runs_without_rights_on_a_read_only_root(objects: list[dict[str, Any]]) -> None:
    for name in ("parlour-edge", "parlour-work", "parlour-bus"):
        pod = pod_of(objects, name)
        assert pod["automountServiceAccountToken"] is False
        assert pod["securityContext"]["runAsNonRoot"] is True
        assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
        for one in (*pod.get("initContainers", []), *pod["containers"]):
            assert one["securityContext"] == {
                "allowPrivilegeEscalation": False,
                "readOnlyRootFilesystem": True,
                "capabilities": {"drop": ["ALL"]},
            }
            assert "memory" in one["resources"]["limits"]


def test_pods_get_the_time_to_drain_and_budgets_let_nodes_be_drained(objects: list[dict[str, Any]]) -> None:
    for role in ROLES:
        (kind, wait) = container_of(objects, role)["lifecycle"]["preStop"]["exec"]["command"]
        grace = pod_of(objects, f"parlour-{role}")["terminationGracePeriodSeconds"]
        assert kind == "sleep"
        assert grace - int(wait) > 30
        budget = one_of(objects, "PodDisruptionBudget", f"parlour-{role}")["spec"]
        assert budget["maxUnavailable"] == 1
    edge = one_of(objects, "Deployment", "parlour-edge")["spec"]
    assert (edge["replicas"], edge["strategy"]) == (1, {"type": "Recreate"})
    work = one_of(objects, "Deployment", "parlour-work")["spec"]
    assert "replicas" not in work  # an apply must not undo the autoscaler
    assert work["strategy"]["rollingUpdate"]["maxUnavailable"] == 0


def test_what_the_pods_name_is_there(objects: list[dict[str, Any]]) -> None:
    claim = one_of(objects, "PersistentVolumeClaim")
    for role in ROLES:
        pod = pod_of(objects, f"parlour-{role}")
        volumes = {one["name"]: one for one in pod["volumes"]}
        maps = [one["metadata"]["name"] for one in objects if one["kind"] == "ConfigMap"]
        assert volumes["config"]["configMap"]["name"] in maps
        assert one_of(objects, "ServiceAccount", pod["serviceAccountName"])
        mounted = {one["name"] for one in container_of(objects, role)["volumeMounts"]}
        assert mounted <= set(volumes)
        assert volumes["state"]["persistentVolumeClaim"]["claimName"] == claim["metadata"]["name"]
    assert claim["spec"]["accessModes"] == ["ReadWriteMany"]
    assert one_of(objects, "Service", "parlour-bus")["spec"]["ports"][0]["port"] == 6379


def test_prometheus_may_ask_a_pod_by_its_address(objects: list[dict[str, Any]]) -> None:
    for role in ROLES:
        server = settings_of(objects, role).server
        assert "10.1.2.3:8765" in Addresses("0.0.0.0", server.port, server.public_origins).hosts()
        names = [one["name"] for one in container_of(objects, role)["env"]]
        # The address is known before the variable that contains it.
        assert names.index("POD_IP") < names.index("PARLOUR__SERVER__PUBLIC_ORIGINS")


def test_the_autoscaler_uses_metrics_that_the_gateway_has_and_the_adapter_gives(
    objects: list[dict[str, Any]],
) -> None:
    spec = one_of(objects, "HorizontalPodAutoscaler")["spec"]
    assert spec["scaleTargetRef"]["name"] == "parlour-work"
    assert spec["minReplicas"] >= 2
    wanted = {one[one["type"].lower()]["metric"]["name"] for one in spec["metrics"]}
    assert wanted == {"parlour_queue_wait_seconds", "parlour_turns_running"}
    rules = ADAPTER["rules"]["custom"]
    assert {rule["name"]["as"] for rule in rules} == wanted
    series = {re.split(r"\{", rule["seriesQuery"])[0] for rule in rules}
    assert series <= known().keys()
    by_name = {one["metadata"]["name"] for one in objects if one["kind"] == "Service"}
    objects_named = [one["object"]["describedObject"]["name"] for one in spec["metrics"] if "object" in one]
    assert set(objects_named) <= by_name


def test_the_adapters_queries_count_what_waits_and_what_runs(tmp_path: Path) -> None:
    promtool = shutil.which("promtool")
    if promtool is None:
        pytest.skip("promtool is not installed; on Debian: apt-get install prometheus")
    queries = {
        rule["name"]["as"]: rule["metricsQuery"]
        .replace("<<.Series>>", re.split(r"\{", rule["seriesQuery"])[0])
        .replace("<<.LabelMatchers>>", 'namespace="bots"')
        .replace("<<.GroupBy>>", "service")
        for rule in ADAPTER["rules"]["custom"]
    }
    labels = '{namespace="bots", service="parlour-work", pod="%s"}'
    # In each of two workers a message a second starts after three seconds of waiting.
    series = [
        {"series": f"parlour_queue_wait_seconds_sum{labels % pod}", "values": "0+180x10"} for pod in "ab"
    ] + [{"series": f"parlour_turns_running{labels % pod}", "values": "5x10"} for pod in "ab"]
    expected = {"parlour_queue_wait_seconds": 6, "parlour_turns_running": 10}
    tests = [
        {
            "expr": query,
            "eval_time": "8m",
            "exp_samples": [{"labels": '{service="parlour-work"}', "value": expected[name]}],
        }
        for name, query in queries.items()
    ]
    file = tmp_path / "adapter_test.yml"
    file.write_text(
        yaml.safe_dump({"tests": [{"interval": "1m", "input_series": series, "promql_expr_test": tests}]}),
        encoding="utf-8",
    )
    run = subprocess.run([promtool, "test", "rules", str(file)], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stdout + run.stderr
