#!/bin/bash
# The checks of `cargo xtask check service` on the unit. Runs as root where systemd is process 1 and nothing else lives, with /in read only and
# /out for what is found. It installs wharf as docs/operations.md says.
exec >/out/report 2>&1
failed=0

# Says whether a command did what it should.
check() {
  local name=$1
  shift
  if "$@" >/out/last 2>&1; then
    echo "ok      $name"
  else
    echo "FAILED  $name: $*"
    tail -n 5 /out/last
    failed=1
  fi
}

# Asks again until it is true, half a minute at most.
soon() {
  local end=$((SECONDS + 30))
  until "$@"; do
    ((SECONDS < end)) || return 1
    sleep 0.2
  done
}

of_unit() { systemctl show wharf.service --value --property "$1"; }
is() { [[ $1 == "$2" ]] || { echo "it is $1"; return 1; }; }
status_of() { awk -v key="$1:" '$1 == key { print $2 }' "/proc/$(of_unit MainPID)/status"; }
fetched() { curl --silent --show-error --fail --max-time 20 "$@"; }
says() { local text=$1; shift; "$@" | tee /dev/stderr | grep --quiet --fixed-strings -- "$text"; }

# Calls a tool that only answers if its plugin was compiled and runs.
called() {
  fetched --header 'Content-Type: application/json' --header 'Accept: application/json, text/event-stream' \
    --header 'MCP-Protocol-Version: 2026-07-28' --header 'Mcp-Method: tools/call' --header 'Mcp-Name: time_convert_time' \
    --data '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"time_convert_time","arguments":
      {"source_timezone":"Asia/Tokyo","time":"12:00","target_timezone":"UTC"},"_meta":{
      "io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}' "$@"
}

useradd --system --home-dir /nonexistent --shell /usr/sbin/nologin wharf
install -D -m 755 /in/wharf /usr/local/bin/wharf
install -D -m 644 -t /usr/local/lib/wharf /in/time.wasm
install -d /etc/wharf
cat >/etc/wharf/wharf.toml <<'TOML'
plugin_dir = "/usr/local/lib/wharf"
[audit]
file = "/var/log/wharf/audit.jsonl"
TOML
install -m 644 /in/wharf.service /in/wharf.socket /etc/systemd/system/
systemctl daemon-reload

check 'systemctl enable --now returns when wharf is ready' systemctl enable --now wharf.service
check 'it is ready' says '"ready":true' fetched http://127.0.0.1:7300/readyz
check 'a plugin is compiled and called' says '03:00' called http://127.0.0.1:7300/mcp
check 'the audit log has the call' grep --quiet time_convert_time /var/log/wharf/audit.jsonl
check 'its folders are its own' is "$(stat -c '%U %a' /var/log/wharf /var/lib/wharf /var/cache/wharf | sort -u)" 'wharf 700'

check 'it is not root' is "$(status_of Uid)" "$(id -u wharf)"
check 'no capability can come back' is "$(status_of CapBnd)$(status_of CapEff)$(status_of CapAmb)" "$(printf '0%.0s' {1..48})"
check 'it gets no new rights' is "$(status_of NoNewPrivs)" 1
check 'system calls are filtered' is "$(status_of Seccomp)" 2

# What another program could do in the same unit.
mkdir -p /home/somebody && echo secret >/home/somebody/file && chmod -R a+rX /home/somebody
sed -e 's|^ExecStart=.*|ExecStart=/bin/bash /in/probe.sh|' -e 's|^Type=.*|Type=oneshot|' -e '/^Restart/d' -e '/^WatchdogSec/d' \
  -e 's|^\[Service\]|&\nStandardOutput=truncate:/out/probe|' /in/wharf.service >/run/systemd/system/probe.service
systemctl daemon-reload
systemctl stop wharf.service
check 'the probe ran to its end' systemctl start probe.service
cat /out/probe
grep --quiet ^FAILED /out/probe && failed=1
check 'wharf starts again' systemctl start wharf.service

install -D -m 644 -t /usr/local/lib/more /in/time.wasm
printf '[plugins.again]\npath = "/usr/local/lib/more/time.wasm"\n' >>/etc/wharf/wharf.toml
check 'a reload returns when the config was read' systemctl reload wharf.service
check 'and is heard of' says 'the config was reloaded' journalctl --unit wharf.service --no-pager

# Alive for longer than the watchdog waits, and killed by it when it hangs.
mkdir -p /run/systemd/system/wharf.service.d
printf '[Service]\nWatchdogSec=2\n' >/run/systemd/system/wharf.service.d/watchdog.conf
systemctl daemon-reload
check 'it restarts with a short watchdog' systemctl restart wharf.service
sleep 5
check 'the watchdog is fed' is "$(of_unit NRestarts) $(of_unit ActiveState)" '0 active'
kill -STOP "$(of_unit MainPID)"
restarted() { [[ $(of_unit NRestarts) == 1 && $(of_unit ActiveState) == active ]]; }
check 'the watchdog restarts a wharf that hangs' soon restarted
rm /run/systemd/system/wharf.service.d/watchdog.conf

check 'it stops' systemctl stop wharf.service
check 'without an error' is "$(of_unit Result) $(of_unit ExecMainStatus)" 'success 0'

# Certificate and key as credentials, which only the service sees.
install -d -m 700 /etc/wharf/credentials
openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 30 -subj /CN=localhost \
  -addext subjectAltName=DNS:localhost -keyout /etc/wharf/credentials/tls.key -out /etc/wharf/tls.crt 2>/dev/null
printf '[Service]\nLoadCredential=tls.key:/etc/wharf/credentials/tls.key\n' >/run/systemd/system/wharf.service.d/credentials.conf
cat >>/etc/wharf/wharf.toml <<'TOML'
[http.tls]
cert = "/etc/wharf/tls.crt"
key = "/run/credentials/wharf.service/tls.key"
TOML
systemctl daemon-reload
check 'it starts with a key from a credential' systemctl start wharf.service
check 'and serves with it' says '03:00' called --cacert /etc/wharf/tls.crt https://localhost:7300/mcp
check 'it stops again' systemctl stop wharf.service
sed -i '/^\[http.tls\]/,$d' /etc/wharf/wharf.toml

# Started by the first client, and by those that connect while it restarts.
check 'the socket is there' systemctl enable --now wharf.socket
check 'it has its mode' is "$(stat -c '%U %G %a' /run/wharf/mcp.sock)" 'root wharf 660'
check 'wharf does not run' is "$(of_unit ActiveState)" inactive
check 'the first client starts it' says '03:00' called --unix-socket /run/wharf/mcp.sock http://localhost/mcp
systemctl restart --no-block wharf.service
check 'one who comes meanwhile is answered' says '03:00' called --unix-socket /run/wharf/mcp.sock http://localhost/mcp
soon is "$(of_unit ActiveState)" active >/dev/null
check 'it ran all the time without a crash' is "$(of_unit Result)" success
check 'no message says that something failed' bash -c '! journalctl --unit wharf.service --no-pager --output cat | grep ERROR'

systemd-analyze security --no-pager wharf.service | grep -i 'overall exposure'
systemctl --version | head -n 1
[[ $(cat /sys/fs/cgroup/cgroup.controllers) == *memory* ]] || echo 'not tried: MemoryMax and TasksMax, because this kernel has no such controllers for containers'
exit $failed
