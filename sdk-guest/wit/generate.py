#!/usr/bin/env python3
"""Generates the bindings of the SDKs in Go and C from the contract: sdk-guest/wit/generate.py

Needs wit-bindgen (cargo install wit-bindgen-cli@0.61.1) and gofmt. The folder go/gen/wit is not generated: it is a hand-written
replacement for the few types and functions that the generated Go code calls, so that the Go module has no dependencies.
"""

import pathlib
import shutil
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
SDKS = HERE.parent
KINDS = ["tools", "resources", "prompts", "completions"]


def main() -> None:
    c, go = SDKS / "c/gen", SDKS / "go/gen"
    run("wit-bindgen", "c", "--world", "plugin", "--out-dir", c, HERE)
    for folder in go.iterdir():
        if folder.name != "wit" and folder.is_dir():
            shutil.rmtree(folder)
    run("wit-bindgen", "go", "--world", "plugin", "--format=false", "--pkg-name", "wharf/gen", "--out-dir", go, HERE)
    for file in go.glob("*/*.go"):
        text = file.read_text().replace("go.bytecodealliance.org/pkg/wit/", "wharf/gen/wit/")
        # Imports have no function bodies outside of WebAssembly, so native tests exclude these files.
        file.write_text("//go:build wasip1\n\n" + text)
    for kind in KINDS:
        exports(go, kind)
    run("gofmt", "-w", go)
    # Go's linker cannot write custom sections, so the plugin's build appends this one.
    (go / "world.section").write_bytes(section(c / "plugin_component_type.o"))


def run(*command: object) -> None:
    if shutil.which(str(command[0])) is None:
        sys.exit(f"{command[0]} is missing: {__doc__}")
    subprocess.run([str(word) for word in command], check=True)


def exports(go: pathlib.Path, kind: str) -> None:
    """Writes the variables of the functions that the generated exports call. The package `wharf` imports them and sets them."""
    functions = {
        "tools": {
            "ListTools": "func() wit.Result[[]api.Tool, api.Failure]",
            "CallTool": "func(name, arguments string, context api.Context) wit.Result[api.ToolOutcome, api.Failure]",
        },
        "resources": {
            "ListResources": "func() wit.Result[[]api.ResourceEntry, api.Failure]",
            "ListTemplates": "func() wit.Result[[]api.ResourceTemplate, api.Failure]",
            "ReadResource": "func(uri string, context api.Context) wit.Result[api.ReadOutcome, api.Failure]",
        },
        "prompts": {
            "ListPrompts": "func() wit.Result[[]api.Prompt, api.Failure]",
            "GetPrompt": "func(name string, arguments []wit.Tuple2[string, string], context api.Context) "
            "wit.Result[api.PromptOutcome, api.Failure]",
        },
        "completions": {
            "Complete": "func(target api.Target, argument, value string, arguments []wit.Tuple2[string, string]) "
            "wit.Result[api.Completion, api.Failure]",
        },
    }[kind]
    lines = [
        "//go:build wasip1",
        "",
        "// Written by sdk-guest/wit/generate.py. DO NOT EDIT!",
        "",
        f"package export_wharf_plugin_{kind}",
        "",
        "import (",
        f'api "wharf/gen/wharf_plugin_{kind}"',
        'wit "wharf/gen/wit/types"',
        ")",
        "",
        "var (",
        *[f"{name} {kind}" for name, kind in functions.items()],
        ")",
    ]
    folder = go / f"export_wharf_plugin_{kind}"
    folder.mkdir(exist_ok=True)
    (folder / "exports.go").write_text("\n".join(lines) + "\n")


def section(file: pathlib.Path) -> bytes:
    """Returns an object file's custom section with the types of its world, as bytes that can be appended to a module."""
    data, at = file.read_bytes(), 8
    while at < len(data):
        start, kind = at, data[at]
        size, at = leb(data, at + 1)
        end = at + size
        length, name = leb(data, at)
        if kind == 0 and data[name : name + length].startswith(b"component-type"):
            return data[start:end]
        at = end
    sys.exit(f"{file} has no section with the types of its world")


def leb(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte, at = data[at], at + 1
        value |= (byte & 0x7F) << shift
        if not byte & 0x80:
            return value, at
        shift += 7


if __name__ == "__main__":
    main()
