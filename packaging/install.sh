#!/bin/sh
# Installs wharf @VERSION@: `sh install.sh [FOLDER]`, by default into ~/.local/bin. It fetches the archive for this machine, compares its SHA-256
# with SHA256SUMS of the release, and puts one file into the folder. WHARF_RELEASES is another address of the release's files.
set -eu

fail() {
    echo "install.sh: $1" >&2
    exit 1
}

main() {
    version='@VERSION@'
    releases=${WHARF_RELEASES:-'@RELEASES@'}
    folder=${1:-$HOME/.local/bin}
    [ -n "$releases" ] || fail 'there is no release yet; WHARF_RELEASES names the address of the files of one'

    case $(uname -m) in
        x86_64 | amd64) cpu=x86_64 ;;
        aarch64 | arm64) cpu=aarch64 ;;
        *) fail "there is no wharf for the processor $(uname -m)" ;;
    esac
    case $(uname -s) in
        # The binary for glibc needs 2.28. The one for musl runs on every Linux, and more slowly.
        Linux)
            libc=$(getconf GNU_LIBC_VERSION 2>/dev/null || true)
            case $libc in
                'glibc 2.'*) [ "${libc#glibc 2.}" -ge 28 ] 2>/dev/null && target=$cpu-unknown-linux-gnu || target=$cpu-unknown-linux-musl ;;
                *) target=$cpu-unknown-linux-musl ;;
            esac
            ;;
        Darwin) target=$cpu-apple-darwin ;;
        *) fail "there is no wharf for $(uname -s)" ;;
    esac
    name=wharf-$target-v$version

    place=$(mktemp -d)
    trap 'rm -rf "$place"' EXIT
    for file in SHA256SUMS "$name.tar.gz"; do
        fetch "$releases/$file" "$place/$file"
    done
    expected=$(awk -v name="$name.tar.gz" '$2 == name || $2 == "*" name { print $1 }' "$place/SHA256SUMS")
    [ -n "$expected" ] || fail "SHA256SUMS of the release does not name $name.tar.gz"
    if command -v sha256sum >/dev/null; then
        found=$(sha256sum "$place/$name.tar.gz")
    else
        found=$(shasum -a 256 "$place/$name.tar.gz")
    fi
    [ "${found%% *}" = "$expected" ] || fail "$name.tar.gz is not the file of the release: its SHA-256 is ${found%% *}, not $expected; nothing was installed"

    tar -xzf "$place/$name.tar.gz" -C "$place"
    mkdir -p "$folder"
    # A wharf that runs goes on with its file.
    cp "$place/$name/wharf" "$folder/.wharf-$$"
    chmod 755 "$folder/.wharf-$$"
    mv -f "$folder/.wharf-$$" "$folder/wharf"
    echo "$folder/wharf: wharf $version"
    case ":$PATH:" in
        *":$folder:"*) ;;
        *) echo "$folder is not on PATH; add it, or type $folder/wharf" ;;
    esac
}

fetch() {
    # Where the address was not changed, nothing but HTTPS is followed.
    only='=https'
    [ -z "${WHARF_RELEASES:-}" ] || only='=https,http'
    if command -v curl >/dev/null; then
        curl --proto "$only" --fail --silent --show-error --location --output "$2" "$1" || fail "$1 cannot be fetched"
    else
        wget --quiet --output-document="$2" "$1" || fail "$1 cannot be fetched, and there is no curl"
    fi
}

# All of it was read before anything runs, also when it comes through a pipe.
main "$@"
