"""Prints the steps with commands of workflows: workflow, job, whether the job checks out the repository, commands."""

import json, pathlib, sys
from ruamel.yaml import YAML
found = []
for path in map(pathlib.Path, sys.argv[1:]):
    for name, job in YAML(typ='safe').load(path)['jobs'].items():
        out = any('actions/checkout@' in step.get('uses', '') for step in job['steps'])
        found += [(path.stem, name, out, step['run']) for step in job['steps'] if 'run' in step]
print(json.dumps(found))
