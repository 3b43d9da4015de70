#!/bin/bash
# What a program can and cannot do with the settings of the unit: run by unit.sh in wharf's place.

# Says whether something that must not be possible is not.
never() {
  local name=$1
  shift
  if ! command -v "$1" >/dev/null || "$@" >/dev/null 2>&1; then echo "FAILED  never: $name"; else echo "ok      never: $name"; fi
}

can() {
  local name=$1
  shift
  if "$@" >/dev/null 2>&1; then echo "ok      $name"; else echo "FAILED  $name"; fi
}

for folder in /var/cache/wharf /var/lib/wharf /var/log/wharf /tmp; do
  can "write $folder" touch "$folder/probe"
  rm -f "$folder/probe"
done
can 'read the config' cat /etc/wharf/wharf.toml
for folder in / /usr/local/bin /etc/wharf /run /var/lib /proc/sys/kernel /sys; do
  never "write $folder" touch "$folder/probe"
done
never 'read the home of somebody' cat /home/somebody/file
never 'read the passwords' cat /etc/shadow
never 'see other processes' test -e /proc/1
never 'see the memory of the machine' test -e /dev/mem
never 'see what the kernel has for processes only' test -e /proc/meminfo
never 'become another user' setpriv --reuid=0 true
never 'make a namespace' unshare --user true
never 'make a namespace of networks' unshare --user --net true
never 'mount' mount -t tmpfs none /tmp
never 'change the root' chroot / true
never 'change the clock' date --set=2030-01-01
never 'change the name of the host' hostname other
never 'read the log of the kernel' dmesg
never 'make a device' mknod /tmp/device c 1 3
never 'make a program that runs as its owner' bash -c 'cp /bin/true /tmp/owner && chmod u+s /tmp/owner'
never 'run before all others' chrt --fifo 1 true
exit 0
