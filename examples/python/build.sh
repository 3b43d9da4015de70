#!/bin/sh
# Builds hello-py.wasm. Needs componentize-py.
set -eu
cd "$(dirname "$0")"
mkdir -p wit/deps/wharf-plugin
cp ../../wit/*.wit wit/deps/wharf-plugin/
componentize-py -d wit -w hello componentize hello -o hello-py.wasm
