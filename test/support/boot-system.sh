#!/bin/sh
# Starts systemd in the Debian system of a folder, in namespaces of its own: boot-system.sh FOLDER. Ends with its parent. Needs root.
set -eu

system=$1
name=evald-test-$$

# A control group of its own, so that systemd can't move other processes. Version 2, else the one that version 1 has for systemd.
if [ "$(stat -fc %T /sys/fs/cgroup)" = cgroup2fs ]; then groups=/sys/fs/cgroup; else groups=/sys/fs/cgroup/systemd; fi
mkdir "$groups/$name"
echo $$ >"$groups/$name/cgroup.procs"

# shellcheck disable=SC2016 # expanded by the inner shell
exec unshare --pid --fork --kill-child --mount --uts --ipc --cgroup sh -euc '
  system=$1
  mount --bind "$system" "$system"
  mount -t proc proc "$system/proc"
  mount -t sysfs -o ro sysfs "$system/sys"
  if [ "$2" = /sys/fs/cgroup ]; then
    mount -t cgroup2 cgroup2 "$system/sys/fs/cgroup"
  else
    mount -t tmpfs tmpfs "$system/sys/fs/cgroup"
    mkdir "$system/sys/fs/cgroup/systemd"
    mount -t cgroup -o none,name=systemd cgroup "$system/sys/fs/cgroup/systemd"
  fi
  mount -t tmpfs tmpfs "$system/run"
  mount -t tmpfs tmpfs "$system/tmp"
  mount --rbind /dev "$system/dev"
  cd "$system"
  pivot_root . mnt
  umount -l /mnt
  exec env -i container=lxc PATH=/usr/sbin:/usr/bin:/sbin:/bin /lib/systemd/systemd --system --unit=multi-user.target
' sh "$system" "$groups"
