"""Validates the manifests in this folder against the schemas of Kubernetes: pip install kubernetes-validate, then run this."""

import pathlib
import sys

import kubernetes_validate
import yaml

wrong = 0
seen = set()
for path in sorted(pathlib.Path(__file__).parent.glob("*.yaml")):
    for document in yaml.safe_load_all(path.read_text()):
        kind = document["kind"]
        try:
            version = kubernetes_validate.validate(document, kubernetes_validate.latest_version(), strict=True)
            print(f"{path.name}: {kind} fits Kubernetes {version}")
            seen.add(kind)
        except kubernetes_validate.ValidationError as error:
            wrong += 1
            print(f"{path.name}: {kind}: {error}", file=sys.stderr)
missing = {"ConfigMap", "Deployment", "Service", "PodDisruptionBudget", "NetworkPolicy"} - seen
if missing:
    print(f"there is no valid {', '.join(sorted(missing))}", file=sys.stderr)
sys.exit(1 if wrong or missing else 0)
