#!/bin/sh
# Builds status-py.wasm. Needs componentize-py.
set -eu
cd "$(dirname "$0")"
mkdir -p wit/deps/wharf-plugin
cp ../../wit/*.wit wit/deps/wharf-plugin/
componentize-py -d wit -w status componentize status -o status-py.wasm
