"""A second opinion: verifies with PyPI's sigstore what `make.mjs` made. Every good bundle has to count there as well, and the hostile ones
that are about cryptography have to be refused.

python opinion.py FOLDER
"""

import json
import sys
from pathlib import Path

from sigstore.errors import Error
from sigstore.models import Bundle, TrustedRoot
from sigstore.verify import Verifier, policy

WORKFLOW = "https://github.com/acme/fetch/.github/workflows/release.yml"
ISSUER = "https://token.actions.githubusercontent.com"
GOOD = {
    "component.json": "v1.2.0",
    "manifest-message.json": "v1.2.0",
    "manifest-statement.json": "v1.2.0",
    "provenance.json": "v1.2.0",
    "next-release.json": "v1.3.0",
}
BAD = ["other-subject.json", "other-issuer.json", "other-artifact.json", "other-instance.json", "expired.json"]


def main(folder: Path) -> None:
    verifier = Verifier(trusted_root=TrustedRoot.from_file(str(folder / "root.json")))
    component = (folder / "component").read_bytes()
    manifest = (folder / "manifest.json").read_bytes()

    def verify(name: str, tag: str) -> None:
        text = (folder / name).read_text()
        # Where protobuf's JSON leaves out zeros and empty lists, PyPI's sigstore expects them.
        value = json.loads(text)
        for entry in value["verificationMaterial"]["tlogEntries"]:
            entry["inclusionProof"] = {"logIndex": "0", "hashes": [], **entry["inclusionProof"]}
        bundle = Bundle.from_json(json.dumps(value))
        identity = policy.Identity(identity=f"{WORKFLOW}@refs/tags/{tag}", issuer=ISSUER)
        if "dsseEnvelope" in value:
            verifier.verify_dsse(bundle, identity)
        else:
            verifier.verify_artifact(manifest if name.startswith("manifest") else component, bundle, identity)

    for name, tag in GOOD.items():
        verify(name, tag)
    for name in BAD:
        try:
            verify(name, "v1.2.0")
        except Error:
            continue
        raise SystemExit(f"PyPI's sigstore accepts {name}")
    print(f"PyPI's sigstore accepts {len(GOOD)} bundles and refuses {len(BAD)}, as wharf does")


main(Path(sys.argv[1]))
