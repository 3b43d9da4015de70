#!/bin/bash
# The checks of `cargo xtask check service` on the image: built by the recipe from the folder $1, and run as the recipe says. Needs root, buildah,
# podman and curl. A binary that is not static gets its libraries below it, in place of `scratch`.
set -uo pipefail
folder=$1 recipe=$2
binary=$folder/target/x86_64-unknown-linux-musl/release/wharf
store=(--root "$folder/storage" --runroot "$folder/run" --storage-driver vfs)
port=7345
export WHARF_TOKEN=$(head -c 24 /dev/urandom | base64 | tr -d '/+=')
failed=0

check() {
  local name=$1
  shift
  if "$@" >"$folder/last" 2>&1; then echo "ok      $name"; else
    echo "FAILED  $name: $*"
    tail -n 5 "$folder/last"
    failed=1
    return 1
  fi
}
is() { [[ $1 == "$2" ]] || { echo "it is $1"; return 1; }; }
fetched() { curl --silent --show-error --fail --max-time 20 "$@"; }
status_of() { awk -v key="$1:" '$1 == key { print $2 }' "/proc/$pid/status"; }
cleared() { podman "${store[@]}" rm --force --time 1 wharf-service >/dev/null 2>&1 || true; }
trap 'cleared; rm -rf "$folder/storage" "$folder/run"' EXIT

from=()
if ldd "$binary" >/dev/null 2>&1; then
  echo 'the binary is not static: its libraries take the place of an empty image'
  libraries=$folder/libraries
  for library in $(ldd "$binary" | grep --only-matching '/lib[^ ]*'); do install -D "$library" "$libraries$library"; done
  base=$(buildah "${store[@]}" from scratch)
  buildah "${store[@]}" copy --quiet "$base" "$libraries" / >/dev/null
  buildah "${store[@]}" commit --quiet --rm "$base" wharf-libraries >/dev/null
  from=(--from localhost/wharf-libraries)
fi
check 'the recipe makes an image' buildah "${store[@]}" bud --isolation chroot "${from[@]}" --file "$recipe" --tag wharf "$folder" || exit 1

cat >"$folder/wharf.toml" <<TOML
plugin_dir = "/plugins"
[http]
listen = "0.0.0.0:$port"
token.env = "WHARF_TOKEN"
TOML
# This machine's own limits and no controllers, so that it runs where root has not every right.
here=(--network host --cgroups disabled --ulimit "nofile=$(ulimit -Hn)" --ulimit nproc=4096:4096)
started() {
  cleared
  podman "${store[@]}" run --detach --name wharf-service --read-only --cap-drop all --security-opt no-new-privileges "${here[@]}" \
    --env WHARF_TOKEN --volume "$folder/wharf.toml:/etc/wharf/wharf.toml:ro" "$@" wharf
}
ready() {
  local end=$((SECONDS + 120))
  until fetched "http://127.0.0.1:$port/readyz"; do
    ((SECONDS < end)) || { podman "${store[@]}" logs wharf-service; return 1; }
    sleep 0.2
  done
}
called() {
  fetched --header "Authorization: Bearer $WHARF_TOKEN" --header 'Content-Type: application/json' \
    --header 'Accept: application/json, text/event-stream' --header 'MCP-Protocol-Version: 2026-07-28' \
    --header 'Mcp-Method: tools/call' --header 'Mcp-Name: time_convert_time' \
    --data '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"time_convert_time","arguments":
      {"source_timezone":"Asia/Tokyo","time":"12:00","target_timezone":"UTC"},"_meta":{
      "io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}' \
    "http://127.0.0.1:$port/mcp" | grep --fixed-strings 03:00
}

check 'it starts with a folder for its cache' started --tmpfs /cache:mode=1777 || exit 1
check 'it is ready' ready
check 'a plugin is compiled and called' called
pid=$(podman "${store[@]}" inspect --format '{{.State.Pid}}' wharf-service)
check 'it is user 65532' is "$(status_of Uid)" 65532
check 'it has no capability' is "$(status_of CapBnd)$(status_of CapEff)$(status_of CapPrm)" "$(printf '0%.0s' {1..48})"
check 'it gets no new rights' is "$(status_of NoNewPrivs)" 1
check 'system calls are filtered' is "$(status_of Seccomp)" 2
check 'its root cannot be written' is "$(awk '$5 == "/" { print substr($6, 1, 2) }' "/proc/$pid/mountinfo")" ro
check 'it has no shell' is "$(ls "/proc/$pid/root/bin" 2>/dev/null)" ''
check 'what it compiled is its own' is "$(stat -c '%u %a' "/proc/$pid/root/cache/wharf")" '65532 700'
check 'it stops' podman "${store[@]}" stop --time 40 wharf-service
check 'without an error' is "$(podman "${store[@]}" inspect --format '{{.State.ExitCode}}' wharf-service)" 0
check 'it starts without a folder' started
check 'it is ready without one' ready
check 'and calls' called
podman --version
exit $failed
